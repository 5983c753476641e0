package policy

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// FieldType is the type of a field of an event.
type FieldType string

// The types.
const (
	Text   FieldType = "text"
	Number FieldType = "number"
	Flag   FieldType = "true or false"
	Texts  FieldType = "list of texts"
	Data   FieldType = "object or list" // which conditions cannot use
)

// Field is a field of events of some kinds other than send; those of send are
// [SendFields].
type Field struct {
	Name  string
	Kinds []journal.PolicyKind // nil: all
	Type  FieldType
	Doc   string
	// Value returns a string, float64, bool, []string or, for Data, a value that encodes
	// as JSON.
	Value func(*deploy.PolicyEvent) any
}

// Member is a field of the event send or of the context, which scripts read by name; see
// eventView and contextView.
type Member struct{ Name, Doc string }

// SendFields are the fields of the event send.
var SendFields = []Member{
	{"kind", "`send`"},
	{"time", "when it happens, in milliseconds since 1970 (number)"},
	{"graph", "id of the graph"},
	{"deployment", "deployment of the channel"},
	{"channel", "name of the channel"},
	{"channel_address", "its address"},
	{"sender", "name of the creature that sends; empty for a sender from outside"},
	{"sender_address", "its address"},
	{"sender_species", "its species"},
	{"payload", "the payload as a text; null if it is not text"},
	{"base64", "the payload in base64, if it is not text"},
	{"size", "size of the payload, in bytes (number)"},
	{"headers", "its headers: an object of texts"},
}

// ContextFields are the fields of ctx.
var ContextFields = []Member{
	{"policy", "the name of the policy"},
	{"mode", "its mode"},
	{"state", "what the policy remembers in this graph: any JSON value, `{}` at first, at most 16 KiB. Change it or assign to it. It is kept if the judged turn or operation takes effect. A turn takes effect even if one of its messages is denied, so the state is kept then too"},
	{"graph", "the graph of the event, before the event: `id`, `creatures(filter)` and `channels(filter)`"},
}

func names(members []Member) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.Name
	}
	return out
}

func kinds(list ...journal.PolicyKind) []journal.PolicyKind { return list }

// Of reports whether events of a kind have the field.
func (f *Field) Of(kind journal.PolicyKind) bool {
	return kind != journal.JudgeSend && (f.Kinds == nil || slices.Contains(f.Kinds, kind))
}

var (
	ofCreature = kinds(journal.JudgeSpawn, journal.JudgeRemove, journal.JudgeReplace, journal.JudgeFail)
	ofEdge     = kinds(journal.JudgeConnect, journal.JudgeDisconnect)
	ofEnds     = kinds(journal.JudgeConnect, journal.JudgeDisconnect, journal.JudgeWire)
	ofFail     = kinds(journal.JudgeFail)
	ofPlan     = kinds(journal.JudgePlan)
	ofSpawn    = kinds(journal.JudgeSpawn)
	ofReplace  = kinds(journal.JudgeReplace)
	ofModule   = kinds(journal.JudgeSpawn, journal.JudgeReplace)
	ofMerge    = kinds(journal.JudgeMerge)
	ofWire     = kinds(journal.JudgeWire)
	ofTool     = kinds(journal.JudgeTool)
	ofReach    = kinds(journal.JudgeCapability)
)

