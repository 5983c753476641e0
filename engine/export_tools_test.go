package engine

import "github.com/seed47132306/terrarium/engine/journal"

// Unlocked releases the mutation lock during f, even in the middle of a turn that holds it,
// because the calling goroutine holds that lock.
func (s *Stepper) Unlocked(f func()) {
	if !s.Alone() {
		f()
		return
	}
	s.core.mutation.mu.Unlock()
	defer s.core.mutation.mu.Lock()
	f()
}

// Alone reports whether the mutation lock is held.
func (s *Stepper) Alone() bool {
	if s.core.mutation.mu.TryRLock() {
		s.core.mutation.mu.RUnlock()
		return false
	}
	return true
}

// Heads are the last numbers of all channels and inboxes.
func (s *Stepper) Heads() map[journal.ChannelID]uint64 {
	l := s.core.rlock()
	defer l.runlock()
	out := map[journal.ChannelID]uint64{}
	for _, d := range l.saved {
		for _, h := range d.Heads {
			out[h.Channel] = h.Seq
		}
	}
	for id, ch := range l.channels {
		out[id] = ch.head
	}
	return out
}

// ConflictsInARow is how often a creature's turn has conflicted with another change
// since its last commit.
func (s *Stepper) ConflictsInARow(id journal.CreatureID) int {
	l := s.core.rlock()
	defer l.runlock()
	return l.creatures[id].conflicts
}
