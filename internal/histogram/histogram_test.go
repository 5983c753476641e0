package histogram

import (
	"testing"
	"time"
)

// A duration is in the first bucket whose bound it does not exceed.
func TestBuckets(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, 100 * time.Microsecond, 101 * time.Microsecond, 30 * time.Second, time.Minute} {
		h.Add(d)
	}
	want := [len(Bounds) + 1]uint64{0: 2, 1: 1, len(Bounds) - 1: 1, len(Bounds): 1}
	if h.Counts != want || h.Total() != 5 || h.Sum != 90*time.Second+201*time.Microsecond {
		t.Errorf("the histogram is %+v", h)
	}
}

// Unknown durations are not counted.
func TestTurns(t *testing.T) {
	var turns Turns
	turns.Add(0, time.Second)
	turns.Add(time.Second, 0)
	turns.Add(time.Second, time.Second)
	if turns.Took.Total() != 2 || turns.Latency.Total() != 1 || turns.Latency.Sum != 2*time.Second {
		t.Errorf("the histograms are %+v", turns)
	}
}
