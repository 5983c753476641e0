package engine

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// snapshot writes the contents of a volatile graph to the first record of the store that
// it becomes part of: undelivered messages, state, dead letters, and the positions of
// readers and producers.
type snapshot struct {
	x        *change
	group    *storeGroup
	rec      *journal.Record
	origin   journal.Origin
	seen     map[place]bool
	messages []*message.Message
	feeds    []*feed
	states   []journal.StateRow
	letters  []letter
	reaches  []*question
}

// place is the place of a message in its channel.
type place struct {
	channel journal.ChannelID
	seq     uint64
}

func newSnapshot(x *change, group *storeGroup, rec *journal.Record, origin journal.Origin) *snapshot {
	return &snapshot{x: x, group: group, rec: rec, origin: origin, seen: map[place]bool{}}
}

// add collects the members of a volatile graph that are now in one of the graphs for
// which here is true.
func (s *snapshot) add(g section, here func(journal.GraphID) bool) {
	for _, cr := range g.sortedCreatures() {
		if !here(s.x.e.topo.GraphOf(cr.id)) {
			continue
		}
		if cr.state != nil {
			cr.state.Scan(func(key string, value []byte) bool {
				s.states = append(s.states, journal.StateRow{Creature: cr.id, Key: key, Value: value})
				return true
			})
		}
		for _, q := range cr.questions {
			if q.out != nil {
				s.reaches = append(s.reaches, q)
			}
		}
		if cr.current.msg != nil {
			s.message(cr.current.msg)
		}
		if tc := s.x.turn; tc != nil && tc.c == cr && tc.d.msg != nil {
			s.message(tc.d.msg) // this change has dealt with it
		}
		if cr.retry != nil {
			s.message(cr.retry.msg)
		}
		s.feeds = append(s.feeds, cr.mb.feeds...)
		s.window(&cr.mb)
		if inbox := g.channels[journal.InboxOf(cr.id)]; inbox != nil {
			s.channel(inbox)
		}
	}
	for _, ch := range g.sortedChannels() {
		if here(s.x.e.topo.ChannelGraph(ch.id)) {
			s.channel(ch)
		}
	}
	for _, l := range g.letters.Rows() {
		if here(s.x.successor(g, l.Creature, s.group)) {
			s.letters = append(s.letters, letter{DeadLetterRow: l})
		}
	}
}

// channel records the positions of outside readers and producers.
func (s *snapshot) channel(ch *channel) {
	for producer, offset := range ch.producers {
		s.rec.Producers = append(s.rec.Producers, journal.ProducerRow{Channel: ch.id, Producer: producer, Offset: offset})
	}
	for reader, seq := range ch.cursors {
		s.rec.Cursors = append(s.rec.Cursors, journal.CursorRow{Reader: reader, Channel: ch.id, Seq: seq})
	}
	for _, src := range ch.feeds {
		if src.mb.reader != nil {
			s.window(src.mb)
		}
	}
}

func (s *snapshot) window(mb *mailbox) {
	for d := range mb.window.All() {
		s.message(d.msg)
	}
}

// message collects a message, once.
func (s *snapshot) message(m *message.Message) {
	p := place{m.Channel, m.Seq}
	if s.seen[p] || m.Channel == "" {
		return
	}
	s.seen[p] = true
	s.messages = append(s.messages, m)
}

// write writes everything that was collected. Messages come in the order in which they were sent;
// they get ids of the new log, because they were in no log before, and keep their places in their
// channels. State becomes events as well, so that the log is complete.
func (s *snapshot) write() {
	x := s.x
	slices.SortStableFunc(s.messages, func(a, b *message.Message) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Seq, b.Seq))
	})
	for _, m := range s.messages {
		ev := m.Event("")
		ev.ID = s.nextID()
		ev.Payload, ev.Headers = slices.Clone(m.Payload), slices.Clone(m.Headers)
		s.rec.Events = append(s.rec.Events, ev)
		x.entry.logged[m], x.entry.ids[m.ID] = ev.ID, ev.ID
	}
	slices.SortFunc(s.reaches, func(a, b *question) int { return cmp.Compare(a.key.Seq, b.key.Seq) })
	for _, q := range s.reaches {
		ev := q.out.Event(s.nextID(), q.row.Creature)
		ev.Time = x.tick()
		s.rec.Events = append(s.rec.Events, ev)
		x.entry.ids[q.row.ID] = ev.ID
	}
	s.findRuns()
	for _, row := range s.states {
		s.rec.State = append(s.rec.State, row)
		s.rec.Events = append(s.rec.Events, journal.Event{
			ID: s.nextID(), Time: x.tick(), Kind: journal.EventState, Creature: row.Creature,
			Payload: (&effects.Write{Key: row.Key, Value: row.Value}).Encode(),
		})
	}
	for i := range s.letters {
		l := &s.letters[i]
		l.ID, l.Time, l.Message = s.nextID(), x.tick(), x.entry.ids[l.Message]
		s.rec.Events = append(s.rec.Events, l.event())
		s.rec.Letters = append(s.rec.Letters, l.DeadLetterRow)
	}
}

// findRuns finds the feeds that passed over messages that are now in the log because
// another reader has not read them yet.
func (s *snapshot) findRuns() {
	log := map[journal.ChannelID][]*message.Message{}
	for _, m := range s.messages {
		log[m.Channel] = append(log[m.Channel], m)
	}
	for _, src := range s.feeds {
		if !s.x.dropped[src.id] || src.ch == nil {
			s.x.entry.findRuns(src, log[src.id])
		}
	}
}

func (s *snapshot) nextID() journal.EventID {
	return journal.EventID{Origin: s.origin, Seq: uint64(len(s.rec.Events) + 1)}
}
