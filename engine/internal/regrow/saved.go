package regrow

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Saved are the saved graphs that have not been brought back, by id.
type Saved map[journal.GraphID]*journal.SavedGraph

// Sorted returns the graphs, oldest first.
func (s Saved) Sorted() []*journal.SavedGraph {
	return slices.SortedFunc(maps.Values(s), func(a, b *journal.SavedGraph) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.Graph, b.Graph))
	})
}

// With returns the graphs that have members of a deployment, oldest first.
func (s Saved) With(deployment string) []*journal.SavedGraph {
	return slices.DeleteFunc(s.Sorted(), func(g *journal.SavedGraph) bool {
		has := slices.ContainsFunc(g.Creatures, func(c journal.CreatureRow) bool { return c.Deployment == deployment })
		return !has && !slices.ContainsFunc(g.Channels, func(c journal.ChannelRow) bool { return c.Deployment == deployment })
	})
}

// Has reports whether a creature is in one of the graphs.
func (s Saved) Has(id journal.CreatureID) bool {
	for _, g := range s {
		if slices.ContainsFunc(g.Creatures, func(c journal.CreatureRow) bool { return c.ID == id }) {
			return true
		}
	}
	return false
}

// Rows copies graphs.
func Rows(list []*journal.SavedGraph) []journal.SavedGraph {
	out := make([]journal.SavedGraph, len(list))
	for i, g := range list {
		out[i] = *g
	}
	return out
}

// StartAbove makes sure that everything that is added to a topology later is younger than a
// saved graph.
func StartAbove(topo *topology.State, g *journal.SavedGraph) {
	var creature, channel, edge uint64
	for i := range g.Creatures {
		creature = max(creature, g.Creatures[i].Born)
	}
	for i := range g.Channels {
		channel = max(channel, g.Channels[i].Born)
	}
	for i := range g.Edges {
		edge = max(edge, g.Edges[i].Order)
	}
	topo.StartAbove(creature, channel, g.Born, edge)
}
