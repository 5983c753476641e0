package topology

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

func (e *edit) connectOp(op Connect) *abi.Error {
	from, to, err := e.ends(op.From, op.To)
	if err != nil {
		return err
	}
	ch, err := e.channelFor(from, to, op)
	if err != nil {
		return err
	}
	if from.graph == to.graph {
		e.within(from.graph)
	} else {
		if _, err := e.merge([]*graph{from.graph, to.graph}, settling{op.OnCollision, op.Settle}); err != nil {
			return err
		}
		ch = e.afterUnify(ch)
	}
	e.delta.Channel = ch.id
	if err := e.turnOn(from, ch, Send, op.Alias); err != nil {
		return err
	}
	return e.turnOn(to, ch, Listen, op.Alias)
}

func (e *edit) ends(from, to CreatureID) (a, b *creature, err *abi.Error) {
	if a = e.creatures.get(from); a == nil {
		return nil, nil, notFound(aCreature, string(from))
	}
	if b = e.creatures.get(to); b == nil {
		return nil, nil, notFound(aCreature, string(to))
	}
	return a, b, nil
}

// channelFor finds or makes the channel of a connection.
func (e *edit) channelFor(from, to *creature, op Connect) (*channel, *abi.Error) {
	switch {
	case op.Channel != "":
		ch := e.channels.get(op.Channel)
		if ch == nil {
			return nil, notFound(aChannel, string(op.Channel))
		}
		if ch.graph != from.graph && ch.graph != to.graph {
			return nil, elsewhere(ch, from, to)
		}
		return ch, nil
	case op.Name != "":
		for _, g := range []*graph{from.graph, to.graph} {
			if ch := g.channelNames.get(op.Name); ch != nil {
				return ch, nil
			}
		}
		return e.makeChannel(op.Name, from.graph)
	}
	if there := e.leading(from, to); len(there) > 0 {
		return there[0], nil
	}
	// The name is free on both sides, so that no collision policy applies to a
	// channel with a generated name.
	return e.makeChannel(freeChannelName(from.name+"-to-"+to.name, from.graph, to.graph), from.graph)
}

func (e *edit) disconnectOp(op Disconnect) *abi.Error {
	from, to, err := e.ends(op.From, op.To)
	if err != nil {
		return err
	}
	channels := e.leading(from, to)
	if op.Channel != "" {
		ch := e.channels.get(op.Channel)
		if ch == nil {
			return notFound(aChannel, string(op.Channel))
		}
		channels = slices.DeleteFunc(channels, func(c *channel) bool { return c != ch })
	}
	if len(channels) == 0 {
		return notConnected(op.From, op.To, op.Channel)
	}
	var ends []*node
	made := make([]ChannelID, len(channels))
	for i, ch := range channels {
		e.delta.Channels = append(e.delta.Channels, ch.id)
		loose, detour, err := e.cut(from, to, ch)
		if err != nil {
			return err
		}
		ends = append(ends, loose...)
		if detour != nil {
			made[i] = detour.id
		}
	}
	e.delta.Channels = append(e.delta.Channels, made...)
	return e.divide(from.graph, ends)
}

// cut ends from→to on ch and nothing else. It returns the ends of the link
// that was separated, if any, and the channel on which from's other listeners
// receive from now on, if one is needed.
func (e *edit) cut(from, to *creature, ch *channel) (loose []*node, detour *channel, err *abi.Error) {
	if ch.senders == 1 {
		return e.loosen(to, ch, Listen), nil, nil
	}
	others := ch.listeners - 1
	if from != to && e.has(from, ch, Listen) {
		others--
	}
	if others == 0 {
		return e.loosen(from, ch, Send), nil, nil
	}
	detour, err = e.makeChannel(freeChannelName(ch.name, ch.graph, ch.graph), ch.graph)
	if err != nil {
		return nil, nil, err
	}
	alias := from.link(ch).send.alias
	loose = e.loosen(from, ch, Send)
	e.addEdge(from, detour, Send, alias)
	for _, edge := range ch.edges() {
		hears := edge.link.creature
		if edge.direction == Listen && hears != from && hears != to {
			e.addEdge(hears, detour, Listen, edge.half().alias)
		}
	}
	return loose, detour, nil
}

// loosen removes an edge and returns its ends if they no longer have a path to
// each other.
func (e *edit) loosen(c *creature, ch *channel, d Direction) []*node {
	if !e.removeEdge(c, ch, d) {
		return nil
	}
	return []*node{&c.node, &ch.node}
}
