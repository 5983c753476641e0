package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// maySpawn refuses a creature if as many of its species are alive as may be, on
// the topology as the change has it.
func (x *change) maySpawn(c *creature) error {
	k, ok := c.spawnKind()
	t := x.e.templates[k]
	if !ok || t == nil {
		return nil
	}
	n := x.alive(k)
	if n < t.Spawnable {
		return nil
	}
	return &abi.Error{
		Code: abi.LimitExceeded, Op: "spawn", Message: fmt.Sprintf("%d creatures of the species %s are alive, and its limit spawnable is %d", n, k.species, t.Spawnable),
		Remedy: "remove one first, or raise spawnable in the recipe",
		IDs:    map[string]string{"limit": "spawnable", "species": k.species, "deployment": k.deployment},
	}
}

// alive counts the creatures that were spawned of a species, with those that the
// change adds and without those that it removes.
func (x *change) alive(kind spawnKind) int {
	n := x.e.spawned[kind]
	for id, c := range x.creatures {
		if k, ok := c.spawnKind(); ok && k == kind && x.e.creatures[id] == nil && x.e.topo.GraphOf(id) != "" {
			n++
		}
	}
	for c := range x.removed() {
		if k, ok := c.spawnKind(); ok && k == kind {
			n--
		}
	}
	return n
}

// removed goes over the creatures that were there before the change, and are not
// any more.
func (x *change) removed() func(yield func(*creature) bool) {
	return func(yield func(*creature) bool) {
		for i := range x.deltas {
			for _, id := range removedBy(&x.deltas[i]) {
				if c := x.e.creatures[id]; c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

// ofSpecies completes a specification that names a species instead of a module,
// and returns a reference to the species' module, which has to be closed.
func (e *Engine) ofSpecies(spec deploy.CreatureSpec) (deploy.CreatureSpec, abi.Module, error) {
	switch {
	case spec.Address != "":
		return spec, nil, errtext.Invalid("spawn", "a creature that is spawned has no address", "leave the address out")
	case spec.Limits != (abi.Limits{}) || spec.Restart != (deploy.RestartPolicy{}) || spec.Grants != (journal.Grants{}) || spec.Overflow != 0:
		return spec, nil, errtext.Invalid("spawn", "limits, restart, mailbox and grants are those of the species", "leave them out, or name a module instead")
	}
	t, _, err := e.spawnTemplate(spec.Deployment, spec.Species)
	if err != nil {
		return spec, nil, err
	}
	config, err := overlay(t.Spec.Config, spec.Config)
	if err != nil {
		return spec, nil, configError(spec.Name, err)
	}
	own := t.Spec
	own.Species, own.Deployment = t.kind.species, t.kind.deployment
	own.Secret = append(slices.Clone(own.Secret), spec.Secret...)
	own.Config, own.Wasm, own.Address, own.Where = config, nil, "", ""
	own.Name, own.Privileged, own.Stopped = spec.Name, spec.Privileged, spec.Stopped
	own.Listen, own.Send, own.Join, own.Parent = spec.Listen, spec.Send, spec.Join, spec.Parent
	own.Workers = cmp.Or(spec.Workers, own.Workers)
	return own, t.module.retain(), nil
}

// overlay lays one configuration over another, attribute by attribute.
func overlay(base, top json.RawMessage) (json.RawMessage, error) {
	if len(top) == 0 {
		return base, nil
	}
	out := map[string]json.RawMessage{}
	for _, raw := range []json.RawMessage{base, top} {
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return nil, err
		}
	}
	return journal.JSON(out), nil
}
