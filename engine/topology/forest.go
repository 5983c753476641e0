package topology

// join adds a new link, whose ends are in one graph, to the spanning forest:
// to a tree if it connects two trees, else to the spare links of its ends. A
// graph that is in one piece has only one tree, so join need not climb to
// compare the trees of both ends, which would be most of the cost of a spare
// link.
func (s *State) join(l *link) {
	a, b := &l.creature.node, &l.channel.node
	a.add(l)
	b.add(l)
	if a.alone() || b.alone() || s.torn && a.stop.tour() != b.stop.tour() {
		s.tie(l)
	}
	a.markSpare()
	b.markSpare()
}

// part removes a link from the forest. It reports whether its ends no longer
// have a path to each other.
func (s *State) part(l *link) (split bool) {
	a, b := &l.creature.node, &l.channel.node
	if !l.tied {
		a.remove(l)
		b.remove(l)
		a.markSpare()
		b.markSpare()
		return false
	}
	bridge := l.untie()
	if bridge == nil {
		return true
	}
	s.tie(bridge)
	bridge.creature.markSpare()
	bridge.channel.markSpare()
	return false
}

// tie makes l a tree link, joining the tours of its ends.
func (s *State) tie(l *link) {
	a, b := &l.creature.node, &l.channel.node
	l.tied, l.there, l.back = true, s.newStop(nil), s.newStop(nil)
	if a.alone() {
		a, b = b, a
	}
	if b.alone() {
		a.stop.insertAfter(&l.there)
		l.there.insertAfter(&b.stop)
		b.stop.insertAfter(&l.back)
	} else {
		front, rear := b.stop.divideBefore()
		inner := concat(rear, front)
		front, rear = a.stop.divideAfter()
		concat(concat(concat(front, &l.there), concat(inner, &l.back)), rear)
	}
	a.promote(l)
	b.promote(l)
}

// untie removes the tree link l from the forest. It returns a spare link that
// connects the two sides, or nil if there is none.
func (l *link) untie() (bridge *link) {
	a, b := &l.creature.node, &l.channel.node
	if b.trees == 1 {
		a, b = b, a
	}
	if a.trees == 1 {
		// The part of the tour around a leaf is only the leaf.
		l.there.remove()
		l.back.remove()
		a.stop.remove()
	} else {
		l.divide()
	}
	l.tied = false
	for _, n := range []*node{a, b} {
		n.demote(l)
		n.remove(l)
	}
	switch {
	case !a.alone():
		return crossing(a, b)
	case len(a.links) > 0:
		return a.links[0].link
	}
	return nil
}

// divide cuts a tour into two: the parts on either side of l.
func (l *link) divide() {
	first, last := &l.there, &l.back
	if last.precedes(first) {
		first, last = last, first
	}
	before, _ := first.takeOut()
	_, after := last.takeOut()
	concat(before, after)
}

// newStop makes a stop. Its priority is a hash of the number of stops made
// before: distributed like a random number, but the same on every run.
func (s *State) newStop(n *node) stop {
	s.stops++
	z := s.stops * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return stop{node: n, priority: uint32(z >> 32)}
}
