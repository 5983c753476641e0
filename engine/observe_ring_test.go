package engine

import (
	"math/rand/v2"
	"testing"
)

// TestRingGrows has a ring take and give events at random, and compares it with a list.
func TestRingGrows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const buffer = 1000
	s := &Subscription{e: &Engine{clock: realClock{}}, buffer: buffer, news: make(chan struct{}, 1)}
	var want []uint64
	next, largest := uint64(1), 0
	for s.missed == 0 {
		for range random.IntN(40) {
			s.add(Observed{Seq: next})
			if len(want) < buffer {
				want = append(want, next)
			}
			next++
		}
		for range min(random.IntN(30), len(want)) {
			ob, ok := s.take()
			if !ok || ob.Seq != want[0] {
				t.Fatalf("took %d, %v, want %d", ob.Seq, ok, want[0])
			}
			want = want[1:]
		}
		if len(s.ring) > 64 && len(s.ring) > 2*max(largest, len(want)+40) {
			t.Fatalf("a ring of %d for %d events", len(s.ring), len(want))
		}
		largest = max(largest, len(want)+40)
	}
	for _, seq := range want {
		if ob, ok := s.take(); !ok || ob.Seq != seq {
			t.Fatalf("took %d, %v, want %d", ob.Seq, ok, seq)
		}
	}
	if len(s.ring) != buffer {
		t.Errorf("a ring of %d, want %d", len(s.ring), buffer)
	}
}
