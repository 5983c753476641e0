package engine

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// wireOutputs adds the wires of a creature that the batch has just added.
func (b *Batch) wireOutputs(added Added, specs []deploy.OutputSpec) error {
	for i := range specs {
		to := journal.ToRoot
		if s := &specs[i]; s.To != string(journal.ToRoot) {
			var err error
			if to, err = b.FindCreature(added.Graph, s.To); err != nil {
				return err
			}
		}
		if _, err := b.AddWire(specs[i].Wire(added.Creature, to)); err != nil {
			return err
		}
	}
	return nil
}

// wireOutputs gives the deployment's creatures the wires of the recipe and takes
// all others away. A wire that is as it was, name included, goes on under its id.
// It belongs behind the operations of the change, for wires lead to members of
// the same graph.
func (a *application) wireOutputs(x *change) error {
	for i := range a.d.Creatures {
		spec := &a.d.Creatures[i]
		cr := x.creature(a.creatures[spec.Address])
		if cr == nil {
			continue // removed while the recipe ran
		}
		had := x.wiresOf(cr)
		if len(had) == 0 && len(spec.Outputs) == 0 {
			continue
		}
		x.setWires(cr, nil)
		outputs := a.drift.outputs(a, spec, cr, had)
		for k := range outputs {
			if err := a.wireOutput(x, cr, &outputs[k], had); err != nil {
				if at := outputs[k].Where; at != "" {
					err = fmt.Errorf("%s: %s: %w", at, spec.Address, err)
				}
				return err
			}
		}
		for _, w := range a.drift.wires(a, spec, had) {
			if roomForWire(x.wiresOf(cr), &w) == nil { // or the recipe has such a one now
				keepWire(x, cr, w)
			}
		}
		for _, w := range had {
			if wireWithID(x.wiresOf(cr), w.ID) < 0 {
				x.wires.notes = append(x.wires.notes, wireNote{kind: journal.EventWireRemoved, wire: w, reason: wireRecipe})
			}
		}
	}
	return nil
}

// wireOutput adds one wire of the recipe, or keeps it.
func (a *application) wireOutput(x *change, cr *creature, s *deploy.OutputSpec, had []journal.OutputWire) error {
	to := journal.ToRoot
	if s.To != string(journal.ToRoot) {
		if to = a.creatures[s.To]; to == "" {
			return &abi.Error{Code: abi.NotFound, Op: "apply", Message: "there is no creature " + s.To, Remedy: "name one of the deployment, by its address"}
		}
	}
	wire := s.Wire(cr.id, to)
	i := slices.IndexFunc(had, func(w journal.OutputWire) bool { return w.Name == s.Name && wire.SameAs(w) })
	if i < 0 {
		_, err := x.addWire(wire)
		return err
	}
	if err := x.mayWire(&wire); err != nil { // its predicate may be gone
		return err
	}
	keepWire(x, cr, had[i])
	return nil
}

// keepWire puts a wire that was there behind those that its creature has so far.
func keepWire(x *change, cr *creature, w journal.OutputWire) {
	list, place := x.wiresOf(cr), uint64(1)
	if len(list) > 0 {
		place = list[len(list)-1].Order + 1
	}
	if place != w.Order {
		w.Order = place
		x.wires.notes = append(x.wires.notes, wireNote{wire: w})
	}
	x.setWires(cr, append(slices.Clip(list), w))
}
