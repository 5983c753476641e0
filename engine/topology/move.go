package topology

import "slices"

// This file moves many members at once, for merges and splits. One by one, each
// member would be taken out of the names and elders of its old graph, in an
// order that misses every cache, and would have an undo function of its own.

// carry moves all members of a graph that ends to another one. Their names are
// free there. The old graph keeps its names and elders, which nothing uses
// until undo.
func (e *edit) carry(creatures []*creature, channels []*channel, from, to *graph) {
	e.noteMoved(creatures, channels, from, to)
	to.reserve(len(creatures), len(channels))
	for _, c := range creatures {
		to.attachCreature(c)
	}
	for _, ch := range channels {
		to.attachChannel(ch)
	}
	e.undo = append(e.undo, func() {
		for _, ch := range slices.Backward(channels) {
			to.detachChannel(ch)
		}
		for _, c := range slices.Backward(creatures) {
			to.detachCreature(c)
		}
		from.reclaim()
	})
}

// reclaim makes a graph the graph of its members again.
func (g *graph) reclaim() {
	for r := range g.elders {
		i := 0
		for c := range g.elders[r].items.all() {
			c.graph, c.at[r] = g, i
			i++
		}
	}
	i := 0
	for ch := range g.channels.all() {
		ch.graph, ch.at = g, i
		i++
	}
}

// part moves a piece of a graph to a new one. If undone, the new graph is not
// used any further.
func (e *edit) part(p piece, from, child *graph) {
	e.noteMoved(p.creatures, p.channels, from, child)
	if len(p.creatures)*manyMembers >= from.size() && len(p.creatures) >= manyMembers {
		from.partMany(p, child)
	} else {
		for _, c := range p.creatures {
			from.detachCreature(c)
			child.attachCreature(c)
		}
		for _, ch := range p.channels {
			from.detachChannel(ch)
			child.attachChannel(ch)
		}
	}
	e.undo = append(e.undo, func() {
		for _, ch := range slices.Backward(p.channels) {
			from.attachChannel(ch)
		}
		for _, c := range slices.Backward(p.creatures) {
			from.attachCreature(c)
		}
	})
}

// manyMembers is the share of a graph's creatures from which on a piece is
// taken out by reading all of the graph's names and elders in order.
const manyMembers = 16

func (g *graph) partMany(p piece, child *graph) {
	for _, c := range p.creatures {
		c.graph = child
	}
	for _, ch := range p.channels {
		ch.graph = child
	}
	g.creatureNames.part(&child.creatureNames, func(c *creature) bool { return c.graph == child })
	g.channelNames.part(&child.channelNames, func(ch *channel) bool { return ch.graph == child })
	for r := range ranks {
		g.elders[r].keep(r, func(c *creature) bool { return c.graph == g })
	}
	for _, c := range p.creatures {
		child.addElder(c)
	}
	for _, ch := range p.channels {
		g.delist(ch)
		child.list(ch)
	}
}

// reserve prepares a graph for more members.
func (g *graph) reserve(creatures, channels int) {
	g.creatureNames.reserve(creatures)
	g.channelNames.reserve(channels)
}

// noteMoved records that members move from one graph to another.
func (e *edit) noteMoved(creatures []*creature, channels []*channel, from, to *graph) {
	e.moved = append(e.moved, creatures...)
	e.changes = slices.Grow(e.changes, len(creatures)+len(channels))
	for _, c := range creatures {
		e.changes = append(e.changes, Change{Kind: CreatureMoved, Creature: c.id, Graph: to.id, From: from.id})
	}
	for _, ch := range channels {
		e.changes = append(e.changes, Change{Kind: ChannelMoved, Channel: ch.id, Graph: to.id, From: from.id})
	}
}
