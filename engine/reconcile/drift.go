package reconcile

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Drift is what has become different while a deployment ran: the difference
// between what was asked for when it was applied last and what there is. It is
// carried over to what is asked for now, as a merge of two edited copies does
// it: what only running has changed stays, and what the recipe has changed is
// as the recipe says. With a nil Drift nothing stays. It serves one reconciliation.
type Drift struct {
	last      *deploy.Deployment
	creatures map[string]*deploy.CreatureSpec // of last, by address
	channels  map[string]bool                 // of last, by address
	edges     map[addressedEdge]string        // of last: aliases
	// sure says that what is not there was removed, and stays so. If a store could
	// not be read, it may be in that one.
	sure bool
	// heals has the recipe make again what it declares and is not there.
	heals bool
}

// DriftFrom compares with a deployment as it was applied last; nil: it was not, or the
// new one decides alone.
func DriftFrom(last *deploy.Deployment) *Drift {
	if last == nil {
		return nil
	}
	f := &Drift{last: last, creatures: map[string]*deploy.CreatureSpec{}, channels: map[string]bool{}, edges: map[addressedEdge]string{}}
	for i := range last.Creatures {
		f.creatures[last.Creatures[i].Address] = &last.Creatures[i]
	}
	for _, ch := range channelSpecsOf(last) {
		f.channels[ch.Address] = true
	}
	for _, w := range edgesOf(last) {
		f.edges[w.addressedEdge] = w.alias
	}
	return f
}

// HealingFrom is [DriftFrom] of a deployment that is running: what it declares and is
// not there is made again.
func HealingFrom(running *deploy.Deployment) *Drift {
	f := DriftFrom(running)
	f.heals = true
	return f
}

// Declared reports whether the deployment had a creature at an address when it was
// applied last.
func (f *Drift) Declared(address string) bool { return f != nil && f.creatures[address] != nil }

// removed reports whether a creature of the recipe was removed while it ran.
func (f *Drift) removed(r *Reconciliation, address string) bool {
	return f != nil && f.sure && f.creatures[address] != nil && !r.exists(address)
}

// declared reports whether the recipe decides about an address that it does not
// have any more.
func (f *Drift) declared(address string) bool { return f == nil || f.creatures[address] != nil }

// declaredChannel is declared for a channel.
func (f *Drift) declaredChannel(address string) bool { return f == nil || f.channels[address] }

// wanted leaves out the edges that were taken away while the recipe ran.
func (f *Drift) wanted(r *Reconciliation, all []wantedEdge, existing map[string]draft.Channel) []wantedEdge {
	if f == nil {
		return all
	}
	var out []wantedEdge
	for _, w := range all {
		if r.Creatures[w.creature] == "" {
			continue
		}
		if w.given && w.creature == r.d.Root && f.leavesRoot(r.d) && r.base.Root(r.d.Name) != r.Creatures[r.d.Root] {
			continue // another creature is the root; see acquaint
		}
		alias, before := f.edges[w.addressedEdge]
		if before && r.exists(w.creature) {
			ch, exists := existing[w.channel]
			on := exists && draft.EdgeKey{Creature: r.Creatures[w.creature], Channel: ch.ID, Direction: w.direction}.On(r.draft.Topology())
			if !on && f.sure {
				continue
			}
			if on && alias == w.alias {
				w.alias = "" // whatever it is called now
			}
		}
		out = append(out, w)
	}
	return out
}

// takes reports whether an edge that the recipe does not ask for goes.
func (f *Drift) takes(r *Reconciliation, address string, edge topology.Edge) bool {
	if f == nil {
		return true
	}
	ch, exists := r.base.Channel(edge.Channel)
	if !exists || ch.Deployment != r.d.Name {
		return false
	}
	_, before := f.edges[addressedEdge{address, ch.Address, edge.Direction}]
	return before
}

// leavesStopped reports whether a creature stays stopped, or started, as it is.
func (f *Drift) leavesStopped(spec *deploy.CreatureSpec) bool {
	return f != nil && f.creatures[spec.Address] != nil && f.creatures[spec.Address].Stopped == spec.Stopped
}

