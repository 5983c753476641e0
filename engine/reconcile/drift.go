package reconcile

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Drift holds the changes made while a deployment ran: the difference between
// the deployment as last applied and the existing state. It is carried over to
// the new deployment as in a three-way merge: changes made only at run time
// stay, and for changes in the recipe the recipe decides. With a nil Drift no
// runtime changes stay. A Drift serves one reconciliation.
type Drift struct {
	last      *deploy.Deployment
	creatures map[string]*deploy.CreatureSpec // of last, by address
	channels  map[string]bool                 // of last, by address
	edges     map[addressedEdge]string        // of last: aliases
	// sure means that missing things were removed, and stay removed. It is
	// false if a store could not be read, because they may be in that store.
	sure bool
	// heals means that missing things declared by the recipe are created
	// again.
	heals bool
}

// DriftFrom compares with a deployment as last applied. last is nil if it was
// never applied, or if the new one alone decides.
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

// HealingFrom is [DriftFrom] for a running deployment: missing things that it
// declares are created again.
func HealingFrom(running *deploy.Deployment) *Drift {
	f := DriftFrom(running)
	f.heals = true
	return f
}

// Declared reports whether the deployment had a creature at an address when it
// was last applied.
func (f *Drift) Declared(address string) bool { return f != nil && f.creatures[address] != nil }

// removed reports whether a creature of the recipe was removed at run time.
func (f *Drift) removed(r *Reconciliation, address string) bool {
	return f != nil && f.sure && f.creatures[address] != nil && !r.exists(address)
}

// declared reports whether the recipe decides about an address that it no
// longer has.
func (f *Drift) declared(address string) bool { return f == nil || f.creatures[address] != nil }

// declaredChannel does the same for a channel.
func (f *Drift) declaredChannel(address string) bool { return f == nil || f.channels[address] }

// wanted leaves out the edges that were removed at run time.
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
				w.alias = "" // any current alias is fine
			}
		}
		out = append(out, w)
	}
	return out
}

// takes reports whether an edge that is not in the recipe is removed.
func (f *Drift) takes(r *Reconciliation, address string, edge topology.Edge) bool {
	if f == nil {
		return true
	}
	ch, exists := r.base.Channel(edge.Channel)
	if !exists || ch.Deployment != r.d.Name {
		return false
	}
	_, before := f.edges[addressedEdge{address, r.d.NowAt(ch.Address), edge.Direction}]
	return before
}

// leavesStopped reports whether a creature stays stopped or started as it is.
func (f *Drift) leavesStopped(spec *deploy.CreatureSpec) bool {
	return f != nil && f.creatures[spec.Address] != nil && f.creatures[spec.Address].Stopped == spec.Stopped
}

// leavesPrivilege reports whether a creature keeps its current privilege.
func (f *Drift) leavesPrivilege(address string, privileged bool) bool {
	if f == nil || f.creatures[address] == nil {
		return false
	}
	return privileged == (f.creatures[address].Privileged || address == f.last.Root)
}

// leavesName reports whether a creature keeps its current name.
func (f *Drift) leavesName(spec *deploy.CreatureSpec) bool {
	return f != nil && f.creatures[spec.Address] != nil && f.creatures[spec.Address].Name == spec.Name
}

// leavesRoot reports whether the current root stays the root.
func (f *Drift) leavesRoot(d *deploy.Deployment) bool {
	return f != nil && f.sure && f.last.Root == d.Root
}

// acquaint makes a root that was assigned at run time listen on the recipe's
// new channels.
func (f *Drift) acquaint(r *Reconciliation) {
	root := r.base.Root(r.d.Name)
	if root == "" || root == r.Creatures[r.d.Root] {
		return
	}
	for _, id := range r.draft.AddedChannels() {
		r.ops = r.draft.Give(r.ops, draft.EdgeKey{Creature: root, Channel: id, Direction: journal.Listen})
	}
}

// own returns the own edges of a root, including those added at run time.
func (f *Drift) own(r *Reconciliation, own draft.OwnEdges) draft.OwnEdges {
	if f != nil {
		maps.Copy(own, r.live[r.d.Root].Own)
	}
	return own
}

// demote removes from a root that was assigned at run time the edges that it
// has as the root.
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

// outputs returns the output wires of the recipe without those removed or
// changed at run time.
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

// wires returns the wires that a creature got at run time.
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
