package deploy

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Policies returns a policy that asks all of the list, in order: for example the policies
// of a recipe, and after them one that is written in Go. A later policy sees messages as
// earlier ones have changed them. A single denial denies the event. A policy that panics
// has failed. A failure denies the event too, except for events of the kind fail. Nil
// policies are left out; without any, the result is nil.
func Policies(list ...Policy) Policy {
	list = slices.DeleteFunc(slices.Clone(list), func(p Policy) bool { return p == nil })
	if len(list) == 0 {
		return nil
	}
	return &policies{list}
}

// PolicyInfo describes one policy.
type PolicyInfo struct {
	Name      string
	On        journal.PolicyKind // the events that it judges
	Mode      string             // validate or mutate
	Enforce   string             // deny or audit
	OnError   string             // deny, warn or allow
	Where     string             // position of its script: "team.hcl:48"
	SHA256    string             // of the script
	Channels  []string           // addresses of the channels that it judges; nil for all
	Creatures []string           // addresses of the creatures that it is limited to; nil for all
	Species   []string           // names of the species that it is limited to; nil for all
	Isolated  bool               // it runs in a process of its own
}

// PolicyLister is implemented by a [Policy] that consists of policies with names.
type PolicyLister interface {
	// List returns them in the order in which they judge. It may be called from any goroutine.
	List() []PolicyInfo
}

// ListPolicies returns the named policies in a policy, which may be nil.
func ListPolicies(p Policy) []PolicyInfo {
	if lister, ok := p.(PolicyLister); ok {
		return lister.List()
	}
	return nil
}

// List implements [PolicyLister].
func (ps *policies) List() (all []PolicyInfo) {
	for _, p := range ps.list {
		all = append(all, ListPolicies(p)...)
	}
	return all
}

// policies is used by its address: policies can be of types that cannot be compared.
type policies struct{ list []Policy }

func (ps *policies) Judges(kind journal.PolicyKind) bool {
	return slices.ContainsFunc(ps.list, func(p Policy) bool { return p.Judges(kind) })
}

func (ps *policies) JudgesSend(channelAddress string) bool {
	return slices.ContainsFunc(ps.list, func(p Policy) bool { return p.JudgesSend(channelAddress) })
}

func (ps *policies) Send(ctx context.Context, event *SendEvent) SendDecision {
	var all SendDecision
	e := *event
	for _, p := range ps.list {
		if !p.JudgesSend(event.ChannelAddress) {
			continue
		}
		d := sendGuarded(ctx, p, &e)
		all.add(&d.Words)
		all.Original = all.Original || d.Original
		if d.Mutated {
			e.Payload, e.Headers = d.Payload, d.Headers
			all.Mutated, all.Payload, all.Headers = true, d.Payload, d.Headers
			all.ChangedBy = append(all.ChangedBy, d.ChangedBy...)
		}
		if all.Dropped = d.Dropped; all.Dropped != nil {
			break // a message that is not sent needs no further judgement
		}
	}
	return all
}

func (ps *policies) Judge(ctx context.Context, event *PolicyEvent) Decision {
	var all Decision
	for _, p := range ps.list {
		if !p.Judges(event.Kind) {
			continue
		}
		d := judgeGuarded(ctx, p, event)
		all.add(&d.Words)
		for name, how := range d.Settle {
			if all.Settle == nil {
				all.Settle = map[string]Collision{}
			}
			if _, settled := all.Settle[name]; !settled {
				all.Settle[name] = how
			}
		}
		if d.Request != nil {
			event = event.With(d.Request)
			all.Request, all.ChangedBy = merged(all.Request, d.Request), append(all.ChangedBy, d.ChangedBy...)
		}
		if d.Ruling > all.Ruling {
			all.Ruling, all.By = d.Ruling, d.By
		}
	}
	return all
}

func (w *Words) add(more *Words) {
	w.Denials = append(w.Denials, more.Denials...)
	w.Warnings = append(w.Warnings, more.Warnings...)
	w.Audits = append(w.Audits, more.Audits...)
	w.Asks = append(w.Asks, more.Asks...)
}

func sendGuarded(ctx context.Context, p Policy, event *SendEvent) (d SendDecision) {
	defer func() {
		if r := recover(); r != nil {
			d = SendDecision{Words: Words{Denials: []Verdict{panicked(p, r)}}}
		}
	}()
	return p.Send(ctx, event)
}

func judgeGuarded(ctx context.Context, p Policy, event *PolicyEvent) (d Decision) {
	defer func() {
		if r := recover(); r != nil {
			d = Decision{}
			if v := panicked(p, r); event.Kind == journal.JudgeFail { // the turn has failed already: the restart policy decides
				d.Warnings = []Verdict{v}
			} else {
				d.Denials = []Verdict{v}
			}
		}
	}()
	return p.Judge(ctx, event)
}

// maxPanicText bounds the text of a panic in a verdict, in bytes.
const maxPanicText = 256

func panicked(p Policy, r any) Verdict {
	text := fmt.Sprint(r)
	if len(text) > maxPanicText {
		text = text[:maxPanicText]
	}
	return Verdict{Policy: fmt.Sprintf("%T", p), Reason: "it panicked: " + text, Failed: true}
}