// Fields are the fields of all events but send.
var Fields = []Field{
	{"kind", nil, Text, "the event", func(e *deploy.PolicyEvent) any { return string(e.Kind) }},
	{"time", nil, Number, "when it happens, in milliseconds since 1970", func(e *deploy.PolicyEvent) any { return float64(e.Time) / float64(time.Millisecond) }},
	{"graph", nil, Text, "id of the graph before the event; empty if there is none yet", func(e *deploy.PolicyEvent) any { return string(e.Graph) }},
	{"deployment", nil, Text, "deployment whose policies judge the event", func(e *deploy.PolicyEvent) any { return e.Deployment }},
	{"call", nil, Text, "the operation or tool that requests it", func(e *deploy.PolicyEvent) any { return e.Call }},
	{"caller", nil, Text, "name of the calling creature; empty for a caller from outside", func(e *deploy.PolicyEvent) any { return e.Caller.Name }},
	{"caller_address", nil, Text, "its address", func(e *deploy.PolicyEvent) any { return e.Caller.Address }},
	{"caller_species", nil, Text, "its species", func(e *deploy.PolicyEvent) any { return e.Caller.Species }},

	{"creature", ofCreature, Text, "name of the creature", func(e *deploy.PolicyEvent) any { return e.Creature.Name }},
	{"creature_id", ofCreature, Text, "its id", func(e *deploy.PolicyEvent) any { return string(e.Creature.ID) }},
	{"address", ofCreature, Text, "its address; empty if no recipe declares it", func(e *deploy.PolicyEvent) any { return e.Creature.Address }},
	{"species", ofCreature, Text, "its species; empty if it has none", func(e *deploy.PolicyEvent) any { return e.Creature.Species }},
	{"privileged", ofCreature, Flag, "whether it is privileged", func(e *deploy.PolicyEvent) any { return e.Creature.Privileged }},
	{"module", ofModule, Text, "its module; for `replace` the new one", func(e *deploy.PolicyEvent) any { return e.Module }},
	{"sha256", ofReplace, Text, "SHA-256 of the new module, in hexadecimal digits", func(e *deploy.PolicyEvent) any { return e.SHA256 }},
	{"former", ofReplace, Text, "its former module", func(e *deploy.PolicyEvent) any { return e.Former }},
	{"parent", ofSpawn, Text, "name of its parent", func(e *deploy.PolicyEvent) any { return e.Parent.Name }},
	{"alive", ofSpawn, Number, "how many creatures of its species there are", func(e *deploy.PolicyEvent) any { return float64(e.Alive) }},
	{"listen", ofSpawn, Texts, "names of the channels that it listens on", func(e *deploy.PolicyEvent) any { return e.Listen }},
	{"send", ofSpawn, Texts, "names of the channels that it sends on", func(e *deploy.PolicyEvent) any { return e.Send }},
	{"workers", kinds(journal.JudgeRemove), Texts, "names of the workers that are removed with it", func(e *deploy.PolicyEvent) any { return e.Workers }},

	{"from", ofEnds, Text, "name of the creature that sends the message or the output; empty if only the other end changes", func(e *deploy.PolicyEvent) any { return e.From.Name }},
	{"from_address", ofEnds, Text, "its address", func(e *deploy.PolicyEvent) any { return e.From.Address }},
	{"from_species", ofEnds, Text, "its species", func(e *deploy.PolicyEvent) any { return e.From.Species }},
	{"to", ofEnds, Text, "name of the creature that listens or gets the output", func(e *deploy.PolicyEvent) any { return e.To.Name }},
	{"to_address", ofEnds, Text, "its address", func(e *deploy.PolicyEvent) any { return e.To.Address }},
	{"to_species", ofEnds, Text, "its species", func(e *deploy.PolicyEvent) any { return e.To.Species }},
	{"channel", ofEdge, Text, "name of the channel; empty if the engine finds or creates one", func(e *deploy.PolicyEvent) any { return e.Channel.Name }},
	{"channel_address", ofEdge, Text, "its address", func(e *deploy.PolicyEvent) any { return e.Channel.Address }},
	{"added", ofWire, Flag, "whether the wire is added; otherwise it is removed", func(e *deploy.PolicyEvent) any { return e.Added }},
	{"wire", ofWire, Text, "name of the wire", func(e *deploy.PolicyEvent) any { return wireOf(e).Name }},
	{"with_content", ofWire, Flag, "whether the wire delivers the output itself", func(e *deploy.PolicyEvent) any { return wireOf(e).WithContent }},

	{"graphs", ofMerge, Data, "the graphs, with the one whose id stays first: `{id, creatures, channels}` as `ctx.graph` lists them", func(e *deploy.PolicyEvent) any { return e.Graphs }},
	{"collisions", ofMerge, Data, "names that both graphs use: `{kind, name}`, of kind creature or channel", func(e *deploy.PolicyEvent) any { return e.Collisions }},
	{"parts", kinds(journal.JudgeSplit), Data, "names of the creatures in each part, with the part that keeps the id first", func(e *deploy.PolicyEvent) any { return e.Parts }},

	{"tool", ofTool, Text, "name of the tool", func(e *deploy.PolicyEvent) any { return e.Tool }},
	{"arguments", ofTool, Data, "its arguments", func(e *deploy.PolicyEvent) any { return arguments(e.Arguments) }},

	{"capability", ofReach, Text, "kind of the capability, such as `http`", func(e *deploy.PolicyEvent) any { return string(e.Capability) }},
	{"grant", ofReach, Text, "its name in the recipe", func(e *deploy.PolicyEvent) any { return e.Grant }},
	{"method", ofReach, Text, "for `http`: the method", func(e *deploy.PolicyEvent) any { return requested(e, "method") }},
	{"url", ofReach, Text, "for `http`: the URL", func(e *deploy.PolicyEvent) any { return requested(e, "url") }},
	{"host", ofReach, Text, "for `http`: the host in the URL", func(e *deploy.PolicyEvent) any { return requested(e, "host") }},
	{"request", ofReach, Data, "what is requested, without secrets of the recipe; for `http`: `method`, `url`, `host`, `path`, `headers`, and `body` or, if that is not text, `base64`", func(e *deploy.PolicyEvent) any { return arguments(e.Request) }},

	{"code", ofFail, Text, "code of the error", func(e *deploy.PolicyEvent) any { return e.Code }},
	{"error", ofFail, Text, "what happened", func(e *deploy.PolicyEvent) any { return e.Error }},
	{"delivery", ofFail, Text, "its kind: message, timer, …", func(e *deploy.PolicyEvent) any { return e.Delivery }},
	{"attempt", ofFail, Number, "the number of the attempt at the delivery, from 1", func(e *deploy.PolicyEvent) any { return float64(e.Attempt) }},
	{"attempts", ofFail, Number, "how many attempts the restart policy allows", func(e *deploy.PolicyEvent) any { return float64(e.Attempts) }},
	{"failures", ofFail, Number, "how many turns of the creature failed within the restart policy's time window", func(e *deploy.PolicyEvent) any { return float64(e.Failures) }},

	{"created", ofPlan, Texts, "addresses of creatures that would be created", func(e *deploy.PolicyEvent) any { return e.Created }},
	{"resumed", ofPlan, Texts, "addresses of creatures that would be resumed", func(e *deploy.PolicyEvent) any { return e.Resumed }},
	{"changed", ofPlan, Texts, "addresses of running creatures among these that would get another instance, because of other modules or settings", func(e *deploy.PolicyEvent) any { return e.Changed }},
	{"removed", ofPlan, Texts, "addresses that would be removed", func(e *deploy.PolicyEvent) any { return e.Removed }},
}

