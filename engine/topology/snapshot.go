package topology

import (
	"maps"
	"slices"
)

// Snapshot returns the whole state as plain data, every list eldest first.
func (s *State) Snapshot() Snapshot {
	var snap Snapshot
	for _, c := range slices.SortedFunc(maps.Values(s.creatures), byAge) {
		snap.Creatures = append(snap.Creatures, c.describe())
	}
	for _, ch := range slices.SortedFunc(maps.Values(s.channels), byChannelAge) {
		snap.Channels = append(snap.Channels, ch.describe())
	}
	for _, g := range slices.SortedFunc(maps.Values(s.graphs), byGraphAge) {
		snap.Graphs = append(snap.Graphs, Graph{ID: g.id, Born: g.born})
	}
	edges := make([]edge, 0, 2*s.linkCount)
	for _, ch := range s.channels {
		edges = ch.appendEdges(edges)
	}
	slices.SortFunc(edges, byOrder)
	for _, e := range edges {
		snap.Edges = append(snap.Edges, e.describe())
	}
	return snap
}
