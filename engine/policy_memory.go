package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
)

// memories are what is remembered in the graph, or nil if there is none.
func (h *graphPointer) memories() recall.Cells {
	g := h.lock()
	if g == nil {
		return nil
	}
	defer g.mu.Unlock()
	return g.memory
}

// inheritMemory is what a graph remembers that goes on with what others were:
// the memory of the graph whose id it keeps and, of what that one has not, that
// of the eldest.
func inheritMemory(id journal.GraphID, before []*graph) recall.Cells {
	var own, others []recall.Cells
	for _, b := range slices.SortedFunc(slices.Values(before), byAge) {
		if b.id == id {
			own = append(own, b.memory)
		} else {
			others = append(others, b.memory)
		}
	}
	return recall.Inherit(append(own, others...)...)
}

// inheritance is the memory of each graph after the change, as far as it comes
// from several or another. It has to be made before the environments follow.
func (x *change) inheritance(plan *storePlan) map[journal.GraphID]recall.Cells {
	var out map[journal.GraphID]recall.Cells
	for _, group := range plan.groups {
		if group.keeps() {
			continue
		}
		for _, id := range group.after {
			if memory := inheritMemory(id, x.goingOnIn(group, id)); memory != nil {
				if out == nil {
					out = map[journal.GraphID]recall.Cells{}
				}
				out[id] = memory
			}
		}
	}
	return out
}

// goingOnIn lists the graphs of a group that have become part of a graph.
func (x *change) goingOnIn(group *storeGroup, id journal.GraphID) []*graph {
	var out []*graph
	for _, b := range group.before {
		if x.e.goesOnIn(b, id) {
			out = append(out, b)
		}
	}
	return out
}

// firstMemory puts what a graph remembers into the first record of its new store.
func (x *change) firstMemory(rec *journal.Record, group *storeGroup, id journal.GraphID) {
	info, _ := x.e.topo.Graph(id)
	members := x.DeploymentsIn(info)
	for k, cell := range inheritMemory(id, x.goingOnIn(group, id)) {
		if members[k.Deployment] {
			rec.PutMeta(k.MetaKey(), string(cell.Value))
		}
	}
}

// recalled are all recollections of the change, with where each belongs.
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

// remember has the graphs that there are remember what policies want, so that
// stores that are cut begin with it. It answers conflict if what a turn's policies
// have recalled does not hold any more.
func (x *change) remember() (undo func(), err error) {
	before := map[*graph]recall.Cells{}
	undo = func() {
		for g, memory := range before {
			g.memory = memory
		}
	}
	x.recalled(func(home draft.Home, r *recall.Recollection) {
		g := x.e.graphs[home.Graph]
		if c := x.e.creatures[home.Creature]; g == nil && c != nil {
			g = c.home.load()
		}
		if g == nil || !x.paused[g] {
			return
		}
		if !r.Current(g.memory) {
			err = errForgotten
		}
		if _, noted := before[g]; !noted {
			before[g] = g.memory
		}
		r.Keep(&g.memory, nil)
		r.Kept = true
	})
	return undo, err
}

var errForgotten = &abi.Error{
	Code: abi.Conflict, Op: "policy", Message: "what the policies have recalled has changed meanwhile", Remedy: "try again",
}

// writeMemories puts what is remembered into the records of graphs that keep
// their stores.
func (x *change) writeMemories() {
	x.recalled(func(home draft.Home, r *recall.Recollection) {
		if g := x.homeOf(home); g != nil && r.Kept {
			r.Write(g.memory, x.record(g))
		}
	})
}

// rememberNew has graphs that the change has made remember.
func (x *change) rememberNew() {
	x.recalled(func(home draft.Home, r *recall.Recollection) {
		if g := x.homeOf(home); g != nil && !r.Kept && r.Changes() {
			r.Keep(&g.memory, x.record(g))
		}
	})
}