// wireOf returns the output wire of an event.
func wireOf(e *deploy.PolicyEvent) journal.OutputWire {
	if e.Wire == nil {
		return journal.OutputWire{}
	}
	return *e.Wire
}

// requested returns a member of a request to a capability, if it is a text.
func requested(e *deploy.PolicyEvent, name string) string {
	var members map[string]json.RawMessage
	text := ""
	if json.Unmarshal(e.Request, &members) != nil || json.Unmarshal(members[name], &text) != nil {
		return ""
	}
	return text
}

// arguments returns the arguments of a tool, or an empty object.
func arguments(b []byte) any {
	if !json.Valid(b) {
		return struct{}{}
	}
	return json.RawMessage(b)
}

// fieldsByKind has the fields of each kind of event, by name.
var fieldsByKind = func() map[journal.PolicyKind]map[string]*Field {
	out := map[journal.PolicyKind]map[string]*Field{}
	for _, kind := range journal.PolicyKinds() {
		out[kind] = map[string]*Field{}
		for i := range Fields {
			if f := &Fields[i]; f.Of(kind) {
				out[kind][f.Name] = f
			}
		}
	}
	return out
}()

// keysByKind has the names of the fields of each kind, in order.
var keysByKind = func() map[journal.PolicyKind][]string {
	out := map[journal.PolicyKind][]string{journal.JudgeSend: sendKeys}
	for _, f := range Fields {
		for _, kind := range journal.PolicyKinds() {
			if f.Of(kind) {
				out[kind] = append(out[kind], f.Name)
			}
		}
	}
	return out
}()
