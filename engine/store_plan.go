package engine

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/regroup"
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

// storeGroup is a group of graphs with their sections before the change.
type storeGroup struct {
	*regroup.Group
	before []section            // as Before
	moved  []journal.CreatureID // oldest first
}

// delta summarizes the merge or split of the graphs of the group, if any.
func (g *storeGroup) delta(x *change) (journal.Delta, bool) {
	kind := g.Outcome()
	if kind == journal.CutNone {
		return journal.Delta{}, false
	}
	d := journal.Delta{Kind: kind, OldGraphs: []journal.GraphID{}, NewGraphs: g.After, Affected: journal.List(g.moved), Renamed: []journal.Renamed{}}
	for _, b := range g.before {
		d.OldGraphs = append(d.OldGraphs, b.id)
	}
	for i := range x.sealed.Deltas {
		for _, r := range x.sealed.Deltas[i].Renamed {
			home := x.e.topo.GraphOf(r.Creature)
			if r.Channel != "" {
				home = x.e.topo.ChannelGraph(r.Channel)
			}
			if slices.Contains(g.After, home) {
				d.Renamed = append(d.Renamed, journal.Renamed(r))
			}
		}
	}
	return d, true
}

// planStores compares the graphs of members before and after the change.
func (x *change) planStores() *storePlan {
	p := &storePlan{children: map[journal.GraphID]journal.Store{}, first: map[journal.GraphID]int{}, meta: map[journal.GraphID]map[string]string{}, goesOn: map[section][]journal.GraphID{}}
	if !x.movesGraphs() {
		return p
	}
	var groups regroup.Groups
	x.findMoves()
	for graph, g := range x.paused {
		for after := range x.present[graph] {
			groups.Join(g.id, after)
		}
		if len(x.present[graph]) > 0 {
			continue
		}
		if after, merged := x.e.topo.Current(g.id); merged { // before its last member left
			groups.Join(g.id, after)
		} else {
			groups.End(g.id)
		}
	}
	for id := range x.creatures {
		if after := x.e.topo.GraphOf(id); after != "" {
			groups.Begin(after)
		}
	}
	of := map[journal.GraphID]*storeGroup{} // by the graphs before
	for _, found := range groups.Found(x.passed) {
		g := &storeGroup{Group: found}
		for _, id := range g.Before {
			g.before = append(g.before, x.graph(id))
			of[id] = g
		}
		p.groups = append(p.groups, g)
	}
	for _, cr := range x.movers {
		g := of[cr.home.load().id]
		g.moved = append(g.moved, cr.id)
	}
	return p
}

// movesGraphs reports whether the change creates or ends graphs, or moves members between them.
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

// findMoves finds x.movers and x.present. It looks only at members that the change moves or
// removes: the others stay, so the cost does not grow with the graphs.
func (x *change) findMoves() {
	gone, seen := map[*graph]int{}, map[*creature]bool{}
	x.present = map[*graph]map[journal.GraphID]bool{}
	note := func(from *graph, now journal.GraphID) {
		if x.present[from] == nil {
			x.present[from] = map[journal.GraphID]bool{}
		}
		if now != "" {
			x.present[from][now] = true
		}
	}
	for i := range x.sealed.Deltas {
		for _, c := range x.sealed.Deltas[i].Changes {
			switch cr, ch := x.e.creatures[c.Creature], x.e.channels[c.Channel]; c.Kind {
			case topology.CreatureMoved, topology.CreatureRemoved:
				if cr == nil || seen[cr] { // nil: new
					continue
				}
				seen[cr] = true
				from, now := cr.home.load(), x.e.topo.GraphOf(cr.id)
				if now == from.id {
					continue
				}
				note(from, now)
				if gone[from]++; now != "" {
					x.movers = append(x.movers, cr)
				}
			case topology.ChannelMoved:
				if ch != nil {
					note(ch.home.load(), x.e.topo.ChannelGraph(ch.id))
				}
			}
		}
	}
	slices.SortFunc(x.movers, olderCreature)
	for graph, g := range x.paused {
		if len(g.creatures) > gone[graph] {
			note(graph, g.id)
			continue
		}
		for id := range g.channels { // one may have stayed for new creatures
			note(graph, x.e.topo.ChannelGraph(id))
		}
	}
}

// goesOnIn reports whether any member of g is now in the graph after. If g has no
// members left, it reports whether g has become part of that graph earlier.
func (s *steps) goesOnIn(e locked, g section, after journal.GraphID) bool {
	if present := s.present[g.graph]; len(present) > 0 {
		return present[after]
	}
	now, _ := e.topo.Current(g.id)
	return now == after
}

// noteSuccessors records the successors of graphs that end, for filters. The successor is the
// first graph that continues their history, which [journal.NewSuccession] determines from the
// lineage of their stores. Within the change they may have been part of another graph.
func (p *storePlan) noteSuccessors(x *change) {
	for _, g := range p.groups {
		for _, b := range g.before {
			i := slices.IndexFunc(g.After, func(id journal.GraphID) bool { return x.goesOnIn(x.e, b, id) })
			if _, on := x.e.topo.Born(b.id); !on && i >= 0 {
				x.e.observers.Successors.Store(b.id, g.After[i])
			}
		}
	}
}

func byAge(a, b section) int { return cmp.Or(cmp.Compare(a.born, b.born), byGraphID(a, b)) }

// goingOnIn lists the graphs of a group that have become part of a graph.
func (x *change) goingOnIn(group *storeGroup, id journal.GraphID) []section {
	var out []section
	for _, b := range group.before {
		if x.goesOnIn(x.e, b, id) {
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
