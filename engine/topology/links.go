package topology

// few is how many links are searched one by one. Nodes with more keep indexes,
// which most never need: a map for everyone would cost more in memory and in
// growing than it saves.
const few = 24

// link returns the link of c and ch, or nil.
func (c *creature) link(ch *channel) *link { return c.linkTo(&ch.node) }

// linkTo is link for the node of a channel, which it does not visit if c has so
// few links that it is not worth the way.
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

// switchOn makes an edge, and the link that carries it if there is none yet.
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

// switchOff removes an edge, which must be there, and with the last edge its
// link. It returns the edge as it was, and whether c and ch have no path to each
// other any more.
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
	// Halfway down, so that going up and down by one does not rebuild them.
	if len(ch.links) < few/2 {
		ch.index = nil
	}
	if len(c.links) < few/2 {
		c.index = nil
	}
	return was, split
}

// indexLink files a new link, if ch has so many that it keeps an index.
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

// indexSend files a new send edge, if c has so many links that it keeps an
// index.
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
