package topology

import "github.com/seed47132306/terrarium/abi"

// edit is one batch in progress. Its methods in this file are the only ones
// that change a state; each records the [Change] it makes and how to undo it.
// A state has one edit, which all batches reuse, so an undo must not refer to
// it.
type edit struct {
	*State
	ids     IDs
	before  counters    // before the batch
	delta   Delta       // of the current operation
	moved   []*creature // creatures whose graph id the operation changed
	changes []Change    // of the current operation
	undo    []func()    // of the whole batch
}

func (e *edit) note(c Change, undo func()) {
	e.changes = append(e.changes, c)
	e.undo = append(e.undo, undo)
}

func (e *edit) addGraph() (*graph, *abi.Error) {
	id := e.ids.NewGraph()
	if id == "" || e.ended.get(id) != nil || e.graphs.get(id) != nil {
		return nil, unusableID(aGraph, string(id))
	}
	e.last.graph++
	g := newGraph(id, e.last.graph)
	e.graphs.set(id, g)
	s := e.State
	e.note(Change{Kind: GraphAdded, Graph: id}, func() { s.graphs.remove(id) })
	return g, nil
}

// endGraph ends a graph without members. into is its successor, or nil.
func (e *edit) endGraph(g, into *graph) {
	e.graphs.remove(g.id)
	change := Change{Kind: GraphEnded, Graph: g.id}
	forget := func() {}
	switch {
	case into != nil:
		change.Into = into.id
		forget = e.bequeath(g, into)
	case g.past != nil:
		g.past.graph = nil
		forget = func() { g.past.graph = g }
	}
	s := e.State
	e.note(change, func() {
		forget()
		s.graphs.set(g.id, g)
	})
}

// number returns the creation number for an addition: its previous one, or the
// next.
func number(last *uint64, had uint64) uint64 {
	if had == 0 {
		had = *last + 1
	}
	*last = max(*last, had)
	return had
}

func (e *edit) addCreature(c *creature, g *graph) {
	c.born = number(&e.last.creature, c.born)
	e.creatures.set(c.id, c)
	g.attachCreature(c)
	s := e.State
	e.note(Change{Kind: CreatureAdded, Creature: c.id, Name: c.name, Graph: g.id}, func() {
		g.detachCreature(c)
		s.creatures.remove(c.id)
	})
}

// removeCreature removes a creature without edges.
func (e *edit) removeCreature(c *creature) {
	g := c.graph
	g.detachCreature(c)
	e.creatures.remove(c.id)
	s := e.State
	e.note(Change{Kind: CreatureRemoved, Creature: c.id, Graph: g.id}, func() {
		s.creatures.set(c.id, c)
		g.attachCreature(c)
	})
}

// makeChannel declares a channel with an id from the caller's IDs.
func (e *edit) makeChannel(name string, g *graph) (*channel, *abi.Error) {
	id := e.ids.NewChannel()
	if id == "" || e.channels.get(id) != nil {
		return nil, unusableID(aChannel, string(id))
	}
	ch := e.newChannel(id, name)
	e.addChannel(ch, g)
	return ch, nil
}

func (e *edit) addChannel(ch *channel, g *graph) {
	ch.born = number(&e.last.channel, ch.born)
	e.channels.set(ch.id, ch)
	g.attachChannel(ch)
	s := e.State
	e.note(Change{Kind: ChannelAdded, Channel: ch.id, Name: ch.name, Graph: g.id}, func() {
		g.detachChannel(ch)
		s.channels.remove(ch.id)
	})
}

// removeChannel removes a channel without edges.
func (e *edit) removeChannel(ch *channel) {
	g := ch.graph
	g.detachChannel(ch)
	e.channels.remove(ch.id)
	s := e.State
	e.note(Change{Kind: ChannelRemoved, Channel: ch.id, Graph: g.id}, func() {
		s.channels.set(ch.id, ch)
		g.attachChannel(ch)
	})
}

func (e *edit) addEdge(c *creature, ch *channel, d Direction, alias string) {
	e.last.edge++
	seq := e.last.edge
	e.switchOn(c, ch, d, half{alias, seq})
	s := e.State
	e.note(Change{Kind: EdgeAdded, Creature: c.id, Channel: ch.id, Direction: d, Alias: alias},
		func() { s.switchOff(c, ch, d) })
}

// removeEdge removes an edge and reports whether its creature and its channel
// no longer have a path to each other.
func (e *edit) removeEdge(c *creature, ch *channel, d Direction) (split bool) {
	old, split := e.switchOff(c, ch, d)
	e.torn = e.torn || split
	s := e.State
	e.note(Change{Kind: EdgeRemoved, Creature: c.id, Channel: ch.id, Direction: d, Alias: old.alias},
		func() { s.switchOn(c, ch, d, old) })
	return split
}

func (e *edit) moveChannel(ch *channel, to *graph) {
	from := ch.graph
	from.detachChannel(ch)
	to.attachChannel(ch)
	e.note(Change{Kind: ChannelMoved, Channel: ch.id, Graph: to.id, From: from.id}, func() {
		to.detachChannel(ch)
		from.attachChannel(ch)
	})
}

func (e *edit) renameCreature(c *creature, name string) {
	set := func(name string) {
		c.graph.creatureNames.remove(c.name)
		c.name = name
		c.graph.creatureNames.set(name, c)
	}
	old := c.name
	set(name)
	e.delta.Renamed = append(e.delta.Renamed, Renaming{Creature: c.id, Old: old, New: name})
	e.note(Change{Kind: CreatureRenamed, Creature: c.id, Name: name}, func() { set(old) })
}

func (e *edit) renameChannel(ch *channel, name string) {
	set := func(name string) {
		ch.graph.channelNames.remove(ch.name)
		ch.name = name
		ch.graph.channelNames.set(name, ch)
	}
	old := ch.name
	set(name)
	e.delta.Renamed = append(e.delta.Renamed, Renaming{Channel: ch.id, Old: old, New: name})
	e.note(Change{Kind: ChannelRenamed, Channel: ch.id, Name: name}, func() { set(old) })
}

// flags holds the flags that an operation may set on a creature.
type flags struct{ stopped, paused, privileged, root bool }

func (e *edit) setFlags(c *creature, to flags) {
	set := func(f flags) {
		g := c.graph
		g.detachCreature(c)
		c.stopped, c.paused, c.privileged, c.root = f.stopped, f.paused, f.privileged, f.root
		g.attachCreature(c)
	}
	old := flags{c.stopped, c.paused, c.privileged, c.root}
	set(to)
	e.note(Change{Kind: FlagsChanged, Creature: c.id}, func() { set(old) })
}
