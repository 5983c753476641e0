package engine

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// RefusedMessage is the cause of the error for a message from outside that policies have
// refused.
type RefusedMessage struct {
	Effect journal.PolicyEffect // denied or dropped
	By     []deploy.Verdict     // the policies that refused it
}

// Error lists the policies that have refused the message, where and why.
func (r *RefusedMessage) Error() string {
	reasons := make([]string, len(r.By))
	for i, v := range r.By {
		reasons[i] = v.String()
	}
	return strings.Join(reasons, "; ")
}

// refusedMessage is the error for a message from outside that policies have denied or
// dropped.
func refusedMessage(ch *channel, d *deploy.SendDecision) error {
	cause := &RefusedMessage{journal.PolicyDenied, d.Denials}
	if len(d.Denials) == 0 {
		cause = &RefusedMessage{journal.PolicyDropped, []deploy.Verdict{*d.Dropped}}
	}
	first := cause.By[0]
	ids := map[string]string{"channel": string(ch.id), "policy": first.Policy}
	remedy := "change the message, or the policy"
	if first.Where != "" {
		ids["where"], remedy = first.Where, remedy+" at "+first.Where
	}
	return &abi.Error{
		Code: abi.Denied, Op: "send", Message: fmt.Sprintf("the message on %s was %s", ch.place().label, cause.Effect),
		Remedy: remedy, IDs: ids, Err: cause,
	}
}

// logWords logs what policies have said about a change that was made.
func (x *change) logWords() {
	for i := range x.sealed.Words {
		w := &x.sealed.Words[i]
		if g := x.homeOf(w.Home); !g.none() {
			g.log(x.record(g), w.Event(journal.Event{}))
		}
	}
}

// logRefusals logs what policies have said about what they refused, in the graph where it
// would have happened. It enters that graph's critical section itself.
func (x *change) logRefusals() {
	refused := x.Refused()
	for i := range refused {
		w := &refused[i]
		if w.Effect == journal.PolicyDenied {
			x.e.log.Info("a policy has refused an operation", "policy", w.Policy, "where", w.Where, "call", w.Call, "reason", w.Reason)
		}
		g := x.e.graphs[w.Home.Graph]
		if g == nil {
			continue // it would have been made
		}
		s := g.enterAt(x.e.wallClock())
		rec := s.newRecord()
		s.log(rec, w.Event(journal.Event{}))
		s.append(rec)
		s.leave()
	}
}

// homeOf is the graph that a memory or a word belongs to after the change.
func (x *change) homeOf(home draft.Home) section { return x.graph(home.After(x.e.topo)) }
