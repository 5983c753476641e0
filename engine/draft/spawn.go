package draft

import (
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// Kind is the key by which spawned creatures are counted.
type Kind struct{ Deployment, Species string }

// KindOf returns ok for a spawned creature: one of a deployment's species that
// the deployment does not declare.
func KindOf(deployment string, spec *deploy.CreatureSpec) (k Kind, ok bool) {
	return Kind{deployment, spec.Species}, deployment != "" && spec.Species != "" && spec.Address == ""
}

// MaySpawn refuses a creature if the limit of its species is reached.
func (d *Draft) MaySpawn(m Member) error {
	k, ok := KindOf(m.Deployment, m.Spec)
	if !ok {
		return nil
	}
	s := d.base.Species(k)
	if s == nil {
		return nil
	}
	n := d.Alive(k)
	if n < s.Spawnable {
		return nil
	}
	return &abi.Error{
		Code: abi.LimitExceeded, Op: "spawn", Message: fmt.Sprintf("the species %s has reached its limit (spawnable: %d, alive: %d)", k.Species, s.Spawnable, n),
		Remedy: "remove one first, or raise spawnable in the recipe",
		IDs:    map[string]string{"limit": "spawnable", "species": k.Species, "deployment": k.Deployment},
	}
}

// Alive counts the creatures spawned from a species, including those that the
// draft adds and without those that it removes.
func (d *Draft) Alive(kind Kind) int {
	n := d.base.Alive(kind)
	for id, m := range d.creatures {
		if k, ok := KindOf(m.Deployment, m.Spec); !ok || k != kind || d.topo.GraphOf(id) == "" {
			continue
		}
		if _, exists := d.base.Member(id); !exists {
			n++
		}
	}
	for i := range d.deltas {
		for _, id := range RemovedBy(&d.deltas[i]) {
			m, exists := d.base.Member(id)
			if !exists {
				continue
			}
			if k, ok := KindOf(m.Deployment, m.Spec); ok && k == kind {
				n--
			}
		}
	}
	return n
}
