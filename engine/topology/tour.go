package topology

// A graph's spanning tree is kept as its Euler tour: the sequence of stops of
// a walk around the tree. Every node has one stop of its own; every link of
// the tree has two more, one for each way it is walked. What lies between the
// two is one side of the link, so cutting and linking trees is cutting and
// joining sequences, and a rotated tour is a tour again.
//
// The sequence is a treap: a binary tree, in order of the tour and in heap
// order of priorities, which makes its depth logarithmic.

// stop is one element of a tour.
type stop struct {
	up, left, right *stop
	node            *node // whose own stop it is; nil for a link's
	priority        uint32
	spare           bool // the node has links outside of the spanning tree
	below           bool // this or a stop beneath is spare
}

func (s *stop) refresh() {
	s.below = s.spare || s.left != nil && s.left.below || s.right != nil && s.right.below
}

// setSpare changes the mark and tells the stops above, as far as it matters.
func (s *stop) setSpare(spare bool) {
	s.spare = spare
	s.tell()
}

// tell brings the marks at s and above up to date.
func (s *stop) tell() {
	for ; s != nil; s = s.up {
		before := s.below
		if s.refresh(); s.below == before {
			return
		}
	}
}

func (s *stop) setLeft(t *stop) {
	s.left = t
	if t != nil {
		t.up = s
	}
	s.refresh()
}

func (s *stop) setRight(t *stop) {
	s.right = t
	if t != nil {
		t.up = s
	}
	s.refresh()
}

// tour returns what identifies the tour that s is in, until it changes.
func (s *stop) tour() *stop {
	for s.up != nil {
		s = s.up
	}
	return s
}

func (s *stop) first() *stop {
	for s.left != nil {
		s = s.left
	}
	return s
}

// following returns the next stop of the tour, or nil.
func (s *stop) following() *stop {
	if s.right != nil {
		return s.right.first()
	}
	for s.up != nil && s.up.right == s {
		s = s.up
	}
	return s.up
}

// firstSpare returns the first spare stop at or beneath s, or nil.
func (s *stop) firstSpare() *stop {
	for s != nil && s.below {
		switch {
		case s.left != nil && s.left.below:
			s = s.left
		case s.spare:
			return s
		default:
			s = s.right
		}
	}
	return nil
}

// followingSpare returns the next spare stop of the tour, or nil.
func (s *stop) followingSpare() *stop {
	if found := s.right.firstSpare(); found != nil {
		return found
	}
	for ; s.up != nil; s = s.up {
		if s.up.right == s {
			continue
		}
		if s.up.spare {
			return s.up
		}
		if found := s.up.right.firstSpare(); found != nil {
			return found
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

// divideBefore cuts a tour in two, of which the second begins with s.
func (s *stop) divideBefore() (a, b *stop) {
	a = s.left
	if a != nil {
		a.up = nil
	}
	s.setLeft(nil)
	return s.climb(a, s)
}

// divideAfter cuts a tour in two, of which the first ends with s.
func (s *stop) divideAfter() (a, b *stop) {
	b = s.right
	if b != nil {
		b.up = nil
	}
	s.setRight(nil)
	return s.climb(s, b)
}

// climb shares out what is above s between what comes before and after the
// cut.
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

// takeOut removes s from its tour and returns what was before and after it.
func (s *stop) takeOut() (before, after *stop) {
	before, _ = s.divideBefore()
	_, after = s.divideAfter()
	return before, after
}

// insertAfter puts a lone stop behind s. On average this touches a constant
// number of stops.
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
	for above := lone.up; above != nil && lone.below && !above.below; above = above.up {
		above.below = true
	}
}

// remove takes s out of its tour, which must have other stops. Like
// insertAfter, this touches a constant number of stops on average.
func (s *stop) remove() {
	for s.left != nil || s.right != nil {
		if s.right == nil || s.left != nil && s.left.priority > s.right.priority {
			s.left.rotate()
		} else {
			s.right.rotate()
		}
	}
	above := s.up
	if s.up = nil; above.left == s {
		above.left = nil
	} else {
		above.right = nil
	}
	above.tell()
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
