package engine

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// storePlan is what a change means for the stores. It groups the graphs before and
// after the change so that no group affects another.
type storePlan struct {
	groups   []*storeGroup
	children map[journal.GraphID]journal.Store // made by carryOut, by graph
	first    map[journal.GraphID]int           // how many events the first record has
	endings  []*ending                         // of graphs that end
	interim  []section                         // that got a temporary store of their own
	meta     map[journal.GraphID]map[string]string
	goesOn   map[section][]journal.GraphID // by former graph: the graphs whose stores have its history
}

// storeGroup is a set of graphs that exchange members in the change.
type storeGroup struct {
	before []section         // by id
	after  []journal.GraphID // by id
	moved  []journal.CreatureID
	passed bool // see change.passed
}

// kind is the kind of cut that the group needs.
func (g *storeGroup) kind() journal.CutKind {
	switch {
	case len(g.before) > 1 && len(g.after) == 1:
		return journal.CutMerge
	case len(g.before) == 1 && len(g.after) > 1:
		return journal.CutSplit
	case len(g.before) == 0 || len(g.after) == 0 || g.keeps():
		return journal.CutNone
	}
	return journal.CutRearrange
}

// findMoved lists the creatures whose graph id changes, oldest first.
func (g *storeGroup) findMoved(x *change) {
	var moved []*creature
	for _, b := range g.before {
		for _, cr := range b.creatures {
			if after := x.e.topo.GraphOf(cr.id); after != "" && after != b.id {
				moved = append(moved, cr)
			}
		}
	}
	slices.SortFunc(moved, func(a, b *creature) int { return cmp.Compare(a.born, b.born) })
	for _, cr := range moved {
		g.moved = append(g.moved, cr.id)
	}
}

// delta summarizes the merge or split of the graphs of the group, if any.
func (g *storeGroup) delta(x *change) (journal.Delta, bool) {
	kind := g.kind()
	switch {
	case kind == journal.CutNone || g.same():
		return journal.Delta{}, false
	case kind == journal.CutRearrange && len(g.after) > len(g.before):
		kind = journal.CutSplit
	case kind == journal.CutRearrange:
		kind = journal.CutMerge
	}
	d := journal.Delta{Kind: kind, OldGraphs: []journal.GraphID{}, NewGraphs: g.after, Affected: journal.List(g.moved), Renamed: []journal.Renamed{}}
	for _, b := range g.before {
		d.OldGraphs = append(d.OldGraphs, b.id)
	}
	for i := range x.sealed.Deltas {
		for _, r := range x.sealed.Deltas[i].Renamed {
			home := x.e.topo.GraphOf(r.Creature)
			if r.Channel != "" {
				home = x.e.topo.ChannelGraph(r.Channel)
			}
			if slices.Contains(g.after, home) {
				d.Renamed = append(d.Renamed, journal.Renamed(r))
			}
		}
	}
	return d, true
}

// keeps reports whether the group is one graph that keeps its store.
func (g *storeGroup) keeps() bool { return g.same() && !g.passed }

// same reports whether the group is one graph that keeps its id.
func (g *storeGroup) same() bool {
	return len(g.before) == 1 && len(g.after) == 1 && g.before[0].id == g.after[0]
}

// planStores compares the graphs of members before and after the change.
func (x *change) planStores() *storePlan {
	p := &storePlan{children: map[journal.GraphID]journal.Store{}, first: map[journal.GraphID]int{}, meta: map[journal.GraphID]map[string]string{}, goesOn: map[section][]journal.GraphID{}}
	if !x.movesGraphs() {
		return p
	}
	groups := map[string]*storeGroup{} // by a graph, "<" before or ">" after
	join := func(before section, after journal.GraphID) {
		a, b := groups["<"+string(before.id)], groups[">"+string(after)]
		switch {
		case a == nil && b == nil:
			a = &storeGroup{}
			p.groups = append(p.groups, a)
		case a == nil:
			a = b
		case b != nil && a != b:
			a.before, a.after = append(a.before, b.before...), append(a.after, b.after...)
			for key, g := range groups {
				if g == b {
					groups[key] = a
				}
			}
			p.groups = without(p.groups, b)
		}
		if !slices.Contains(a.before, before) {
			a.before = append(a.before, before)
		}
		if !slices.Contains(a.after, after) {
			a.after = append(a.after, after)
		}
		groups["<"+string(before.id)], groups[">"+string(after)] = a, a
	}
	for _, g := range x.paused {
		left := true
		for id := range g.creatures {
			if after := x.e.topo.GraphOf(id); after != "" {
				join(g, after)
				left = false
			}
		}
		for id := range g.channels {
			if after := x.e.topo.ChannelGraph(id); after != "" {
				join(g, after)
				left = false
			}
		}
		if !left {
			continue
		}
		if after, merged := x.e.topo.Current(g.id); merged { // before its last member left
			join(g, after)
		} else {
			p.groups = append(p.groups, &storeGroup{before: []section{g}})
		}
	}
	for id := range x.creatures {
		after := x.e.topo.GraphOf(id)
		if after != "" && groups[">"+string(after)] == nil {
			g := &storeGroup{after: []journal.GraphID{after}}
			groups[">"+string(after)] = g
			p.groups = append(p.groups, g)
		}
	}
	for _, g := range p.groups {
		slices.SortFunc(g.before, byGraphID)
		slices.Sort(g.after)
		g.passed = slices.ContainsFunc(g.before, func(b section) bool { return x.passed[b.id] })
		g.findMoved(x)
	}
	slices.SortFunc(p.groups, func(a, b *storeGroup) int { return cmp.Compare(a.key(), b.key()) })
	return p
}

