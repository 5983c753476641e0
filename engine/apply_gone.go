package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// keepRuntime notes which channels of the deployment Restore has brought back without
// their being of a recipe: what its creatures have made, and direct channels. Where the
// recipe of others in the same graph has brought them back, they go.
func (a *application) keepRuntime() {
	a.kept = map[journal.ChannelID]bool{}
	if !a.e.restored {
		return
	}
	for id, ch := range a.e.channels {
		member, _ := ch.directOf()
		if ch.deployment == a.d.Name && ch.inbox == "" && (ch.address == "" || member != "") {
			a.kept[id] = true
		}
	}
}

// findLeaving finds who goes: what the deployment does not have any more, and the
// workers that go along.
func (a *application) findLeaving(x *change) {
	a.leaving = map[journal.CreatureID]bool{}
	for id, c := range a.e.creatures {
		if a.left(c) {
			a.leaving[id] = true
			for _, worker := range x.workersOf(id) {
				a.leaving[worker] = true
			}
		}
	}
}

// left reports whether the deployment does not have a creature any more.
func (a *application) left(c *creature) bool {
	address := c.spec.Address
	declared := c.deployment == a.d.Name && address != "" && a.drift.declared(address)
	if c.husk && c.huskReason == nil {
		return c.deployment == a.d.Name || undeclared(c.deployment)
	}
	return declared && a.creatures[address] != c.id
}

// removeGone removes what a saved session had and the deployment does not.
func (a *application) removeGone(x *change) {
	for _, id := range a.e.topo.Creatures() {
		if a.leaving[id] {
			a.noteRemoved(a.e.creatures[id])
			x.ops = append(x.ops, topology.RemoveCreature{ID: id})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.e.channels)) {
		if a.gone(id) {
			ch := a.e.channels[id]
			if to, _ := ch.directOf(); to == "" {
				a.noteChannelRemoved(ch)
			}
			x.ops = append([]topology.Op{topology.RemoveChannel{ID: id}}, x.ops...)
		}
	}
}

// noteRemoved reports a creature that the deployment does not have: by its name,
// if it was spawned.
func (a *application) noteRemoved(c *creature) {
	g := c.home.lock()
	defer g.mu.Unlock()
	a.result.Removed = append(a.result.Removed, RemovedAddress{cmp.Or(c.spec.Address, c.name), c.mb.pending()})
}

// noteChannelRemoved reports a channel that the deployment does not have, with what
// creatures that remain have not heard of it.
func (a *application) noteChannelRemoved(ch *channel) {
	g := ch.home.load()
	g.mu.Lock()
	defer g.mu.Unlock()
	var pending uint64
	for _, s := range ch.sources {
		if c := s.mb.creature; c != nil && !a.leaving[c.id] {
			pending += s.unread()
		}
	}
	a.result.Removed = append(a.result.Removed, RemovedAddress{cmp.Or(ch.address, ch.name), pending})
}

// gone reports whether a channel was the deployment's and is not any more. No recipe
// has direct channels: they are there as long as the creatures that they lead to.
func (a *application) gone(id journal.ChannelID) bool {
	ch := a.e.channels[id]
	if ch == nil || ch.deployment != a.d.Name || ch.inbox != "" {
		return false
	}
	if to, _ := ch.directOf(); to != "" {
		return a.drift == nil && (a.e.creatures[to] == nil || a.leaving[to])
	}
	return !a.kept[id] && a.channels[ch.address] != id && a.drift.declaredChannel(ch.address)
}
