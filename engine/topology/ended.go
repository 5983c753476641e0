package topology

// ancestry is the set of ids that have become part of one graph. When graphs
// merge, the smaller set is hung beneath the larger, so the way from an id to
// the graph is short without ever being rewritten: a look-up changes nothing,
// and undoing a merge is unhooking one set.
type ancestry struct {
	into  *ancestry // the set it is part of; nil for a whole one
	size  int
	graph *graph // of a whole set; nil when the graph has ended without a successor
}

func (a *ancestry) whole() *ancestry {
	for a.into != nil {
		a = a.into
	}
	return a
}

// bequeath adds the ids of g, which has ended, to those of into, and returns
// what undoes it.
func (s *State) bequeath(g, into *graph) (undo func()) {
	own, theirs := g.past, into.past
	if own == nil {
		own = &ancestry{graph: g}
	}
	s.ended.set(g.id, own)
	own.size++
	large, small := own, theirs
	if theirs != nil {
		if theirs.size > own.size {
			large, small = theirs, own
		}
		small.into = large
		large.size += small.size
	}
	large.graph, into.past = into, large
	return func() {
		if small != nil {
			large.size -= small.size
			small.into = nil
			theirs.graph = into
		}
		own.size--
		own.graph, into.past = g, theirs
		s.ended.remove(g.id)
	}
}

// live returns the live graph that id is or has become part of, or nil.
func (s *State) live(id GraphID) *graph {
	if g := s.graphs.get(id); g != nil {
		return g
	}
	if past := s.ended.get(id); past != nil {
		return past.whole().graph
	}
	return nil
}
