package topology_test

import (
	"testing"
	"time"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// measureSearch times a structure that is simpler than a forest but not naive:
// lists of edges, and for each removed edge a search from both of its ends in
// turn, which ends when the searches meet or when one side is exhausted.
func (w *workload) measureSearch(b *testing.B, s *bench) {
	s.follow()
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		deltas, undo := s.try(b, w.ops(s, i)...)
		start := time.Now()
		s.naive.follow(deltas)
		parts := 1
		for _, c := range deltas[0].Changes {
			if c.Kind == EdgeRemoved && !s.naive.joined(c.Creature, c.Channel) {
				parts++
			}
		}
		times = append(times, time.Since(start))
		if want := max(1, len(deltas[0].NewGraphs)); parts != want {
			b.Fatalf("search finds %d parts, want %d", parts, want)
		}
		s.naive.unfollow(deltas)
		undo()
	}
	report(b, times)
}

// joined searches for a path from c to ch, from both ends in turn.
func (n *naive) joined(c CreatureID, ch ChannelID) bool {
	from := &front{naive: n, seen: map[CreatureID]bool{c: true}, queue: []CreatureID{c}}
	to := &front{naive: n, seen: map[CreatureID]bool{}}
	for _, member := range n.members[ch] {
		to.reach(member)
	}
	for {
		for _, pair := range [][2]*front{{from, to}, {to, from}} {
			here, there := pair[0], pair[1]
			if len(here.queue) == 0 {
				return false
			}
			if here.step(there) {
				return true
			}
		}
	}
}

// front holds the creatures and channels that one side of a search has
// visited.
type front struct {
	*naive
	seen  map[CreatureID]bool
	queue []CreatureID
}

func (f *front) reach(c CreatureID) {
	if !f.seen[c] {
		f.seen[c] = true
		f.queue = append(f.queue, c)
	}
}

// step continues from one creature and reports whether the other side has
// visited it.
func (f *front) step(other *front) bool {
	c := f.queue[0]
	f.queue = f.queue[1:]
	if other.seen[c] {
		return true
	}
	for _, ch := range f.on[c] {
		for _, next := range f.members[ch] {
			f.reach(next)
		}
	}
	return false
}
