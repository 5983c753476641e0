package topology

import (
	"slices"
)

// Snapshot returns the complete state as plain data, every list oldest first.
func (s *State) Snapshot() Snapshot {
	var snap Snapshot
	for _, c := range slices.SortedFunc(s.creatures.values(), byAge) {
		snap.Creatures = append(snap.Creatures, c.describe())
	}
	for _, ch := range slices.SortedFunc(s.channels.values(), byChannelAge) {
		snap.Channels = append(snap.Channels, ch.describe())
	}
	for _, g := range slices.SortedFunc(s.graphs.values(), byGraphAge) {
		snap.Graphs = append(snap.Graphs, Graph{ID: g.id, Born: g.born})
	}
	edges := make([]edge, 0, 2*s.linkCount)
	for ch := range s.channels.values() {
		edges = ch.appendEdges(edges)
	}
	slices.SortFunc(edges, byOrder)
	for _, e := range edges {
		snap.Edges = append(snap.Edges, e.describe())
	}
	return snap
}
