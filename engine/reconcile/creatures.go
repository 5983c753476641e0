package reconcile

import (
	"context"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/topology"
)

// addCreature resumes a creature of the deployment, or creates it.
func (r *Reconciliation) addCreature(ctx context.Context, spec *deploy.CreatureSpec) {
	address := spec.Address
	privileged := spec.Privileged || r.d.Root != "" && address == r.d.Root
	live, exists := r.live[address]
	if !exists {
		id := r.draft.IDs.NewCreature()
		r.Creatures[address] = id
		r.Created = append(r.Created, address)
		r.runtime.Create(spec, id)
		r.then(topology.AddCreature{ID: id, Name: spec.Name, Privileged: privileged, Stopped: spec.Stopped})
		return
	}
	if r.runtime.Update(ctx, spec, live.ID) {
		r.Changed = append(r.Changed, address)
	}
	r.Creatures[address] = live.ID
	r.Resumed = append(r.Resumed, address)
	t, _ := r.draft.Topology().Creature(live.ID)
	if (t.Stopped != spec.Stopped || t.Paused) && !r.drift.leavesStopped(spec) {
		r.then(topology.SetStopped{ID: live.ID, Stopped: spec.Stopped})
	}
	if t.Privileged != privileged && !r.drift.leavesPrivilege(address, privileged) {
		r.then(topology.SetPrivileged{ID: live.ID, Privileged: privileged})
	}
	if t.Root && address != r.d.Root && !r.drift.leavesRoot(r.d) {
		r.then(topology.SetRoot{ID: live.ID})
	}
}

// setRoot assigns the recipe's root.
func (r *Reconciliation) setRoot(wanted []wantedEdge) {
	if r.drift.leavesRoot(r.d) {
		r.drift.acquaint(r)
		return
	}
	r.drift.demote(r, wanted)
	if id := r.Creatures[r.d.Root]; id != "" {
		r.then(topology.SetRoot{ID: id, Root: true})
	}
}

// setNames gives creatures and moved channels their names in the recipe. It comes last, when
// removed creatures have released their names, so that a new creature can take
// over the name of another.
func (r *Reconciliation) setNames() {
	var renamed, created []topology.Naming
	for i := range r.d.Creatures {
		spec := &r.d.Creatures[i]
		id := r.Creatures[spec.Address]
		naming := topology.Naming{ID: id, Name: spec.Name}
		if t, exists := r.draft.Topology().Creature(id); !exists {
			if id != "" {
				created = append(created, naming)
			}
		} else if !isNumbered(t.Name, spec.Name) && !r.drift.leavesName(spec) {
			renamed = append(renamed, naming)
		}
	}
	channels := r.movedNames()
	switch {
	case len(renamed) > 0 || len(r.leaving) > 0 && len(created) > 0:
		r.then(topology.SetNames{Names: append(renamed, created...), Channels: channels})
	case len(channels) > 0:
		r.then(topology.SetNames{Channels: channels})
	}
}

// movedNames are the names of channels whose address has changed.
func (r *Reconciliation) movedNames() (out []topology.ChannelNaming) {
	for _, spec := range r.d.Channels {
		id := r.Channels[spec.Address]
		if ch, exists := r.base.Channel(id); exists && ch.Address != spec.Address {
			if t, ok := r.draft.Topology().Channel(id); ok && !isNumbered(t.Name, spec.Name) {
				out = append(out, topology.ChannelNaming{ID: id, Name: spec.Name})
			}
		}
	}
	return out
}

// isNumbered reports whether a creature has a name, possibly followed by a
// number that a merge has added.
func isNumbered(is, name string) bool {
	number, ok := strings.CutPrefix(is, name+"~")
	_, err := strconv.ParseUint(number, 10, 32)
	return is == name || ok && err == nil
}
