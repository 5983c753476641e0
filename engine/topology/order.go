package topology

// StartAbove makes creation numbers, and the places of edges, start above the
// given ones, so that additions come after existing items that have not been
// restored yet.
func (s *State) StartAbove(creature, channel, graph, edge uint64) {
	s.last.creature = max(s.last.creature, creature)
	s.last.channel = max(s.last.channel, channel)
	s.last.graph = max(s.last.graph, graph)
	s.last.edge = max(s.last.edge, edge)
}

// EdgeOrder returns the place of an edge among all edges in the order in which
// they were added, or 0 if there is no such edge. Places are not always
// consecutive.
func (s *State) EdgeOrder(c CreatureID, ch ChannelID, d Direction) uint64 {
	if h := s.edge(c, ch, d); h != nil {
		return h.seq
	}
	return 0
}

// SetEdgeOrder gives a restored edge its previous place; 0 leaves it where it
// is. Edges added later come after it.
func (s *State) SetEdgeOrder(c CreatureID, ch ChannelID, d Direction, place uint64) {
	h := s.edge(c, ch, d)
	if h == nil || place == 0 {
		return
	}
	h.seq = place
	s.last.edge = max(s.last.edge, place)
}

// edge returns an edge, or nil if there is none.
func (s *State) edge(c CreatureID, ch ChannelID, d Direction) *half {
	from, to := s.creatures.get(c), s.channels.get(ch)
	if from == nil || to == nil {
		return nil
	}
	l := from.link(to)
	if l == nil || !l.half(d).on() {
		return nil
	}
	return l.half(d)
}
