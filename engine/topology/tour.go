package topology

// A graph's spanning tree is kept as its Euler tour: the sequence of stops of
// a walk around the tree. Every node has one stop; every tree link has two,
// one for each direction. The part between the two is one side of the link, so
// cutting and linking trees means cutting and joining sequences, and a rotated
// tour is also a tour.
//
// The sequence is a treap: a binary tree, in order of the tour and in heap
// order of priorities, which makes its depth logarithmic.

// stop is one element of a tour.
type stop struct {
	up, left, right *stop
	node            *node // the node of the stop; nil for a stop of a link
	priority        uint32
	spare           bool // the node has links outside the spanning tree

	// Whether a stop in the left and right subtree is spare. The flags are
	// stored in the parent rather than in the subtrees, because a walk up or
	// down would otherwise wait for the memory of every stop beside its path.
	spareLeft, spareRight bool
}

// spares reports whether s or a stop below it is spare.
func (s *stop) spares() bool { return s.spare || s.spareLeft || s.spareRight }

// setSpare changes the mark and updates the stops above, as far as necessary.
func (s *stop) setSpare(spare bool) {
	before := s.spares()
	if s.spare = spare; s.spares() != before {
		s.tell()
	}
}

// tell updates the spare flags of the stops above s, as far as necessary.
func (s *stop) tell() {
	for above := s.up; above != nil; s, above = above, above.up {
		before := above.spares()
		if above.left == s {
			above.spareLeft = s.spares()
		} else {
			above.spareRight = s.spares()
		}
		if above.spares() == before {
			return
		}
	}
}

func (s *stop) setLeft(t *stop) {
	if s.left, s.spareLeft = t, false; t != nil {
		t.up, s.spareLeft = s, t.spares()
	}
}

func (s *stop) setRight(t *stop) {
	if s.right, s.spareRight = t, false; t != nil {
		t.up, s.spareRight = s, t.spares()
	}
}

// tour returns the identity of the tour of s, valid until the tour changes.
func (s *stop) tour() *stop {
	for s.up != nil {
		s = s.up
	}
	return s
}

// precedes reports whether s comes before t in their common tour. It climbs from both in
// step: in a large tour, most of the cost is waiting for memory, and in step the two
// waits overlap.
func (s *stop) precedes(t *stop) bool {
	depth := 0 // the depth of s minus the depth of t
	for a, b := s.up, t.up; a != nil || b != nil; {
		if a != nil {
			a = a.up
			depth++
		}
		if b != nil {
			b = b.up
			depth--
		}
	}
	var left, right *stop // where from
	for ; depth > 0; depth-- {
		left, s = s, s.up
	}
	for ; depth < 0; depth++ {
		right, t = t, t.up
	}
	for s != t {
		left, right, s, t = s, t, s.up, t.up
	}
	return left != nil && s.left == left || right != nil && s.right == right
}

func (s *stop) first() *stop {
	for s.left != nil {
		s = s.left
	}
	return s
}

// firstSpare returns the first spare stop at or below s, or nil.
func (s *stop) firstSpare() *stop {
	for {
		switch {
		case s.spareLeft:
			s = s.left
		case s.spare:
			return s
		case s.spareRight:
			s = s.right
		default:
			return nil
		}
	}
}

// followingSpare returns the next spare stop of the tour, or nil.
func (s *stop) followingSpare() *stop {
	if s.spareRight {
		return s.right.firstSpare()
	}
	for ; s.up != nil; s = s.up {
		switch {
		case s.up.right == s:
		case s.up.spare:
			return s.up
		case s.up.spareRight:
			return s.up.right.firstSpare()
		}
	}
	return nil
}

// concat joins two tours end to end.
func concat(a, b *stop) *stop {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority >= b.priority:
		a.setRight(concat(a.right, b))
		return a
	}
	b.setLeft(concat(a, b.left))
	return b
}

// divideBefore cuts a tour in two; the second begins with s.
func (s *stop) divideBefore() (a, b *stop) {
	a = s.left
	if a != nil {
		a.up = nil
	}
	s.setLeft(nil)
	return s.climb(a, s)
}

// divideAfter cuts a tour in two; the first ends with s.
func (s *stop) divideAfter() (a, b *stop) {
	b = s.right
	if b != nil {
		b.up = nil
	}
	s.setRight(nil)
	return s.climb(s, b)
}

// climb divides the stops above s between the parts before and after the cut.
func (s *stop) climb(a, b *stop) (*stop, *stop) {
	from, above := s, s.up
	s.up = nil
	for above != nil {
		next := above.up
		above.up = nil
		if above.left == from {
			above.setLeft(b)
			b = above
		} else {
			above.setRight(a)
			a = above
		}
		from, above = above, next
	}
	return a, b
}

// takeOut removes s from its tour and returns the parts before and after it.
func (s *stop) takeOut() (before, after *stop) {
	before, _ = s.divideBefore()
	_, after = s.divideAfter()
	return before, after
}

// insertAfter inserts a single stop after s. On average this touches a
// constant number of stops.
func (s *stop) insertAfter(lone *stop) {
	if s.right == nil {
		s.right, lone.up = lone, s
	} else {
		s = s.right.first()
		s.left, lone.up = lone, s
	}
	for lone.up != nil && lone.up.priority < lone.priority {
		lone.rotate()
	}
	lone.tell()
}

// remove removes s from its tour, which must have other stops. Like
// insertAfter, it touches a constant number of stops on average.
func (s *stop) remove() {
	for s.left != nil || s.right != nil {
		if s.right == nil || s.left != nil && s.left.priority > s.right.priority {
			s.left.rotate()
		} else {
			s.right.rotate()
		}
	}
	above := s.up
	before := above.spares()
	if s.up = nil; above.left == s {
		above.setLeft(nil)
	} else {
		above.setRight(nil)
	}
	if above.spares() != before {
		above.tell()
	}
}

// rotate swaps s with the stop above it.
func (s *stop) rotate() {
	down, top := s.up, s.up.up
	if down.left == s {
		down.setLeft(s.right)
		s.setRight(down)
	} else {
		down.setRight(s.left)
		s.setLeft(down)
	}
	s.up = top
	switch {
	case top == nil:
	case top.left == down:
		top.left = s
	default:
		top.right = s
	}
}
