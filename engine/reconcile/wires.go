package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// wireOutputs gives the deployment's creatures the wires of the recipe and
// removes all others. An unchanged wire, name included, keeps its id. It runs
// after the operations of the draft, because wires need their ends in one
// graph.
func (r *Reconciliation) wireOutputs(ctx context.Context) error {
	for i := range r.d.Creatures {
		spec := &r.d.Creatures[i]
		id := r.Creatures[spec.Address]
		if id == "" {
			continue // removed at run time
		}
		had := r.draft.WiresOf(id)
		if len(had) == 0 && len(spec.Outputs) == 0 {
			continue
		}
		r.draft.SetWires(id, nil)
		outputs := r.drift.outputs(r, spec, id, had)
		for k := range outputs {
			if err := r.wireOutput(ctx, id, &outputs[k], had); err != nil {
				if at := outputs[k].Where; at != "" {
					err = fmt.Errorf("%s: %s: %w", at, spec.Address, err)
				}
				return err
			}
		}
		for _, w := range r.drift.wires(r, spec, had) {
			if draft.RoomForWire(r.draft.WiresOf(id), &w) == nil { // else the recipe now has such a wire
				r.draft.KeepWire(w)
			}
		}
		r.draft.NoteDropped(id, had)
	}
	return nil
}

// wireOutput adds one wire of the recipe, or keeps it.
func (r *Reconciliation) wireOutput(ctx context.Context, from journal.CreatureID, s *deploy.OutputSpec, had []journal.OutputWire) error {
	to := journal.ToRoot
	if s.To != string(journal.ToRoot) {
		if to = r.Creatures[s.To]; to == "" {
			return &abi.Error{Code: abi.NotFound, Op: "apply", Message: "there is no creature " + s.To, Remedy: "use the address of a creature of the deployment"}
		}
	}
	wire := s.Wire(from, to)
	i := slices.IndexFunc(had, func(w journal.OutputWire) bool { return w.Name == s.Name && wire.SameAs(w) })
	if i < 0 {
		_, err := r.draft.AddWire(ctx, wire)
		return err
	}
	if err := r.draft.CheckWire(&wire); err != nil { // its predicate may be missing
		return err
	}
	r.draft.KeepWire(had[i])
	return nil
}
