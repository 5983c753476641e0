package topology

// ancestry is the set of ids that have become part of one graph. When graphs
// merge, the smaller set is attached to the larger, so paths from ids to the
// graph stay short without path compression: a lookup changes nothing, and
// undoing a merge detaches one set.
type ancestry struct {
	into  *ancestry // the set it is attached to; nil for a root set
	size  int
	graph *graph // of a root set; nil if the graph has ended without a successor
}

func (a *ancestry) whole() *ancestry {
	for a.into != nil {
		a = a.into
	}
	return a
}

// bequeath adds the ids of the ended graph g to those of into, and returns the
// undo function.
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
		small.into, small.graph = large, nil
		large.size += small.size
	}
	large.graph, into.past = into, large
	return func() {
		if small != nil {
			large.size -= small.size
			small.into, theirs.graph = nil, into
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
