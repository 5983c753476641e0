package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// AddWire adds an output wire and returns it with its id. It returns not_found for creatures and
// predicates that do not exist, not_connected for creatures of two graphs, already_exists for a
// name or a wire that From already has, and limit for one wire too many.
func (e *Engine) AddWire(ctx context.Context, w journal.OutputWire) (journal.OutputWire, error) {
	return oneStep(ctx, e, func(b *Batch) (journal.OutputWire, error) { return b.AddWire(ctx, w) })
}

// RemoveWire removes an output wire and returns it as it was. Turns that commit later
// deliver nothing over it.
func (e *Engine) RemoveWire(ctx context.Context, id journal.WireID) (journal.OutputWire, error) {
	return oneStep(ctx, e, func(b *Batch) (journal.OutputWire, error) { return b.RemoveWire(ctx, id) })
}

// AddWire is [Engine.AddWire] as a step of a batch.
func (b *Batch) AddWire(ctx context.Context, w journal.OutputWire) (journal.OutputWire, error) {
	return b.x.AddWire(ctx, w)
}

// RemoveWire is [Engine.RemoveWire] as a step of a batch.
func (b *Batch) RemoveWire(ctx context.Context, id journal.WireID) (journal.OutputWire, error) {
	return b.x.RemoveWire(ctx, id)
}

// FindWire is [Engine.FindWire], with the wires of the batch.
func (b *Batch) FindWire(from journal.CreatureID, name string) (journal.OutputWire, error) {
	if w, ok := b.x.FindWire(journal.WireID(name)); ok {
		return w, nil
	}
	list := b.x.WiresOf(from)
	if i := draft.WireNamed(list, name); i >= 0 {
		return list[i], nil
	}
	return journal.OutputWire{}, draft.NoWire(name)
}

// FindWire finds an output wire by its id or, given its sender, by its name.
func (e *Engine) FindWire(from journal.CreatureID, name string) (journal.OutputWire, error) {
	l := e.core.rlock()
	defer l.runlock()
	if cr := l.wires[journal.WireID(name)]; cr != nil {
		return cr.wires[draft.WireWithID(cr.wires, journal.WireID(name))], nil
	}
	if cr := l.creatures[from]; cr != nil {
		if i := draft.WireNamed(cr.wires, name); i >= 0 {
			return cr.wires[i], nil
		}
	}
	return journal.OutputWire{}, draft.NoWire(name)
}

// Wires lists the output wires of a graph, or of all graphs, ordered by the age of the
// sender, oldest first.
func (e *Engine) Wires(id journal.GraphID) ([]journal.OutputWire, error) {
	l := e.core.rlock()
	defer l.runlock()
	graphs, err := l.presentOrAll(id)
	if err != nil {
		return nil, err
	}
	out := []journal.OutputWire{}
	for _, graph := range graphs {
		g := graph.enter()
		out = append(out, g.wires()...)
		g.leave()
	}
	return out, nil
}

// WiresOf lists the output wires from a creature, and the wires of its graph that lead to
// it. If the creature is the root, these include the wires to the root.
func (e *Engine) WiresOf(creature journal.CreatureID) (out, in []journal.OutputWire, err error) {
	c, g, err := e.core.enterCreature(creature)
	if err != nil {
		return nil, nil, err
	}
	defer g.leave()
	out, in = g.wiresOf(c)
	return out, in, nil
}

// wires lists the output wires of the graph.
func (g section) wires() []journal.OutputWire {
	out := []journal.OutputWire{}
	for _, c := range g.sortedCreatures() {
		out = append(out, c.wires...)
	}
	return out
}

// wiresOf is [Engine.WiresOf].
func (g section) wiresOf(c *creature) (out, in []journal.OutputWire) {
	for _, w := range g.wires() {
		if w.To == c.id || w.To == journal.ToRoot && g.target(g.creatures[w.From], &w) == c {
			in = append(in, w)
		}
	}
	return journal.List(slices.Clone(c.wires)), journal.List(in)
}

// target is where a creature's wire leads at the moment: a member of the graph, or nil.
func (g section) target(from *creature, w *journal.OutputWire) *creature {
	if w.To == journal.ToRoot {
		return g.rootOf(from)
	}
	return g.creatures[w.To]
}

// rootOf is the root of a creature's own deployment or, if that has none, the oldest root
// of the graph.
func (g section) rootOf(c *creature) (root *creature) {
	for _, r := range g.roots {
		if (c.deployment == "" || r.deployment == c.deployment) && (root == nil || r.born < root.born) {
			root = r
		}
	}
	return root
}
