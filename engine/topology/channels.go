package topology

import "github.com/seed47132306/terrarium/abi"

func (e *edit) addChannelOp(op AddChannel) *abi.Error {
	switch {
	case op.ID == "":
		return emptyID(aChannel)
	case op.Name == "":
		return emptyName(aChannel, string(op.ID))
	case e.channels.get(op.ID) != nil:
		return idTaken(aChannel, string(op.ID))
	}
	g, err := e.declareIn(op)
	if err != nil {
		return err
	}
	name := op.Name
	if op.Numbered {
		name = freeIn(name, &g.channelNames)
	}
	if other := g.channelNames.get(name); other != nil {
		return nameTaken(aChannel, name, string(other.id), g)
	}
	ch := e.newChannel(op.ID, name)
	ch.report, ch.born = op.Report, op.Born
	e.addChannel(ch, g)
	e.within(g)
	e.delta.Channel = ch.id
	return nil
}

// declareIn finds the graph in which a new channel is declared.
func (e *edit) declareIn(op AddChannel) (*graph, *abi.Error) {
	if op.Graph != "" || op.With == "" {
		return e.graph(op.Graph)
	}
	c := e.creatures.get(op.With)
	if c == nil {
		return nil, notFound(aCreature, string(op.With))
	}
	return c.graph, nil
}

func (e *edit) removeChannelOp(op RemoveChannel) *abi.Error {
	ch := e.channels.get(op.ID)
	if ch == nil {
		return notFound(aChannel, string(op.ID))
	}
	g := ch.graph
	ends := e.removeEdges(&ch.node)
	e.removeChannel(ch)
	return e.divide(g, ends)
}

func (e *edit) setEdgeOp(op SetEdge) *abi.Error {
	c, ch := e.creatures.get(op.Creature), e.channels.get(op.Channel)
	switch {
	case c == nil:
		return notFound(aCreature, string(op.Creature))
	case ch == nil:
		return notFound(aChannel, string(op.Channel))
	case op.Direction != Listen && op.Direction != Send:
		return badDirection(op.Direction)
	}
	if on := e.has(c, ch, op.Direction); on == op.On {
		e.within(c.graph)
		return nil
	}
	if !op.On {
		return e.turnOff(c, ch, op.Direction)
	}
	ch, err := e.bringTogether(c, ch, settling{op.OnCollision, op.Settle})
	if err != nil {
		return err
	}
	return e.turnOn(c, ch, op.Direction, op.Alias)
}

// bringTogether ensures that c and ch are in one graph and returns the channel
// to use: a different one if ch was unified.
func (e *edit) bringTogether(c *creature, ch *channel, how settling) (*channel, *abi.Error) {
	if c.graph == ch.graph {
		e.within(c.graph)
		return ch, nil
	}
	if len(ch.links) > 0 {
		_, err := e.merge([]*graph{c.graph, ch.graph}, how)
		return e.afterUnify(ch), err
	}
	// The channel has no edges, so there is no graph to merge with: the
	// channel moves alone.
	e.within(c.graph, ch.graph)
	if other := c.graph.channelNames.get(ch.name); other != nil && how.of(ch.name) == Reject {
		return nil, colliding(c.graph, ch.graph, []string{quoted(aChannel, ch.name)})
	}
	return e.takeChannel(ch, c.graph, how), nil
}

func (e *edit) turnOff(c *creature, ch *channel, d Direction) *abi.Error {
	g := c.graph
	var ends []*node
	if e.removeEdge(c, ch, d) {
		ends = []*node{&c.node, &ch.node}
	}
	return e.divide(g, ends)
}

// turnOn makes an edge within a graph, unless it exists already.
func (e *edit) turnOn(c *creature, ch *channel, d Direction, alias string) *abi.Error {
	if e.has(c, ch, d) {
		return nil
	}
	switch {
	case alias == "" && d == Send:
		alias = free(ch.name, func(a string) bool { return c.sending(a) != nil })
	case alias == "":
		alias = ch.name
	case d == Send && c.sending(alias) != nil:
		return aliasTaken(c, alias, c.sending(alias))
	}
	e.addEdge(c, ch, d, alias)
	return nil
}
