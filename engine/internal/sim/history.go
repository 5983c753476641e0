package sim

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// The file of a session made by a cut has its first record, the history copied
// from its parents so far, and its own records. As long as it is incomplete,
// the rest is read from the files of its parents, which may be incomplete
// themselves. The file of a session ended by a cut is removed once no session
// reads it; its history is then read from its successors.

// look combines the history of a session, unless that was done since its files
// last changed.
func (s *session) look() {
	if !s.stale {
		return
	}
	s.stale = false
	s.base = s.gather()
	slices.SortStableFunc(s.base, byTime)
	s.places = make(map[journal.EventID]int, len(s.base)+len(s.events))
	for i := range s.len() {
		s.places[s.at(i).ID] = i
	}
}

// gather lists the events that the session did not append itself, in any
// order.
func (s *session) gather() []journal.Event {
	if s.gone {
		return s.recall()
	}
	out := slices.Concat(s.first, s.copied)
	if s.info.Complete {
		return out
	}
	has := make(map[journal.EventID]bool, len(out))
	for i := range out {
		has[out[i].ID] = true
	}
	for _, p := range s.parents {
		if p.gone {
			continue // verify will report it
		}
		p.look()
		for i := range p.len() {
			if ev := p.at(i); !has[ev.ID] {
				has[ev.ID] = true
				out = append(out, *ev)
			}
		}
	}
	return out
}

// recall lists the events of a session whose file was removed: those of a
// child's history that the catalogue assigns to it.
func (s *session) recall() (out []journal.Event) {
	successor := s.successors[0]
	successor.look()
	for i := range successor.len() {
		if ev := successor.at(i); ev.ID.Seq <= s.extent[ev.ID.Origin] {
			out = append(out, *ev)
		}
	}
	return out
}

// freeze records in the catalogue the events of a session when a cut ends it.
func (s *session) freeze() {
	s.look()
	s.extent = map[journal.Origin]uint64{}
	for i := range s.len() {
		id := s.at(i).ID
		s.extent[id.Origin] = max(s.extent[id.Origin], id.Seq)
	}
}

// Copy copies up to n events into a session that is incomplete and has not
// been cut; which selects the session. The session is complete when nothing is
// left to copy. Copied events are synced then, or if sync is set.
func (d *Disk) Copy(which, n int, sync bool) {
	waiting := d.incomplete()
	if len(waiting) == 0 || d.Broken || d.crashed {
		return
	}
	s := waiting[which%len(waiting)]
	s.copyMore(n)
	if sync || s.info.Complete {
		s.safe = len(s.copied)
	}
}

// Incomplete returns how many sessions are incomplete.
func (d *Disk) Incomplete() int { return len(d.incomplete()) }

func (d *Disk) incomplete() (out []*session) {
	for _, s := range d.order {
		if !s.info.Complete && len(s.successors) == 0 {
			out = append(out, s)
		}
	}
	return out
}

func (s *session) copyMore(n int) {
	s.look()
	has := make(map[journal.EventID]bool, len(s.first)+len(s.copied))
	for _, list := range [][]journal.Event{s.first, s.copied} {
		for i := range list {
			has[list[i].ID] = true
		}
	}
	s.stale = true
	for i := range s.base {
		if has[s.base[i].ID] {
			continue
		}
		if n--; n < 0 {
			return
		}
		s.copied = append(s.copied, s.base[i])
	}
	s.info.Complete = true
}

// Sweep removes files that are no longer read: those of sessions ended by a
// cut whose children are complete, or were removed themselves.
func (d *Disk) Sweep() {
	if d.Broken || d.crashed {
		return
	}
	for _, s := range slices.Backward(d.order) {
		reads := func(successor *session) bool { return !successor.info.Complete && !successor.gone }
		if s.gone || len(s.successors) == 0 || slices.ContainsFunc(s.successors, reads) {
			continue
		}
		s.gone, s.stale = true, true
		s.first, s.copied, s.safe = nil, nil, 0
		s.records, s.events, s.written, s.synced = nil, nil, 0, 0
		s.baseRows, s.rows = newRows(nil), newRows(nil)
	}
}

// tend does the background work of a session directory, a piece at a time, at
// unspecified times.
func (d *Disk) tend() {
	if d.Manual {
		return
	}
	d.tended++
	d.Copy(d.tended, 20, true)
	d.Sweep()
}
