package reconcile

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// keepRuntime records which restored channels of the deployment are not in a
// recipe: those made by its creatures, and direct channels. They do not stay
// if the recipe of another deployment in the same graph restored them.
func (r *Reconciliation) keepRuntime() {
	for ch := range r.base.Channels {
		member, _ := draft.DirectOf(ch.Address)
		if ch.Deployment == r.d.Name && (ch.Address == "" || member != "") {
			r.kept[ch.ID] = true
		}
	}
}

// findLeaving finds the creatures to remove: those no longer in the
// deployment, and their workers.
func (r *Reconciliation) findLeaving() {
	for m := range r.base.Members {
		if r.left(m) {
			r.leaving[m.ID] = true
			for _, worker := range r.draft.WorkersOf(m.ID) {
				r.leaving[worker] = true
			}
		}
	}
}

// left reports whether a creature is no longer in the deployment.
func (r *Reconciliation) left(m draft.Member) bool {
	if r.base.Unclaimed(m.ID) {
		return m.Deployment == r.d.Name || draft.Undeclared(m.Deployment)
	}
	address := r.d.NowAt(m.Spec.Address)
	declared := m.Deployment == r.d.Name && address != "" && r.drift.declared(address)
	return declared && r.Creatures[address] != m.ID
}

// removeGone removes creatures and channels that are not in the deployment.
// Channels come before all other operations.
func (r *Reconciliation) removeGone() {
	topo := r.draft.Topology()
	for _, id := range topo.Creatures() {
		if r.leaving[id] {
			m, _ := r.base.Member(id)
			t, _ := topo.Creature(id)
			r.noteRemoved(m.Spec.Address, t.Name, r.runtime.Pending(id))
			r.then(topology.RemoveCreature{ID: id})
		}
	}
	var first []topology.Op
	for _, ch := range r.channelsGone() {
		if to, _ := draft.DirectOf(ch.Address); to == "" {
			t, _ := topo.Channel(ch.ID)
			r.noteRemoved(ch.Address, t.Name, r.runtime.Unread(ch.ID, r.leaving))
		}
		first = append(first, topology.RemoveChannel{ID: ch.ID})
	}
	r.ops = append(first, r.ops...)
}

func (r *Reconciliation) channelsGone() []draft.Channel {
	var out []draft.Channel
	for ch := range r.base.Channels {
		if r.gone(ch.ID) {
			out = append(out, ch)
		}
	}
	slices.SortFunc(out, func(a, b draft.Channel) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// noteRemoved reports a removal, by name if no recipe has declared it.
func (r *Reconciliation) noteRemoved(address, name string, pending uint64) {
	r.Removed = append(r.Removed, Removed{cmp.Or(address, name), pending})
}

// gone reports whether a channel of the deployment is no longer in it. No
// recipe has direct channels: they exist as long as the creatures that they
// lead to.
func (r *Reconciliation) gone(id journal.ChannelID) bool {
	ch, exists := r.base.Channel(id)
	if !exists || ch.Deployment != r.d.Name {
		return false
	}
	if to, _ := draft.DirectOf(ch.Address); to != "" {
		_, there := r.base.Member(to)
		return r.drift == nil && (!there || r.leaving[to])
	}
	address := r.d.NowAt(ch.Address)
	return !r.kept[id] && r.Channels[address] != id && r.drift.declaredChannel(address)
}
