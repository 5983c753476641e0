package ring

import (
	"math/rand/v2"
	"testing"
)

// TestRingGrows adds and takes values at random, and compares the ring with a
// list.
func TestRingGrows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const buffer = 1000
	r := New[uint64](buffer)
	var want []uint64
	next, largest := uint64(1), 0
	for !r.Overflown() {
		for range random.IntN(40) {
			r.Offer(next)
			if len(want) < buffer {
				want = append(want, next)
			}
			next++
		}
		for range min(random.IntN(30), len(want)) {
			got, _, ok := r.Take()
			if !ok || got != want[0] {
				t.Fatalf("took %d, %v, want %d", got, ok, want[0])
			}
			want = want[1:]
		}
		if len(r.slots) > 64 && len(r.slots) > 2*max(largest, len(want)+40) {
			t.Fatalf("the ring has %d slots for %d values", len(r.slots), len(want))
		}
		largest = max(largest, len(want)+40)
	}
	for _, seq := range want {
		if got, _, ok := r.Take(); !ok || got != seq {
			t.Fatalf("took %d, %v, want %d", got, ok, seq)
		}
	}
	if len(r.slots) != buffer {
		t.Errorf("the ring has %d slots, want %d", len(r.slots), buffer)
	}
}

// TestRingTellsWhatIsMissing proves that values are dropped from the first one that does not
// fit until the reader has taken the number of dropped values. A closed ring is read to its
// end.
func TestRingTellsWhatIsMissing(t *testing.T) {
	r := New[string](2)
	want := func(x string, missed uint64, ok bool) {
		t.Helper()
		if gotX, gotMissed, gotOK := r.Take(); gotX != x || gotMissed != missed || gotOK != ok {
			t.Errorf("took %q, %d, %v; want %q, %d, %v", gotX, gotMissed, gotOK, x, missed, ok)
		}
	}
	for _, x := range []string{"a", "b", "c"} {
		r.Offer(x)
	}
	want("a", 0, true)
	r.Offer("d") // there is room, but c is missing before d
	want("b", 0, true)
	want("", 2, true)
	want("", 0, false)
	r.Offer("e")
	r.Close()
	r.Offer("f")
	if closed, ended := r.Closed(); !closed || ended {
		t.Errorf("closed %v, ended %v while e is in it", closed, ended)
	}
	want("e", 0, true)
	want("", 0, false)
	if _, ended := r.Closed(); !ended || !r.Empty() {
		t.Error("the ring has not ended")
	}
}
