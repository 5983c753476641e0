// Package histogram counts durations by size, for the metrics of Prometheus and OpenTelemetry.
package histogram

import "time"

// Bounds are the upper bounds of the buckets, in seconds. A last bucket has what exceeds them.
var Bounds = [...]float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}

// Histogram counts durations by bucket. The zero value is empty. It is used by one goroutine
// at a time; a copy is independent.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64
	Sum    time.Duration
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	i := 0
	for i < len(Bounds) && d.Seconds() > Bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += d
}

// Total returns the number of durations.
func (h *Histogram) Total() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Turns are the histograms of the turns of an engine.
type Turns struct {
	Took    Histogram // how long they took
	Latency Histogram // from sending a message to the end of the turn that handled it
}

// Add counts a turn that was observed: how long it took, and how long its delivery had waited
// before. Either is 0 if it is not known.
func (t *Turns) Add(took, waited time.Duration) {
	if took <= 0 {
		return
	}
	t.Took.Add(took)
	if waited > 0 {
		t.Latency.Add(waited + took)
	}
}

// The names and the descriptions of the histograms as metrics.
const (
	TookName    = "terrarium_turn_duration_seconds"
	TookHelp    = "how long turns took"
	LatencyName = "terrarium_delivery_latency_seconds"
	LatencyHelp = "how long it took from sending a message to the end of the turn that handled it"
)
