// Package regrow finds the operations that restore a saved graph.
//
// The oldest creature makes the graph, the channels are declared in it, and
// every other creature joins through edges to existing ones. So the graph is
// always in one piece, and nothing merges. Operations keep ids, ages, and the
// order of edges. An inbox channel comes with its creature.
package regrow

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Operations returns the operations from nothing to the saved graph. known
// returns the id of a creature's parent, or "" if that creature no longer
// exists, and stopped reports whether a creature will not run although it was
// not stopped.
func Operations(saved *journal.SavedGraph, known func(journal.CreatureID) journal.CreatureID, stopped func(journal.CreatureID) bool) []topology.Op {
	has := map[journal.ChannelID]bool{}
	for i := range saved.Channels {
		has[saved.Channels[i].ID] = true
	}
	edges := map[journal.CreatureID][]journal.EdgeRow{}
	sorted := slices.Clone(saved.Edges)
	slices.SortFunc(sorted, func(a, b journal.EdgeRow) int { return cmp.Compare(a.Order, b.Order) })
	for _, e := range sorted {
		if has[e.Channel] {
			edges[e.Creature] = append(edges[e.Creature], e)
		}
	}
	channels := slices.Clone(saved.Channels)
	slices.SortFunc(channels, func(a, b journal.ChannelRow) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
	})
	var ops []topology.Op
	for i, row := range byNeighbourhood(saved.Creatures, edges) {
		op := topology.AddCreature{
			ID: row.ID, Name: row.Name, Parent: known(row.Parent), Privileged: row.Privileged,
			Root: row.Root, Stopped: row.Stopped || stopped(row.ID), Paused: row.State() == journal.Paused,
			Born: row.Born, GraphBorn: saved.Born,
		}
		if i > 0 {
			for _, e := range edges[row.ID] {
				op.Edges = append(op.Edges, topology.Wire{Channel: e.Channel, Direction: e.Direction, Alias: e.Alias})
			}
			ops = append(ops, op)
			continue
		}
		ops = append(ops, op)
		for _, ch := range channels {
			if ch.Inbox == "" {
				ops = append(ops, topology.AddChannel{ID: ch.ID, With: row.ID, Name: ch.Name, Report: ch.Report, Born: ch.Born})
			}
		}
		for _, e := range edges[row.ID] {
			ops = append(ops, topology.SetEdge{Creature: row.ID, Channel: e.Channel, Direction: e.Direction, On: true, Alias: e.Alias})
		}
	}
	return ops
}

// byNeighbourhood orders the creatures of a graph so that each one except the
// first shares a channel with an earlier one.
func byNeighbourhood(creatures []journal.CreatureRow, edges map[journal.CreatureID][]journal.EdgeRow) []journal.CreatureRow {
	members := map[journal.ChannelID][]journal.CreatureRow{}
	for _, row := range creatures {
		for _, e := range edges[row.ID] {
			members[e.Channel] = append(members[e.Channel], row)
		}
	}
	var out []journal.CreatureRow
	seen := map[journal.CreatureID]bool{}
	add := func(row journal.CreatureRow) {
		if !seen[row.ID] {
			seen[row.ID] = true
			out = append(out, row)
		}
	}
	for _, row := range creatures {
		from := len(out)
		for add(row); from < len(out); from++ {
			for _, e := range edges[out[from].ID] {
				for _, neighbour := range members[e.Channel] {
					add(neighbour)
				}
				delete(members, e.Channel)
			}
		}
	}
	return out
}
