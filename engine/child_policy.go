package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// withWorkers has the removals among the operations take the workers along that
// go with a creature. What has an operation of its own keeps it.
func (x *change) withWorkers(ops []topology.Op) []topology.Op {
	own := map[journal.CreatureID]bool{}
	for _, op := range ops {
		if r, ok := op.(topology.RemoveCreature); ok {
			own[r.ID] = true
		}
	}
	if len(own) == 0 {
		return ops
	}
	out := slices.Clone(ops)
	for i, op := range out {
		if r, ok := op.(topology.RemoveCreature); ok {
			workers := slices.DeleteFunc(x.workersOf(r.ID), func(id journal.CreatureID) bool { return own[id] })
			r.With = append(slices.Clone(r.With), workers...)
			out[i] = r
		}
	}
	return out
}

// workersOf lists who goes with a creature when it is removed: its workers and
// theirs, as far as they are in its graph, parents first.
func (x *change) workersOf(id journal.CreatureID) []journal.CreatureID {
	if c := x.creature(id); c == nil || c.spec.Workers != deploy.WorkersRemove {
		return nil
	}
	graph := x.e.topo.GraphOf(id)
	var out []journal.CreatureID
	seen := map[journal.CreatureID]bool{id: true}
	for parents := []journal.CreatureID{id}; len(parents) > 0; parents = parents[1:] {
		for _, child := range x.childrenOf(parents[0]) {
			t, ok := x.e.topo.Creature(child.id)
			if !ok || t.Graph != graph || t.Privileged || child.spec.Address != "" || seen[child.id] {
				continue
			}
			seen[child.id] = true
			out = append(out, child.id)
			parents = append(parents, child.id)
		}
	}
	return out
}

// childrenOf lists the creatures whose parent a creature is, with those that the
// change adds, eldest first.
func (x *change) childrenOf(parent journal.CreatureID) []*creature {
	out := x.e.children(parent)
	for id, c := range x.creatures {
		if x.e.creatures[id] == nil && c.parent == parent {
			out = append(out, c)
		}
	}
	born := func(c *creature) uint64 {
		t, _ := x.e.topo.Creature(c.id)
		return t.Born
	}
	slices.SortFunc(out, func(a, b *creature) int { return compare(born(a), born(b)) })
	return out
}

// removedBy lists the creatures that an operation has removed.
func removedBy(d *topology.Delta) []journal.CreatureID {
	var out []journal.CreatureID
	for _, c := range d.Changes {
		if c.Kind == topology.CreatureRemoved {
			out = append(out, c.Creature)
		}
	}
	return out
}
