package topology

// crossing finds a spare link from the tree of a to that of b, which a link
// that went held together. It returns nil if there is none.
//
// Spare links are looked for in four ways at once, a step of each in turn, so
// that the quickest decides what it costs: on both sides, from the gap outwards,
// which finds the short way round where there is one, and in the order of the
// tour, which passes over all that have none. Outwards goes first, because what
// is next to the gap has just been visited and the tour begins elsewhere.
// Whatever has gone through its whole side in vain has shown that there is none,
// so the smaller side bounds the cost of a split.
func crossing(a, b *node) *link {
	ways := [...]interface{ look() (*link, bool) }{
		around(a), around(b), &spares{of: a}, &spares{of: b},
	}
	for {
		for _, way := range ways {
			if l, more := way.look(); l != nil || !more {
				return l
			}
		}
	}
}

// spares goes through the spare links of the tour that a node is in.
type spares struct {
	of   *node
	tour *stop // nil before the first look
	at   *stop
	next int // in the links of at.node
}

func (s *spares) move(to *stop) {
	if s.at = to; to != nil {
		s.next = to.node.trees
	}
}

// look examines the next link. It returns it if it leads to another tour;
// more is false if there is none left.
func (s *spares) look() (leads *link, more bool) {
	if s.tour == nil {
		s.tour = s.of.stop.tour()
		s.move(s.tour.firstSpare())
	}
	for s.at != nil && s.next == len(s.at.node.links) {
		s.move(s.at.followingSpare())
	}
	if s.at == nil {
		return nil, false
	}
	s.next++
	return s.at.node.leaving(s.next-1, s.tour), true
}

// surroundings goes through all links of a tree, breadth-first, and at each node
// first through the spare ones.
type surroundings struct {
	tour *stop
	ends []arm // the nodes whose links are still to be looked at, and how they were come to
	next int   // in the links of the first of them
}

func around(n *node) *surroundings {
	return &surroundings{tour: n.stop.tour(), ends: []arm{{to: n}}}
}

// look is like that of spares. A tree has no way back to where it was but the
// one it came by, so nobody has to remember what was seen.
func (s *surroundings) look() (leads *link, more bool) {
	for len(s.ends) > 0 && s.next == len(s.ends[0].to.links) {
		s.ends, s.next = s.ends[1:], 0
	}
	if len(s.ends) == 0 {
		return nil, false
	}
	at := s.ends[0]
	s.next++
	i := len(at.to.links) - s.next // the spare ones first
	if i >= at.to.trees {
		return at.to.leaving(i, s.tour), true
	}
	if next := at.to.links[i]; next.link != at.link {
		s.ends = append(s.ends, next)
	}
	return nil, true
}

// leaving returns a link of n if it leads out of a tour.
func (n *node) leaving(i int, tour *stop) *link {
	if a := n.links[i]; a.to.stop.tour() != tour {
		return a.link
	}
	return nil
}
