package engine

import (
	"cmp"
	"slices"
)

// snapshot writes what a volatile graph holds into the first record of a store
// that it becomes part of: messages that are still to be delivered, state, and
// how far readers and producers have got.
type snapshot struct {
	x        *change
	rec      *Record
	origin   Origin
	seen     map[*message]bool
	messages []*message
}

func newSnapshot(x *change, rec *Record, origin Origin) *snapshot {
	return &snapshot{x: x, rec: rec, origin: origin, seen: map[*message]bool{}}
}

// add collects those members of a volatile graph that are in the graph after
// now.
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
		s.window(&cr.mb)
		if inbox := g.channels[InboxOf(cr.id)]; inbox != nil {
			s.channel(inbox)
		}
	}
	for _, ch := range g.sortedChannels() {
		if s.x.e.topo.ChannelGraph(ch.id) == after {
			s.channel(ch)
		}
	}
}

// channel writes down who has read and sent how far from outside.
func (s *snapshot) channel(ch *channel) {
	for producer, offset := range ch.producers {
		s.rec.Producers = append(s.rec.Producers, ProducerRow{ch.id, producer, offset})
	}
	for reader, seq := range ch.cursors {
		s.rec.Cursors = append(s.rec.Cursors, CursorRow{Reader: reader, Channel: ch.id, Seq: seq})
	}
	for _, src := range ch.sources {
		if src.mb.reader != nil {
			s.window(src.mb)
		}
	}
}

func (s *snapshot) window(mb *mailbox) {
	for i := range mb.n {
		s.message(mb.at(i).msg)
	}
}

// message collects a message, once.
func (s *snapshot) message(m *message) {
	if s.seen[m] || m.channel == "" {
		return
	}
	s.seen[m] = true
	s.messages = append(s.messages, m)
}

// write writes the messages down, in the order in which they were sent. They
// get ids of the new log, because no log has had them before; their places in
// their channels stay.
func (s *snapshot) write() {
	slices.SortStableFunc(s.messages, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.channel, b.channel), cmp.Compare(a.seq, b.seq))
	})
	for i, m := range s.messages {
		ev := m.event("")
		ev.Payload, ev.Headers = slices.Clone(m.payload), slices.Clone(m.headers)
		ev.ID = EventID{s.origin, uint64(i + 1)}
		s.rec.Events = append(s.rec.Events, ev)
	}
}