func (g *storeGroup) key() string {
	if len(g.before) > 0 {
		return string(g.before[0].id)
	}
	return string(g.after[0])
}

// movesGraphs reports whether the change creates or ends graphs, or moves members
// between them.
func (x *change) movesGraphs() bool {
	for i := range x.sealed.Deltas {
		for _, c := range x.sealed.Deltas[i].Changes {
			switch c.Kind {
			case topology.GraphAdded, topology.GraphEnded, topology.CreatureMoved, topology.ChannelMoved:
				return true
			}
		}
	}
	return false
}

// durability is the strongest durability of the graphs before, or the requested one.
func (g *storeGroup) durability(x *change) journal.Durability {
	if len(g.before) == 0 {
		return x.recipe.durability
	}
	strongest := journal.Volatile
	for _, b := range g.before {
		strongest = max(strongest, b.durability)
	}
	return strongest
}

// metaOf returns the metadata of a graph that the change creates.
func (p *storePlan) metaOf(x *change, id journal.GraphID) map[string]string {
	if meta, ok := p.meta[id]; ok {
		return meta
	}
	return x.recipe.meta
}

// level sets the clocks of all graphs concerned to the latest of them, so that
// everything after the change is later than everything before it in any of them.
func (x *change) level(p *storePlan) {
	if len(p.groups) == 0 {
		return
	}
	for _, g := range x.paused {
		x.lastTime = max(x.lastTime, g.now)
	}
	for _, g := range x.paused {
		g.now = x.lastTime
	}
}

// goesOnIn reports whether any member of g is now in the graph after. If g has no
// members left, it reports whether g has become part of that graph earlier.
func (e locked) goesOnIn(g section, after journal.GraphID) bool {
	left := true
	for id := range g.creatures {
		switch e.topo.GraphOf(id) {
		case after:
			return true
		case "":
		default:
			left = false
		}
	}
	for id := range g.channels {
		switch e.topo.ChannelGraph(id) {
		case after:
			return true
		case "":
		default:
			left = false
		}
	}
	now, _ := e.topo.Current(g.id)
	return left && now == after
}

// noteSuccessors records the successors of graphs that end, for filters. The successor
// is the first graph that continues their history, which [journal.NewSuccession]
// determines from the lineage of their stores. Within the change they may have been
// part of another graph.
func (p *storePlan) noteSuccessors(x *change) {
	for _, g := range p.groups {
		for _, b := range g.before {
			i := slices.IndexFunc(g.after, func(id journal.GraphID) bool { return x.e.goesOnIn(b, id) })
			if _, on := x.e.topo.Graph(b.id); !on && i >= 0 {
				x.e.observers.Successors.Store(b.id, g.after[i])
			}
		}
	}
}

func byAge(a, b section) int { return cmp.Or(compare(a.born, b.born), byGraphID(a, b)) }

// goingOnIn lists the graphs of a group that have become part of a graph.
func (x *change) goingOnIn(group *storeGroup, id journal.GraphID) []section {
	var out []section
	for _, b := range group.before {
		if x.e.goesOnIn(b, id) {
			out = append(out, b)
		}
	}
	return out
}

// ending is the store of a graph that ends.
type ending struct {
	graph *graph
	store journal.Store
	last  uint64 // number of the last event
}

func byGraphID(a, b section) int { return cmp.Compare(a.id, b.id) }
