package engine

import (
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

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
