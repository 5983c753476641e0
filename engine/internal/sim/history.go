package sim

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// The file of a session that came out of a cut has its first record, what has
// been copied from its parents so far, and its own records. As long as it is
// incomplete, the rest is read from the files of its parents, which may be
// incomplete themselves. The file of a session that a cut has ended goes when
// nobody reads it any more; what it had is then read from whoever came of it.

// look puts the history of a session together, if that was not done since the
// files that it is in have changed.
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

// gather lists what the session did not append itself, in any order.
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
			continue // which verify will notice
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

// recall lists what a session had whose file is gone: of a child's history, what
// the catalogue says that it had.
func (s *session) recall() (out []journal.Event) {
	heir := s.heirs[0]
	heir.look()
	for i := range heir.len() {
		if ev := heir.at(i); ev.ID.Seq <= s.extent[ev.ID.Origin] {
			out = append(out, *ev)
		}
	}
	return out
}

// freeze notes in the catalogue what a session has when a cut ends it.
func (s *session) freeze() {
	s.look()
	s.extent = map[journal.Origin]uint64{}
	for i := range s.len() {
		id := s.at(i).ID
		s.extent[id.Origin] = max(s.extent[id.Origin], id.Seq)
	}
}

// Copy copies up to n events into a session that is incomplete and has not been
// cut; which selects the session. It is complete when there is nothing left to
// copy. What is copied is synced then, or if sync says so.
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

// Incomplete is how many sessions there are to copy into.
func (d *Disk) Incomplete() int { return len(d.incomplete()) }

func (d *Disk) incomplete() (out []*session) {
	for _, s := range d.order {
		if !s.info.Complete && len(s.heirs) == 0 {
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

// Sweep removes files that nobody reads any more: those of sessions that a cut
// has ended whose children are complete, or have gone themselves.
func (d *Disk) Sweep() {
	if d.Broken || d.crashed {
		return
	}
	for _, s := range slices.Backward(d.order) {
		reads := func(heir *session) bool { return !heir.info.Complete && !heir.gone }
		if s.gone || len(s.heirs) == 0 || slices.ContainsFunc(s.heirs, reads) {
			continue
		}
		s.gone, s.stale = true, true
		s.first, s.copied, s.safe = nil, nil, 0
		s.records, s.events, s.written, s.synced = nil, nil, 0, 0
		s.baseRows, s.rows = newRows(nil), newRows(nil)
	}
}

// tend is what a session directory does in the background, a piece at a time,
// where nobody says when it happens.
func (d *Disk) tend() {
	if d.Manual {
		return
	}
	d.tended++
	d.Copy(d.tended, 20, true)
	d.Sweep()
}
