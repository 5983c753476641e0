package topology

// few is how many links are searched one by one. Only nodes with more keep
// indexes, which most never need: an index for every node would cost more
// memory and growth than it saves.
const few = 24

// link returns the link of c and ch, or nil.
func (c *creature) link(ch *channel) *link { return c.linkTo(&ch.node) }

// linkTo is link for the node of a channel. It does not read that node if c
// has few links.
func (c *creature) linkTo(to *node) *link {
	at := &c.node
	if len(c.links) > creatureRoom {
		if ch := to.channel; len(c.links) > few && ch.index != nil {
			return ch.index.get(c.id)
		}
		if len(to.links) < len(c.links) {
			at, to = to, at
		}
	}
	for _, a := range at.links {
		if a.to == to {
			return a.link
		}
	}
	return nil
}

// sending returns the link on which c sends by that alias, or nil.
func (c *creature) sending(alias string) *link {
	if c.index != nil {
		return c.index.get(alias)
	}
	for _, a := range c.links {
		if l := a.link; l.send.on() && l.send.alias == alias {
			return l
		}
	}
	return nil
}

// switchOn makes an edge, and its link if there is none yet.
func (s *State) switchOn(c *creature, ch *channel, d Direction, to half) {
	l := c.link(ch)
	if l == nil {
		l = &link{creature: c, channel: ch}
		s.join(l)
		s.linkCount++
		ch.indexLink(l)
	}
	*l.half(d) = to
	if d == Listen {
		ch.listeners++
		return
	}
	ch.senders++
	c.indexSend(l)
}

// switchOff removes an existing edge, and with the last edge its link. It
// returns the edge as it was, and whether c and ch no longer have a path to
// each other.
func (s *State) switchOff(c *creature, ch *channel, d Direction) (was half, split bool) {
	l := c.link(ch)
	h := l.half(d)
	was, *h = *h, half{}
	if d == Listen {
		ch.listeners--
	} else {
		ch.senders--
		c.index.remove(was.alias)
	}
	if l.listen.on() || l.send.on() {
		return was, false
	}
	split = s.part(l)
	s.linkCount--
	ch.index.remove(c.id)
	// Halfway down, so that adding and removing one link does not rebuild the
	// index.
	if len(ch.links) < few/2 {
		ch.index = nil
	}
	if len(c.links) < few/2 {
		c.index = nil
	}
	return was, split
}

// indexLink adds a new link to the index of ch, if ch has enough links to keep
// one.
func (ch *channel) indexLink(l *link) {
	switch {
	case ch.index != nil:
		ch.index.set(l.creature.id, l)
	case len(ch.links) > few:
		ch.index = &index[CreatureID, *link]{}
		for _, a := range ch.links {
			ch.index.set(a.link.creature.id, a.link)
		}
	}
}

// indexSend adds a new send edge to the index of c, if c has enough links to
// keep one.
func (c *creature) indexSend(l *link) {
	switch {
	case c.index != nil:
		c.index.set(l.send.alias, l)
	case len(c.links) > few:
		c.index = &index[string, *link]{}
		for _, a := range c.links {
			if a.link.send.on() {
				c.index.set(a.link.send.alias, a.link)
			}
		}
	}
}
