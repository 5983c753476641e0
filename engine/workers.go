package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/topology"
)

// Workers is what becomes of a creature's workers when it is removed. A worker is
// a creature that it is the parent of, that no recipe declares and that is not
// privileged.
type Workers uint8

// What becomes of workers.
const (
	WorkersKeep   Workers = iota // they stay, without a parent
	WorkersRemove                // they go in the same change, and so do theirs
)

// String returns "keep" or "remove".
func (w Workers) String() string {
	return [...]string{"keep", "remove"}[w]
}

// ParseWorkers reads what [Workers.String] writes.
func ParseWorkers(s string) (Workers, bool) {
	for w := WorkersKeep; w <= WorkersRemove; w++ {
		if w.String() == s {
			return w, true
		}
	}
	return 0, false
}

// withWorkers has the removals among the operations take the workers along that
// go with a creature. What has an operation of its own keeps it.
func (x *change) withWorkers(ops []topology.Op) []topology.Op {
	own := map[CreatureID]bool{}
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
			workers := slices.DeleteFunc(x.workersOf(r.ID), func(id CreatureID) bool { return own[id] })
			r.With = append(slices.Clone(r.With), workers...)
			out[i] = r
		}
	}
	return out
}

// workersOf lists who goes with a creature when it is removed: its workers and
// theirs, as far as they are in its graph, parents first.
func (x *change) workersOf(id CreatureID) []CreatureID {
	if c := x.creature(id); c == nil || c.spec.Workers != WorkersRemove {
		return nil
	}
	graph := x.e.topo.GraphOf(id)
	var out []CreatureID
	seen := map[CreatureID]bool{id: true}
	for parents := []CreatureID{id}; len(parents) > 0; parents = parents[1:] {
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
func (x *change) childrenOf(parent CreatureID) []*creature {
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
func removedBy(d *topology.Delta) []CreatureID {
	var out []CreatureID
	for _, c := range d.Changes {
		if c.Kind == topology.CreatureRemoved {
			out = append(out, c.Creature)
		}
	}
	return out
}
