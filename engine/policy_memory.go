package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/internal/spending"
	"github.com/seed47132306/terrarium/engine/journal"
)

// memories returns the policy memory of the graph, or nil if there is none.
func (h *graphPointer) memories() recall.Cells {
	g := h.enter()
	if g.none() {
		return nil
	}
	defer g.leave()
	return g.memory
}

// heritage is what a graph takes over from the graphs that it continues.
type heritage struct {
	memory recall.Cells    // of policies; replaced, never modified
	spent  spending.Ledger // what creatures have used of the budgets of capabilities
}

// inherit is the heritage of a graph that continues others. Its memory is that of the graph
// whose id it keeps, completed by the memory of the oldest of the others.
func inherit(id journal.GraphID, before []section) heritage {
	memory, spent := []recall.Cells{nil}, spending.Ledger{}
	for _, b := range slices.SortedFunc(slices.Values(before), byAge) {
		if spent.Inherit(b.spent); b.id == id {
			memory[0] = b.memory
		} else {
			memory = append(memory, b.memory)
		}
	}
	return heritage{recall.Inherit(memory...), spent}
}

// inheritance is the heritage of each graph after the change, where it comes from several
// graphs or from another one. It must be made before the environments follow.
func (x *change) inheritance(plan *storePlan) map[journal.GraphID]heritage {
	out := map[journal.GraphID]heritage{}
	for _, group := range plan.groups {
		if group.Keeps() {
			continue
		}
		for _, id := range group.After {
			if from := x.goingOnIn(group, id); len(from) > 0 {
				out[id] = inherit(id, from)
			}
		}
	}
	return out
}

// firstMemory writes the heritage of a graph to the first record of its new store.
func (x *change) firstMemory(rec *journal.Record, group *storeGroup, id journal.GraphID) {
	info, _ := x.e.topo.Graph(id)
	members := x.DeploymentsIn(info)
	of := inherit(id, x.goingOnIn(group, id))
	of.spent.Write(rec)
	for k, cell := range of.memory {
		if members[k.Deployment] {
			rec.PutMeta(k.MetaKey(), string(cell.Value))
		}
	}
}

// recalled calls f for every recollection of the change, with the graph it belongs to.
func (x *change) recalled(f func(home draft.Home, r *recall.Recollection)) {
	for home, r := range x.Memories() {
		f(home, r.(*recall.Recollection))
	}
	if t := x.turn; t != nil {
		for _, r := range t.rest.recalled() {
			f(draft.Home{Creature: t.c.id}, r)
		}
	}
}

// remember updates the memory of the existing graphs as policies requested, so that
// stores that are cut begin with it. It returns conflict if what a turn's policies have
// recalled is out of date.
func (x *change) remember() (undo func(), err error) {
	before := map[section]recall.Cells{}
	undo = func() {
		for g, memory := range before {
			g.memory = memory
		}
	}
	x.recalled(func(home draft.Home, r *recall.Recollection) {
		graph := x.e.graphs[home.Graph]
		if c := x.e.creatures[home.Creature]; graph == nil && c != nil {
			graph = c.home.load()
		}
		g, entered := x.paused[graph]
		if !entered {
			return
		}
		if !r.Current(g.memory) || x.turn != nil && x.turn.c.halted(x.home(x.turn.c)) {
			err = errtext.Forgotten
		}
		if _, noted := before[g]; !noted {
			before[g] = g.memory
		}
		r.Keep(&g.memory, nil)
		r.Kept = true
	})
	return undo, err
}

// writeMemories writes the changed memories to the records of graphs that keep their stores.
func (x *change) writeMemories() {
	x.recalled(func(home draft.Home, r *recall.Recollection) {
		if g := x.homeOf(home); !g.none() && r.Kept {
			r.Write(g.memory, x.record(g))
		}
	})
}

// rememberNew updates the memory of graphs that the change has made.
func (x *change) rememberNew() {
	x.recalled(func(home draft.Home, r *recall.Recollection) {
		if g := x.homeOf(home); !g.none() && !r.Kept && r.Changes() {
			r.Keep(&g.memory, x.record(g))
		}
	})
}
