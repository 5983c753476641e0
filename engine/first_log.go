package engine

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// logEntry is what changes in memory when graphs without a store become part of
// one with a store, if the cut succeeds.
type logEntry struct {
	// logged are the ids under which messages enter the log, and ids the same by
	// the ids that they had.
	logged map[*message]journal.EventID
	ids    map[journal.EventID]journal.EventID
	// runs are what is left to be delivered of sources that passed over
	// something, because their mailboxes were full.
	runs map[*source][]run
}

func newLogEntry() logEntry {
	return logEntry{logged: map[*message]journal.EventID{}, ids: map[journal.EventID]journal.EventID{}, runs: map[*source][]run{}}
}

// run is a range of messages, both ends included.
type run struct{ first, last uint64 }

// findRuns notes what a source has left to be delivered, if that is not simply
// everything behind its cursor that the log has: a cursor cannot say so, but
// backlogs can. The log has the given messages of the channel, in order.
func (n *logEntry) findRuns(s *source, log []*message) {
	c := s.mb.creature
	from, waiting := s.dealt(), s.waiting()
	runs, open, holes := []run{}, false, false
	for _, m := range log {
		switch {
		case m.seq <= from || m.seq > s.end():
		case waiting[m.seq] && open:
			runs[len(runs)-1].last = m.seq
		case waiting[m.seq]:
			runs, open = append(runs, run{m.seq, m.seq}), true
		case m.sender != c.id || journal.IsInbox(s.id): // it would hear this again
			open, holes = false, true
		}
	}
	if holes {
		n.runs[s] = runs
	}
}

// carryOut makes the changes.
func (n *logEntry) carryOut(x *change) {
	for m, id := range n.logged {
		m.logged = id
	}
	for s, runs := range n.runs {
		s.divide(runs)
	}
	if len(n.ids) == 0 {
		return
	}
	for g := range x.paused {
		for _, cr := range g.creatures {
			for _, q := range cr.questions {
				q.row.ID = cmp.Or(n.ids[q.row.ID], q.row.ID)
			}
		}
	}
}

// waiting are the numbers of what a creature's source has in memory.
func (s *source) waiting() map[uint64]bool {
	out := map[uint64]bool{}
	for _, d := range s.inHand() {
		out[d.msg.seq] = true
	}
	for i := range s.mb.n {
		if d := s.mb.at(i); d.src == s {
			out[d.msg.seq] = true
		}
	}
	return out
}

// unread counts what waits for a creature of its source, but for what it handles at
// the moment.
func (s *source) unread() uint64 {
	n := uint64(len(s.waiting()))
	if s.mb.creature.current.src == s {
		n--
	}
	if end := s.end(); end > s.offered {
		n += end - s.offered
	}
	return n
}

// divide turns a source into backlogs, one for each run, and if there is an
// edge, into a source that has read everything so far. The first backlog is the
// source itself, which a worker may have in hand.
func (s *source) divide(runs []run) {
	mb := s.mb
	end := s.end()
	if len(runs) == 0 {
		s.cursor, s.offered = end, end
		if s.ch == nil {
			mb.forget(s)
		}
		return
	}
	if ch := s.ch; ch != nil {
		live := &source{mb: mb, id: s.id, ch: ch, alias: s.alias, cursor: end, offered: end}
		ch.sources[slices.Index(ch.sources, s)] = live
		mb.sources = append(mb.sources, live)
		s.ch = nil
	}
	s.cursor, s.offered, s.until = runs[0].first-1, runs[0].last, runs[0].last
	for _, r := range runs[1:] {
		part := &source{mb: mb, id: s.id, alias: s.alias, cursor: r.first - 1, offered: r.last, until: r.last}
		mb.sources = append(mb.sources, part)
		for i := range mb.n {
			if d := &mb.ring[(mb.head+i)&(len(mb.ring)-1)]; d.src == s && d.msg.seq >= r.first && d.msg.seq <= r.last {
				d.src = part
			}
		}
	}
}