// leavesPrivilege reports whether a creature stays privileged, or not, as it is.
func (f *Drift) leavesPrivilege(address string, privileged bool) bool {
	if f == nil || f.creatures[address] == nil {
		return false
	}
	return privileged == (f.creatures[address].Privileged || address == f.last.Root)
}

// leavesName reports whether a creature stays called what it is.
func (f *Drift) leavesName(spec *deploy.CreatureSpec) bool {
	return f != nil && f.creatures[spec.Address] != nil && f.creatures[spec.Address].Name == spec.Name
}

// leavesRoot reports whether the creature that is the root stays it.
func (f *Drift) leavesRoot(d *deploy.Deployment) bool {
	return f != nil && f.sure && f.last.Root == d.Root
}

// acquaint has a root that was assigned while the recipe ran listen on the
// channels that are new in it.
func (f *Drift) acquaint(r *Reconciliation) {
	root := r.base.Root(r.d.Name)
	if root == "" || root == r.Creatures[r.d.Root] {
		return
	}
	for _, id := range r.draft.AddedChannels() {
		r.ops = r.draft.Give(r.ops, draft.EdgeKey{Creature: root, Channel: id, Direction: journal.Listen})
	}
}

// own is what a root has by itself: also what it got while the recipe ran.
func (f *Drift) own(r *Reconciliation, own draft.OwnEdges) draft.OwnEdges {
	if f != nil {
		maps.Copy(own, r.live[r.d.Root].Own)
	}
	return own
}

// demote takes from a root that was assigned while the recipe ran what it has
// because of that.
func (f *Drift) demote(r *Reconciliation, wanted []wantedEdge) {
	former := r.base.Root(r.d.Name)
	if f == nil || former == "" || former == r.Creatures[r.d.Root] {
		return
	}
	r.then(topology.SetRoot{ID: former})
	keeps := map[draft.EdgeKey]bool{}
	for _, w := range wanted {
		keeps[r.keyOf(w)] = true
	}
	c, _ := r.draft.Topology().Creature(former)
	for _, e := range c.Edges {
		if key := edgeKeyOf(e); r.draft.IsGiven(key) && !keeps[key] && !r.gone(e.Channel) {
			r.then(turned(key, false, ""))
		}
	}
}

// outputs are the output wires of the recipe without those that were removed or
// changed while it ran.
func (f *Drift) outputs(r *Reconciliation, spec *deploy.CreatureSpec, id journal.CreatureID, had []journal.OutputWire) []deploy.OutputSpec {
	if f == nil {
		return spec.Outputs
	}
	var out []deploy.OutputSpec
	for _, s := range spec.Outputs {
		to := journal.CreatureID(s.To)
		if to != journal.ToRoot {
			to = r.Creatures[s.To]
		}
		if to == "" && f.removed(r, s.To) {
			continue
		}
		same := func(o deploy.OutputSpec) bool { return o.SameAs(s) }
		before := f.creatures[spec.Address]
		if before != nil && slices.ContainsFunc(before.Outputs, same) && f.sure && !s.IsAmong(had, id, to) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// wires are those that a creature got while the recipe ran.
func (f *Drift) wires(r *Reconciliation, spec *deploy.CreatureSpec, had []journal.OutputWire) []journal.OutputWire {
	if f == nil {
		return nil
	}
	declared := slices.Clone(spec.Outputs)
	if before := f.creatures[spec.Address]; before != nil {
		declared = append(declared, before.Outputs...)
	}
	var out []journal.OutputWire
	for _, w := range had {
		ours := slices.ContainsFunc(declared, func(s deploy.OutputSpec) bool {
			to := journal.CreatureID(s.To)
			if to != journal.ToRoot && r.exists(s.To) {
				to = r.live[s.To].ID
			}
			return s.IsAmong([]journal.OutputWire{w}, w.From, to)
		})
		if !ours {
			out = append(out, w)
		}
	}
	return out
}
