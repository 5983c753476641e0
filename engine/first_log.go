package engine

import (
	"cmp"
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/cursors"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

func newLogEntry() logEntry {
	return logEntry{logged: map[*message.Message]journal.EventID{}, ids: map[journal.EventID]journal.EventID{}, runs: map[*feed][]cursors.Run{}}
}

// errElsewhere is the reason for refusing a change that would log a message a second time.
var errElsewhere = errors.New("it is in the store of another graph")

// mayEnter refuses a change if a graph without a log would enter one while it has
// messages that are in the log of another graph, with which it was one when they were
// sent. An event has one id, and the two graphs may merge again.
func (p *storePlan) mayEnter(x *change) error {
	for _, g := range p.groups {
		if g.Keeps() || len(g.After) == 0 || g.durability(x) == journal.Volatile {
			continue
		}
		for _, b := range g.before {
			if b.store != nil {
				continue
			}
			s := newSnapshot(x, g, &journal.Record{}, journal.Origin{})
			s.add(b, func(journal.GraphID) bool { return true })
			if i := slices.IndexFunc(s.messages, func(m *message.Message) bool { return m.Logged.Load() != nil }); i >= 0 {
				m := s.messages[i]
				return errtext.WaitsTwice(x.name, m.Channel, m.Seq, errElsewhere)
			}
		}
	}
	return nil
}

// findRuns records what a feed still has to deliver, unless that is simply everything
// in the log after its cursor. log has the given messages of the channel, in order.
func (n *logEntry) findRuns(s *feed, log []*message.Message) {
	c, waiting, numbers, own := s.mb.creature, s.waiting(), make([]uint64, len(log)), map[uint64]bool{}
	for i, m := range log {
		numbers[i] = m.Seq
		own[m.Seq] = m.Sender == c.id && !journal.IsInbox(s.id) // it must not hear that
	}
	runs, gaps := cursors.Runs(numbers, s.dealt(), s.lastMessage(), func(seq uint64) bool { return waiting[seq] }, func(seq uint64) bool { return own[seq] })
	if gaps {
		n.runs[s] = runs
	}
}

// enterLog adapts the graphs that get their first log to it.
func (x *change) enterLog() {
	n := &x.entry
	for m, id := range n.logged {
		m.Logged.Store(&id)
	}
	for s, runs := range n.runs {
		s.divide(runs)
	}
	if len(n.ids) == 0 {
		return
	}
	for _, g := range x.paused {
		for _, cr := range g.creatures {
			for _, q := range cr.questions {
				q.row.ID = cmp.Or(n.ids[q.row.ID], q.row.ID)
			}
		}
	}
}

// waiting are the numbers of the messages that a creature's feed has in memory.
func (s *feed) waiting() map[uint64]bool {
	out := map[uint64]bool{}
	for _, d := range s.inHand() {
		out[d.msg.Seq] = true
	}
	for d := range s.mb.window.All() {
		if d.feed == s {
			out[d.msg.Seq] = true
		}
	}
	return out
}

// unread counts what waits in a creature's feed, except for the delivery being handled.
func (s *feed) unread() uint64 {
	n := uint64(len(s.waiting()))
	if s.mb.creature.current.feed == s {
		n--
	}
	if end := s.lastMessage(); end > s.offered {
		n += end - s.offered
	}
	return n
}

// divide turns a feed into backlogs, one for each run. If there is an edge, it also
// makes a feed that has read everything so far. The first backlog is the feed itself,
// because a worker may be using it.
func (s *feed) divide(runs []cursors.Run) {
	mb := s.mb
	end := s.lastMessage()
	if len(runs) == 0 {
		s.cursor, s.offered = end, end
		if s.ch == nil {
			mb.dropFeed(s)
		}
		return
	}
	if ch := s.ch; ch != nil {
		live := &feed{mb: mb, id: s.id, ch: ch, alias: s.alias, cursor: end, offered: end}
		ch.feeds[slices.Index(ch.feeds, s)] = live
		mb.feeds = append(mb.feeds, live)
		s.ch = nil
	}
	s.cursor, s.offered, s.until = runs[0].First-1, runs[0].Last, runs[0].Last
	for _, r := range runs[1:] {
		part := &feed{mb: mb, id: s.id, alias: s.alias, cursor: r.First - 1, offered: r.Last, until: r.Last}
		mb.feeds = append(mb.feeds, part)
		for d := range mb.window.All() {
			if d.feed == s && d.msg.Seq >= r.First && d.msg.Seq <= r.Last {
				d.feed = part
			}
		}
	}
}
