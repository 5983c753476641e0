package recipes

import (
	"unicode/utf8"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// TestOutcome is the outcome of a test.
type TestOutcome struct {
	Messages map[string][]TestMessage     // by the channel's address, in order
	Outputs  map[string][][]byte          // by the creature's address
	State    map[string]map[string][]byte // by the creature's address and the key
	// DeadLetters and Denials are in the order of their occurrence.
	DeadLetters []TestDeadLetter
	Denials     []TestDenial
	Approvals   []TestApproval // in the order in which they were asked
}

// TestApproval is a question of a policy.
type TestApproval struct {
	ID       journal.EventID
	Policy   string // its name
	Subject  string // what it is about
	Because  string // the reason that the policy has given
	Creature string // address of the creature whose turn waits
	Decision journal.ApprovalDecision
}

// TestMessage is a message on a channel.
type TestMessage struct {
	Payload []byte
	Headers map[string]string
	Sender  string // address of the creature; empty when it came from outside
}

// TestDeadLetter is a delivery that became a dead letter.
type TestDeadLetter struct {
	Creature string // its address
	Reason   journal.DeadReason
	Error    string
}

// TestDenial is an answer of a policy.
type TestDenial struct {
	Policy  string               // its name
	Effect  journal.PolicyEffect // denied, dropped, audit or warning
	Reason  string
	Channel string // address of the channel
	Sender  string // address of the sender; empty when it came from outside
}

const reportName = deploy.ReportChannel

// result returns the outcome as assertions see it: the members by kind and name, and the
// errors.
func (ts *testReader) result(o *TestOutcome) cty.Value {
	all := memberResults(ts.evaluator, o)
	if ts.root != nil {
		channels := all["channel"].AsValueMap()
		if channels == nil {
			channels = map[string]cty.Value{}
		}
		channels[reportName] = messages(o.Messages["channel."+reportName])
		all["channel"] = cty.ObjectVal(channels)
	}
	letters := make([]cty.Value, len(o.DeadLetters))
	for i, d := range o.DeadLetters {
		letters[i] = texts("creature", d.Creature, "reason", string(d.Reason), "error", d.Error)
	}
	denials := make([]cty.Value, len(o.Denials))
	for i, d := range o.Denials {
		denials[i] = texts("policy", d.Policy, "effect", string(d.Effect), "reason", d.Reason, "channel", d.Channel, "sender", d.Sender)
	}
	approvals := make([]cty.Value, len(o.Approvals))
	for i, a := range o.Approvals {
		approvals[i] = texts("policy", a.Policy, "subject", a.Subject, "reason", a.Because, "creature", a.Creature, "decision", string(a.Decision))
	}
	all["approvals"] = cty.TupleVal(approvals)
	all["dead_letters"], all["denials"] = cty.TupleVal(letters), cty.TupleVal(denials)
	return cty.ObjectVal(all)
}

func texts(pairs ...string) cty.Value {
	out := map[string]cty.Value{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = cty.StringVal(pairs[i+1])
	}
	return cty.ObjectVal(out)
}

func memberResults(ev *evaluator, o *TestOutcome) map[string]cty.Value {
	channels, creatures, recipes := map[string]cty.Value{}, map[string]cty.Value{}, map[string]cty.Value{}
	for name, d := range ev.decls["channel"] {
		channels[name] = d.eachResult(func(i *instance) cty.Value { return messages(o.Messages[i.address]) })
	}
	for name, d := range ev.decls["creature"] {
		creatures[name] = d.eachResult(func(i *instance) cty.Value {
			return cty.ObjectVal(map[string]cty.Value{"output": payloads(o.Outputs[i.address]), "state": state(o.State[i.address])})
		})
	}
	for name, d := range ev.decls["recipe"] {
		recipes[name] = d.eachResult(func(i *instance) cty.Value { return cty.ObjectVal(memberResults(ev.subs[i.address], o)) })
	}
	return map[string]cty.Value{"channel": cty.ObjectVal(channels), "creature": cty.ObjectVal(creatures), "recipe": cty.ObjectVal(recipes)}
}

// eachResult returns the result of the only instance, or with for_each an object of all
// results.
func (d *declaration) eachResult(of func(*instance) cty.Value) cty.Value {
	if d.attr("for_each") == nil {
		return of(&d.instances[0])
	}
	out := map[string]cty.Value{}
	for i := range d.instances {
		out[d.instances[i].key] = of(&d.instances[i])
	}
	return cty.ObjectVal(out)
}

func messages(all []TestMessage) cty.Value {
	out := make([]cty.Value, len(all))
	for i, m := range all {
		headers := map[string]cty.Value{}
		for name, value := range m.Headers {
			headers[name] = cty.StringVal(value)
		}
		shown := payloadAttributes(m.Payload)
		shown["headers"], shown["sender"] = cty.ObjectVal(headers), cty.StringVal(m.Sender)
		out[i] = cty.ObjectVal(shown)
	}
	return cty.TupleVal(out)
}

func payloads(all [][]byte) cty.Value {
	out := make([]cty.Value, len(all))
	for i, p := range all {
		out[i] = cty.ObjectVal(payloadAttributes(p))
	}
	return cty.TupleVal(out)
}

// payloadAttributes returns a payload as a text and as decoded JSON, or null for each
// that it is not.
func payloadAttributes(payload []byte) map[string]cty.Value {
	text, parsed := cty.NullVal(cty.String), cty.NullVal(cty.DynamicPseudoType)
	if utf8.Valid(payload) {
		text = cty.StringVal(string(payload))
		if jsonTooDeep(payload, maxJSONDepth) < 0 {
			if v, err := stdlib.JSONDecode(text); err == nil {
				parsed = v
			}
		}
	}
	return map[string]cty.Value{"payload": text, "json": parsed}
}

func state(values map[string][]byte) cty.Value {
	out := map[string]cty.Value{}
	for key, value := range values {
		if utf8.Valid(value) {
			out[key] = cty.StringVal(string(value))
		}
	}
	return cty.ObjectVal(out)
}
