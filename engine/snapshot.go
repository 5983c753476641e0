package engine

// snapshot writes what a volatile graph holds into the first record of a store
// that it becomes part of: messages that are still to be delivered, and state.
type snapshot struct {
	x      *change
	rec    *Record
	origin Origin
	seen   map[*message]bool
}

func newSnapshot(x *change, rec *Record, origin Origin) *snapshot {
	return &snapshot{x: x, rec: rec, origin: origin, seen: map[*message]bool{}}
}

// add writes down those members of a volatile graph that are in the graph
// after now.
func (s *snapshot) add(g *graph, after GraphID) {
	for _, cr := range g.sortedCreatures() {
		if s.x.e.topo.GraphOf(cr.id) != after {
			continue
		}
		for key, value := range cr.state {
			s.rec.State = append(s.rec.State, StateRow{Creature: cr.id, Key: key, Value: value})
		}
		if cr.current.msg != nil {
			s.message(cr.current.msg)
		}
		if cr.retry != nil {
			s.message(cr.retry.msg)
		}
		for i := range cr.mb.n {
			s.message(cr.mb.at(i).msg)
		}
	}
}

// message writes down a message, once. It gets an id of the new log, because
// no log has had it before; its place in its channel stays.
func (s *snapshot) message(m *message) {
	if s.seen[m] || m.channel == "" {
		return
	}
	s.seen[m] = true
	ev := m.event("")
	ev.Payload = append([]byte(nil), m.payload...)
	ev.Headers = append([]byte(nil), m.headers...)
	ev.ID = EventID{s.origin, uint64(len(s.rec.Events) + 1)}
	s.rec.Events = append(s.rec.Events, ev)
}
