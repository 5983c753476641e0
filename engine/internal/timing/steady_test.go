package timing

import (
	"testing"
	"time"
)

// TestSteadyIsSet sets a clock whose readings have no monotonic part, while a session has a
// later time. A large step does not count as time that has passed, unless the clock is manual.
func TestSteadyIsSet(t *testing.T) {
	november := func(day, second int) time.Time { return time.Date(2026, 11, day, 12, 0, second, 0, time.UTC) }
	for _, manual := range []bool{false, true} {
		clock := &still{now: time.Unix(0, 0)}
		s := NewSteady(clock, manual)
		s.Begin(november(20, 0).UnixNano())
		clock.now = time.Unix(10, 0)
		if got := s.Now(); !got.Equal(november(20, 10)) {
			t.Errorf("manual %v: after ten seconds, the time is %v", manual, got)
		}
		clock.now = time.Unix(0, 0)
		s.Now()
		clock.now = time.Unix(3600, 0)
		if got, hour := s.Now(), november(20, 3610); got.Equal(hour) != manual || got.After(hour) {
			t.Errorf("manual %v: after a step of an hour, the time is %v", manual, got)
		}
		if manual {
			continue
		}
		clock.now = november(24, 0)
		if got := s.Now(); !got.Equal(november(24, 0)) {
			t.Errorf("after the clock was set right, the time is %v", got)
		}
	}
}

// TestSteadyTrustsMonotonicReadings lets two hours pass, which monotonic readings prove.
func TestSteadyTrustsMonotonicReadings(t *testing.T) {
	start := time.Now()
	clock := &still{now: start}
	s := NewSteady(clock, false)
	ahead := start.Add(1000 * time.Hour)
	s.Begin(ahead.UnixNano())
	clock.now = start.Add(2 * time.Hour)
	if got, want := s.Nanoseconds(), ahead.Add(2*time.Hour).UnixNano(); got != want {
		t.Errorf("after two hours, the time is %d, want %d", got, want)
	}
}
