package topology

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

func (e *edit) addCreatureOp(op AddCreature) *abi.Error {
	switch {
	case op.ID == "":
		return emptyID(aCreature)
	case op.Name == "":
		return emptyName(aCreature, string(op.ID))
	case e.creatures.get(op.ID) != nil:
		return idTaken(aCreature, string(op.ID))
	}
	var join *graph
	if op.Join != "" {
		var err *abi.Error
		if join, err = e.graph(op.Join); err != nil {
			return err
		}
	}
	targets, err := e.wireTargets(op.Edges)
	if err != nil {
		return err
	}
	var parent *creature // on the direct channel
	joined := slices.Contains(targets, join)
	if join != nil && (op.Direct || !joined) {
		parent = e.parentIn(join, op.Parent)
	}
	if join != nil && !joined {
		targets = append(targets, join)
	}
	g, err := e.homeOf(targets)
	if err != nil {
		return err
	}
	if other := g.creatureNames.get(op.Name); other != nil {
		return nameTaken(aCreature, op.Name, string(other.id), g)
	}
	if op.GraphBorn != 0 && g.creatureNames.count == 0 {
		g.born = number(&e.last.graph, op.GraphBorn)
	}
	c := e.newCreature(op.ID, op.Name)
	c.born = op.Born
	c.parent, c.privileged, c.root, c.stopped, c.paused = op.Parent, op.Privileged, op.Root, op.Stopped, op.Stopped && op.Paused
	e.addCreature(c, g)
	if parent != nil {
		if err := e.direct(parent, c); err != nil {
			return err
		}
	}
	return e.wire(c, op.Edges)
}

// wireTargets returns the graphs that wires lead to, each once. A channel
// without edges leads to none.
func (e *edit) wireTargets(wires []Wire) ([]*graph, *abi.Error) {
	var targets []*graph
	for _, w := range wires {
		ch := e.channels.get(w.Channel)
		if ch == nil {
			return nil, notFound(aChannel, string(w.Channel))
		}
		if w.Direction != Listen && w.Direction != Send {
			return nil, badDirection(w.Direction)
		}
		if len(ch.links) > 0 && !slices.Contains(targets, ch.graph) {
			targets = append(targets, ch.graph)
		}
	}
	return targets, nil
}

// parentIn returns the creature that will send on the direct channel of a
// creature that joins g.
func (e *edit) parentIn(g *graph, named CreatureID) *creature {
	if c := e.creatures.get(named); c != nil && c.graph == g {
		return c
	}
	for _, r := range []rank{roots, privileged, everyone} {
		if c := g.elders[r].first(); c != nil {
			return c
		}
	}
	return nil
}

// homeOf returns the graph of a new creature that is wired into targets: the
// merged graph, or a new one if there are no targets.
func (e *edit) homeOf(targets []*graph) (*graph, *abi.Error) {
	switch len(targets) {
	case 0:
		g, err := e.addGraph()
		if err == nil {
			e.delta.NewGraphs = []GraphID{g.id}
		}
		return g, err
	case 1:
		e.within(targets[0])
		return targets[0], nil
	}
	return e.merge(targets, settling{otherwise: Rename})
}

// direct gives child its direct channel.
func (e *edit) direct(parent, child *creature) *abi.Error {
	ch, err := e.makeChannel(freeChannelName(child.name, child.graph, child.graph), child.graph)
	if err != nil {
		return err
	}
	e.delta.Channel = ch.id
	if err := e.turnOn(parent, ch, Send, ""); err != nil {
		return err
	}
	return e.turnOn(child, ch, Listen, "")
}

// wire makes the requested edges of a new creature. Channels without edges in
// other graphs move to its graph.
func (e *edit) wire(c *creature, wires []Wire) *abi.Error {
	for _, w := range wires {
		ch := e.channels.get(w.Channel)
		if ch.graph != c.graph {
			if !slices.Contains(e.delta.OldGraphs, ch.graph.id) {
				e.within(ch.graph)
			}
			e.renameApart(ch, c.graph)
			e.moveChannel(ch, c.graph)
		}
		// On a channel without edges, c is a separate piece until the next
		// wire.
		e.torn = e.torn || len(ch.links) == 0
		if err := e.turnOn(c, ch, w.Direction, w.Alias); err != nil {
			return err
		}
	}
	return nil
}

func (e *edit) removeCreatureOp(op RemoveCreature) *abi.Error {
	c := e.creatures.get(op.ID)
	if c == nil {
		return notFound(aCreature, string(op.ID))
	}
	g := c.graph
	ends := e.takeOut(c)
	for _, id := range op.With {
		if other := e.creatures.get(id); other != nil && other.graph == g {
			ends = append(ends, e.takeOut(other)...)
		}
	}
	if g.size() > 0 {
		return e.divide(g, ends)
	}
	for _, ch := range slices.SortedFunc(g.channels.all(), byChannelAge) {
		e.removeChannel(ch)
	}
	e.endGraph(g, nil)
	e.delta.OldGraphs = []GraphID{g.id}
	return nil
}

// takeOut removes a creature with its edges. It returns a channel of every
// piece that this may have separated.
func (e *edit) takeOut(c *creature) []*node {
	ends := e.removeEdges(&c.node)
	e.removeCreature(c)
	return ends
}

// removeEdges removes all edges of n. It returns a node of every piece that
// this separated.
func (e *edit) removeEdges(n *node) []*node {
	var ends []*node
	for _, edge := range n.edges() {
		far := edge.link.far(n)
		if e.removeEdge(edge.link.creature, edge.link.channel, edge.direction) {
			ends = append(ends, far)
		}
	}
	return ends
}

func (e *edit) flagOp(id CreatureID, change func(*flags)) *abi.Error {
	c := e.creatures.get(id)
	if c == nil {
		return notFound(aCreature, string(id))
	}
	e.within(c.graph)
	now := flags{c.stopped, c.paused, c.privileged, c.root}
	want := now
	if change(&want); want != now {
		e.setFlags(c, want)
	}
	return nil
}

// graph returns the live graph that id is or has become part of.
func (e *edit) graph(id GraphID) (*graph, *abi.Error) {
	if g := e.live(id); g != nil {
		return g, nil
	}
	return nil, notFound(aGraph, string(id))
}
