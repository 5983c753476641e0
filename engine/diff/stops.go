package diff

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// StopPlan describes a recipe whose stop_when blocks will stop its creatures in a graph,
// or will no longer stop them, once the plan is applied. The blocks are judged by the
// counters at the time of the plan.
type StopPlan struct {
	Deployment string          `json:"deployment"`       // deployment of the recipe
	Graph      journal.GraphID `json:"graph,omitempty"`  // empty if it does not exist yet
	Action     StopAction      `json:"action"`           // stop, stay or continue
	Condition  string          `json:"condition"`        // address of the block that holds, such as stop_when.enough; if the recipe continues, of the block that held
	Reason     string          `json:"reason,omitempty"` // what was reached, in words; empty if the recipe continues
}

// StopAction is what becomes of a recipe in a graph.
type StopAction string

// The actions.
const (
	StopBegins StopAction = "stop"     // its creatures are paused at once
	StopStays  StopAction = "stay"     // it has stopped, and stays stopped
	StopEnds   StopAction = "continue" // it has stopped, and its creatures continue
)

// idle reports whether the plan leaves the recipe as it is.
func (s *StopPlan) idle() bool { return s.Action == StopStays }

// stops lists what becomes of recipes with conditions.
func (c *comparison) stops() (out []StopPlan) {
	if len(c.before.stopped)+len(c.after.stopped) == 0 {
		return nil
	}
	type place struct {
		graph      journal.GraphID
		deployment string
	}
	was := map[place]string{} // for which block the recipe has stopped; empty: it has not
	for id, row := range c.after.creatures {
		p := place{c.after.homes[id], row.Deployment}
		if s, stopped := c.before.stopped[c.before.homes[id]][row.Deployment]; stopped || was[p] == "" {
			was[p] = max(was[p], s.Condition)
		}
	}
	existed := c.existed()
	for p, before := range was {
		is, stops := c.after.stopped[p.graph][p.deployment]
		one := StopPlan{Deployment: p.deployment, Condition: is.Condition, Reason: is.Reason}
		if existed[p.graph] {
			one.Graph = p.graph
		}
		switch {
		case stops && before == "":
			one.Action = StopBegins
		case stops:
			one.Action = StopStays
		case before != "":
			one.Action, one.Condition = StopEnds, before
		default:
			continue
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b StopPlan) int {
		return cmp.Or(cmp.Compare(a.Deployment, b.Deployment), cmp.Compare(a.Graph, b.Graph), cmp.Compare(a.Action, b.Action))
	})
	return out
}
