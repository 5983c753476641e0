package engine

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// refusal is the error of an operation that policies have denied.
func refusal(denials []objection) error {
	reasons := make([]string, len(denials))
	for i, v := range denials {
		reasons[i] = v.String()
	}
	first := denials[0]
	ev := first.event
	ids := map[string]string{"policy": first.Policy, "event": string(ev.Kind), "call": ev.Call}
	about := ev.About()
	if first.Where != "" {
		ids["where"] = first.Where
	}
	if about.Where != "" {
		ids["line"] = about.Where
	}
	if about.ID != "" {
		ids["creature"] = string(about.ID)
	}
	return &abi.Error{
		Code: abi.Denied, Op: ev.Call, Message: fmt.Sprintf("%s was denied: %s", ev.Subject(), strings.Join(reasons, "; ")),
		Remedy: "change the operation, or the policy at " + first.Where, IDs: ids,
	}
}

// RefusedMessage is the cause of the error of a message from outside that policies
// have not let through.
type RefusedMessage struct {
	Effect string           // denied or dropped
	By     []deploy.Verdict // who said so
}

// Error lists who has refused the message, where and why.
func (r *RefusedMessage) Error() string {
	reasons := make([]string, len(r.By))
	for i, v := range r.By {
		reasons[i] = v.String()
	}
	return strings.Join(reasons, "; ")
}

// refusedMessage is the error of a message from outside that policies have denied or
// dropped.
func refusedMessage(ch *channel, d *deploy.SendDecision) error {
	cause := &RefusedMessage{effectDenied, d.Denials}
	if len(d.Denials) == 0 {
		cause = &RefusedMessage{effectDropped, []deploy.Verdict{*d.Dropped}}
	}
	first := cause.By[0]
	ids := map[string]string{"channel": string(ch.id), "policy": first.Policy}
	remedy := "change the message, or the policy"
	if first.Where != "" {
		ids["where"], remedy = first.Where, remedy+" at "+first.Where
	}
	return &abi.Error{
		Code: abi.Denied, Op: "send", Message: fmt.Sprintf("the message on %s was %s", ch.label, cause.Effect),
		Remedy: remedy, IDs: ids, Err: cause,
	}
}

// The effects of verdicts, as events have them.
const (
	effectDenied  = "denied"
	effectDropped = "dropped"
	effectAudit   = "audit"
	effectWarning = "warning"
	effectRuled   = "ruled"
	effectChanged = "changed" // a message from outside; those of creatures are noted with their turns
)

// policyVerdict is one policy's word as it is logged.
type policyVerdict struct {
	effect   string
	judged   journal.PolicyKind
	channel  journal.ChannelID
	creature journal.CreatureID // whom an event is about that is not a message
	call     string
	original *journal.NotedMessage
	deploy.Verdict
}

// event is the log's form of a verdict. about says whose turn it was, if it was
// one.
func (v *policyVerdict) event(about journal.Event) journal.Event {
	about.Kind, about.Channel = journal.EventPolicyDenied, v.channel
	if v.creature != "" {
		about.Creature = v.creature
	}
	about.Payload = journal.JSON(journal.PolicyPayload{Effect: v.effect, Event: v.judged, Call: v.call, Policy: v.Policy, Reason: v.Reason, Where: v.Where, Original: v.original})
	return about
}

// wordsOf are the verdicts on an event, to be logged.
func wordsOf(ev *deploy.PolicyEvent, w *deploy.Words) []policyVerdict {
	var out []policyVerdict
	add := func(effect string, list []deploy.Verdict) {
		for _, v := range list {
			out = append(out, policyVerdict{effect: effect, judged: ev.Kind, channel: ev.Channel.ID, creature: ev.About().ID, call: ev.Call, Verdict: v})
		}
	}
	add(effectDenied, w.Denials)
	add(effectAudit, w.Audits)
	add(effectWarning, w.Warnings)
	return out
}

// logWords logs what policies have said about a change that has been made.
func (x *change) logWords() {
	for i := range x.judging.words {
		w := &x.judging.words[i]
		if g := x.homeOf(w.home); g != nil {
			g.log(x.record(g), w.event(journal.Event{}))
		}
	}
}

// logRefusals logs what policies have said of what they refused, where it would have
// happened. The caller holds the mutation lock, but no graph's mu.
func (x *change) logRefusals() {
	for i := range x.judging.refused {
		w := &x.judging.refused[i]
		if w.effect == effectDenied {
			x.e.log.Info("a policy has refused an operation", "policy", w.Policy, "where", w.Where, "call", w.call, "reason", w.Reason)
		}
		g := x.e.graphs[w.home.graph]
		if g == nil {
			continue // it would have been made
		}
		wall := x.e.wallClock()
		g.mu.Lock()
		g.wall = wall
		rec := g.newRecord()
		g.log(rec, w.event(journal.Event{}))
		g.append(rec)
		g.mu.Unlock()
	}
}

// homeOf is the graph that a memory, or a word, belongs to after the change.
func (x *change) homeOf(home memoryHome) *graph {
	id := x.e.topo.GraphOf(home.creature)
	if home.graph != "" {
		id, _ = x.e.topo.Current(home.graph)
	}
	return x.e.graphs[id]
}
