package engine

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A graph's memory is what the policies of its deployments remember, by
// deployment and policy. Cells are replaced, never modified, so whoever has read
// one knows by comparing pointers whether it still holds.

type (
	memoryKey  = storemeta.MemoryKey
	memoryCell = storemeta.Cell
)

// metaWithMemory is the metadata of a graph as a store of it has it. The caller
// holds mu.
func (g *graph) metaWithMemory() map[string]string {
	if len(g.memory) == 0 {
		return g.meta
	}
	out := maps.Clone(g.meta)
	if out == nil {
		out = map[string]string{}
	}
	for k, cell := range g.memory {
		out[k.MetaKey()] = string(cell.Value)
	}
	return out
}

// recollection is what the policies of one turn or operation have recalled, and
// what they want remembered once that happens.
type recollection struct {
	home func() *graph // enters the critical section of the graph; nil if there is none
	// read are the cells as they were; nil for one that there was not.
	read map[memoryKey]*memoryCell
	now  map[memoryKey][]byte
	kept bool // by a change
}

// Of implements [draft.Memory].
func (r *recollection) Of(deployment string) deploy.PolicyMemory {
	return &deploymentMemory{r, deployment}
}

type deploymentMemory struct {
	r          *recollection
	deployment string
}

// Recall implements [deploy.PolicyMemory].
func (m *deploymentMemory) Recall(policy string) []byte {
	k, r := memoryKey{Deployment: m.deployment, Policy: policy}, m.r
	if value, changed := r.now[k]; changed {
		return value
	}
	cell, known := r.read[k]
	if !known {
		if g := r.home(); g != nil {
			cell = g.memory[k]
			g.mu.Unlock()
		}
		if r.read == nil {
			r.read = map[memoryKey]*memoryCell{}
		}
		r.read[k] = cell
	}
	if cell == nil {
		return nil
	}
	return cell.Value
}

// Remember implements [deploy.PolicyMemory].
func (m *deploymentMemory) Remember(policy string, value []byte) {
	m.Recall(policy) // what is replaced must still be there when it is
	if m.r.now == nil {
		m.r.now = map[memoryKey][]byte{}
	}
	m.r.now[memoryKey{Deployment: m.deployment, Policy: policy}] = value
}

// current reports whether what was recalled still holds. The caller holds the mu
// of g.
func (r *recollection) current(g *graph) bool {
	return len(r.read) == 0 || r.holds(g) // nearly always the former, which is inlined
}

func (r *recollection) holds(g *graph) bool {
	for k, cell := range r.read {
		if g.memory[k] != cell {
			return false
		}
	}
	return true
}

// keep has a graph remember, with the record of what was judged. The caller
// holds the mu of g.
func (r *recollection) keep(g *graph, rec *journal.Record) {
	if len(r.now) > 0 {
		r.put(g, rec)
	}
}

func (r *recollection) put(g *graph, rec *journal.Record) {
	memory := maps.Clone(g.memory) // a cut under way may be reading it
	if memory == nil {
		memory = map[memoryKey]*memoryCell{}
	}
	for k, value := range r.now {
		if value == nil {
			delete(memory, k)
		} else {
			memory[k] = &memoryCell{Value: value}
		}
		rec.PutMeta(k.MetaKey(), string(value))
	}
	g.memory = memory
}

func (r *recollection) forget() { r.read, r.now, r.kept = nil, nil, false }

// inheritMemory is what a graph remembers that goes on with what others were:
// the memory of the graph whose id it keeps and, of what that one has not, that
// of the eldest.
func inheritMemory(id journal.GraphID, before []*graph) map[memoryKey]*memoryCell {
	out := map[memoryKey]*memoryCell{}
	for _, b := range slices.SortedFunc(slices.Values(before), byAge) {
		if b.id == id {
			maps.Copy(out, b.memory)
		}
	}
	for _, b := range slices.SortedFunc(slices.Values(before), byAge) {
		for k, cell := range b.memory {
			if out[k] == nil {
				out[k] = cell
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// inheritance is the memory of each graph after the change, as far as it comes
// from several or another. It has to be made before the environments follow.
func (x *change) inheritance(plan *storePlan) map[journal.GraphID]map[memoryKey]*memoryCell {
	var out map[journal.GraphID]map[memoryKey]*memoryCell
	for _, group := range plan.groups {
		if group.keeps() {
			continue
		}
		for _, id := range group.after {
			if memory := inheritMemory(id, x.goingOnIn(group, id)); memory != nil {
				if out == nil {
					out = map[journal.GraphID]map[memoryKey]*memoryCell{}
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
func (x *change) recalled(f func(home draft.Home, r *recollection)) {
	for home, r := range x.Memories() {
		f(home, r.(*recollection))
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
	before := map[*graph]map[memoryKey]*memoryCell{}
	undo = func() {
		for g, memory := range before {
			g.memory = memory
		}
	}
	x.recalled(func(home draft.Home, r *recollection) {
		g := x.e.graphs[home.Graph]
		if c := x.e.creatures[home.Creature]; g == nil && c != nil {
			g = c.home.load()
		}
		if g == nil || !x.paused[g] {
			return
		}
		if !r.current(g) {
			err = errForgotten
		}
		if _, noted := before[g]; !noted {
			before[g] = g.memory
		}
		r.keep(g, nil)
		r.kept = true
	})
	return undo, err
}

var errForgotten = &abi.Error{
	Code: abi.Conflict, Op: "policy", Message: "what the policies have recalled has changed meanwhile", Remedy: "try again",
}

// writeMemories puts what is remembered into the records of graphs that keep
// their stores.
func (x *change) writeMemories() {
	x.recalled(func(home draft.Home, r *recollection) {
		if g := x.homeOf(home); g != nil && r.kept {
			for k := range r.now {
				x.record(g).PutMeta(k.MetaKey(), g.recall(k))
			}
		}
	})
}

// rememberNew has graphs that the change has made remember.
func (x *change) rememberNew() {
	x.recalled(func(home draft.Home, r *recollection) {
		if g := x.homeOf(home); g != nil && !r.kept && len(r.now) > 0 {
			r.keep(g, x.record(g))
		}
	})
}

// recall is what a graph remembers, as text; empty for nothing.
func (g *graph) recall(k memoryKey) string {
	if cell := g.memory[k]; cell != nil {
		return string(cell.Value)
	}
	return ""
}
