package topology

// crossing finds a spare link between the trees of a and b after a link
// between them was removed. It returns nil if there is none.
//
// Four searches run interleaved, one step of each in turn, so that the fastest
// determines the cost. On both sides, one search goes outwards from the gap,
// which finds a short way round if there is one, and one follows the order of
// the tour, which skips nodes without spare links. The outward search goes
// first, because the nodes next to the gap have just been visited and the tour
// begins elsewhere. A search that exhausts its side proves that there is no
// such link, so the smaller side bounds the cost of a split.
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

// spares iterates over the spare links of a node's tour.
type spares struct {
	of   *node
	tour *stop // nil before the first call of look
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

// surroundings iterates over all links of a tree, breadth-first, and at each
// node over the spare ones first.
type surroundings struct {
	tour *stop
	ends []arm // nodes whose links have not been examined, each with the link it was reached by
	next int   // in the links of the first of them
}

func around(n *node) *surroundings {
	return &surroundings{tour: n.stop.tour(), ends: []arm{{to: n}}}
}

// look is like look of spares. In a tree the only way back is the link it came
// by, so visited nodes need not be recorded.
func (s *surroundings) look() (leads *link, more bool) {
	for len(s.ends) > 0 && s.next == len(s.ends[0].to.links) {
		s.ends, s.next = s.ends[1:], 0
	}
	if len(s.ends) == 0 {
		return nil, false
	}
	at := s.ends[0]
	s.next++
	i := len(at.to.links) - s.next // spare links first
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
