package draft

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Objection is a denial of an event.
type Objection struct {
	Event *deploy.PolicyEvent
	deploy.Verdict
}

// Refusal returns the error for an operation that policies have denied.
func Refusal(denials []Objection) error {
	reasons := make([]string, len(denials))
	for i, v := range denials {
		reasons[i] = v.String()
	}
	first := denials[0]
	ev := first.Event
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
	code := abi.Denied
	if first.Limit {
		code = abi.LimitExceeded
	}
	return &abi.Error{
		Code: code, Op: ev.Call, Message: fmt.Sprintf("%s was denied: %s", ev.Subject(), strings.Join(reasons, "; ")),
		Remedy: "change the operation, or the policy at " + first.Where, IDs: ids,
	}
}

// Word is what one policy has said about an event, in the form that is logged.
type Word struct {
	Effect   journal.PolicyEffect
	Judged   journal.PolicyKind
	Channel  journal.ChannelID
	Creature journal.CreatureID // the creature concerned, if the event is not a message
	Call     string
	Original *journal.NotedMessage
	deploy.Verdict
}

// HomedWord is a word about something other than a message, with the graph
// where it is logged.
type HomedWord struct {
	Home
	Word
}

// Event returns the log event for a word. about identifies the turn, if there
// was one.
func (w *Word) Event(about journal.Event) journal.Event {
	about.Kind, about.Channel = journal.EventPolicyDenied, w.Channel
	if w.Creature != "" {
		about.Creature = w.Creature
	}
	about.Payload = journal.JSON(journal.PolicyPayload{Effect: w.Effect, Event: w.Judged, Call: w.Call, Policy: w.Policy, Reason: w.Reason, Where: w.Where, Original: w.Original})
	return about
}

// WordsOf returns what policies have said about an event, in the form that is
// logged.
func WordsOf(ev *deploy.PolicyEvent, said *deploy.Words) []Word {
	var out []Word
	add := func(effect journal.PolicyEffect, list []deploy.Verdict) {
		for _, v := range list {
			out = append(out, Word{Effect: effect, Judged: ev.Kind, Channel: ev.Channel.ID, Creature: ev.About().ID, Call: ev.Call, Verdict: v})
		}
	}
	add(journal.PolicyDenied, said.Denials)
	add(journal.PolicyAudit, said.Audits)
	add(journal.PolicyWarning, said.Warnings)
	return out
}

// ChangesOf are the words of the policies that have changed a message from outside. The
// first has the original message.
func ChangesOf(ch journal.ChannelID, deployment string, d *deploy.SendDecision, original journal.NotedMessage) []Word {
	by := d.ChangedBy
	if len(by) == 0 {
		by = []deploy.Verdict{{Policy: deployment}} // it cannot be attributed to a single policy
	}
	out := make([]Word, len(by))
	for i, v := range by {
		out[i] = Word{Effect: journal.PolicyChanged, Judged: journal.JudgeSend, Channel: ch, Verdict: v}
	}
	out[0].Original = &original
	return out
}

// RulingOf is the word for what policies have decided about a failed turn. ok is false if
// they have decided nothing.
func RulingOf(ev *deploy.PolicyEvent, d *deploy.Decision) (w Word, ok bool) {
	by := d.By
	if by.Reason == "" {
		by.Reason = d.Ruling.String()
	} else {
		by.Reason = d.Ruling.String() + ": " + by.Reason
	}
	return Word{Effect: journal.PolicyRuled, Judged: journal.JudgeFail, Creature: ev.Creature.ID, Call: ev.Call, Verdict: by}, d.Ruling != deploy.RuleNothing
}

// Refused returns what policies have said about refused operations. It is
// logged although the operations do not happen.
func (d *Draft) Refused() []HomedWord { return d.judging.refused }

// After returns the graph of h after the draft is applied, or "".
func (h Home) After(topo *topology.State) journal.GraphID {
	if h.Graph == "" {
		return topo.GraphOf(h.Creature)
	}
	id, _ := topo.Current(h.Graph)
	return id
}
