package draft

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// withWorkers adds, for each removal among the operations, the removals of the
// creature's workers. Creatures that have their own operation keep it.
func (d *Draft) withWorkers(ops []topology.Op) []topology.Op {
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
			workers := slices.DeleteFunc(d.WorkersOf(r.ID), func(id journal.CreatureID) bool { return own[id] })
			r.With = append(slices.Clone(r.With), workers...)
			out[i] = r
		}
	}
	return out
}

// WorkersOf lists the creatures that are removed together with one: its
// workers and theirs, as far as they are in its graph, parents first.
func (d *Draft) WorkersOf(id journal.CreatureID) []journal.CreatureID {
	if m, ok := d.Member(id); !ok || m.Spec.Workers != deploy.WorkersRemove {
		return nil
	}
	graph := d.topo.GraphOf(id)
	var out []journal.CreatureID
	seen := map[journal.CreatureID]bool{id: true}
	for parents := []journal.CreatureID{id}; len(parents) > 0; parents = parents[1:] {
		for _, child := range d.childrenOf(parents[0]) {
			t, ok := d.topo.Creature(child.ID)
			if !ok || t.Graph != graph || t.Privileged || child.Spec.Address != "" || seen[child.ID] {
				continue
			}
			seen[child.ID] = true
			out = append(out, child.ID)
			parents = append(parents, child.ID)
		}
	}
	return out
}

// childrenOf lists the children of a creature, including those that the draft
// adds, oldest first.
func (d *Draft) childrenOf(parent journal.CreatureID) []Member {
	out := d.base.Children(parent)
	for id, m := range d.creatures {
		if m.Parent != parent {
			continue
		}
		if _, exists := d.base.Member(id); !exists {
			out = append(out, m)
		}
	}
	born := make(map[journal.CreatureID]uint64, len(out))
	for _, m := range out {
		c, _ := d.topo.Creature(m.ID)
		born[m.ID] = c.Born
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(born[a.ID], born[b.ID]) })
	return out
}

// ParentLeft returns the parent that a creature will have if nothing more is
// staged: links to creatures that are removed, or that a split moves to
// another graph, are dropped.
func (d *Draft) ParentLeft(m Member) journal.CreatureID {
	if _, exists := d.base.Member(m.Parent); !exists {
		return m.Parent // the parent was never here; the given value is kept
	}
	home := d.live.Home(m.ID)
	together := home == "" || home == d.live.Home(m.Parent) // the draft spawned it, or they were in one graph before
	if d.topo.GraphOf(m.Parent) == "" || together && d.Parted(m.ID, m.Parent) {
		return ""
	}
	return m.Parent
}

// RemovedBy lists the creatures that an operation has removed.
func RemovedBy(delta *topology.Delta) []journal.CreatureID {
	var out []journal.CreatureID
	for _, c := range delta.Changes {
		if c.Kind == topology.CreatureRemoved {
			out = append(out, c.Creature)
		}
	}
	return out
}
