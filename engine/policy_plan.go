package engine

import (
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// judgePlan asks the deployment's own policies about what applying it would do,
// once and as a whole. With a denial nothing of it happens.
func (a *application) judgePlan(x *change) error {
	p := a.d.Policy
	if p == nil || !p.Judges(journal.JudgePlan) {
		return nil
	}
	ev := deploy.PolicyEvent{Kind: journal.JudgePlan, Call: "apply", Created: a.result.Created, Resumed: a.result.Resumed, Changed: a.result.Changed, Removed: []string{}}
	for _, r := range a.result.Removed {
		ev.Removed = append(ev.Removed, r.Address)
	}
	var first journal.CreatureID
	if id, ok := a.creatures[a.d.Root]; ok {
		first = id
	} else if len(a.d.Creatures) > 0 {
		first = a.creatures[a.d.Creatures[0].Address]
	}
	ev.Graph = a.e.topo.GraphOf(first)
	var all deploy.Decision
	x.ask(p, ev, memoryHome{ev.Graph, first}, a.d.Name, &all)
	err := x.objected()
	if err != nil {
		x.logRefusals()
	}
	return err
}
