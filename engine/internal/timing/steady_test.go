package timing

import (
	"sync"
	"sync/atomic"
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

// TestSteadyReadsOnceAMillisecond counts readings of a clock that tells how much time has passed
// since one.
func TestSteadyReadsOnceAMillisecond(t *testing.T) {
	clock := &still{now: time.Now()}
	s := NewSteady(clock, false)
	s.since = func(at time.Time) time.Duration { return clock.now.Sub(at) }
	begin := s.Nanoseconds()
	for i := range int64(10) {
		clock.now = clock.now.Add(300 * time.Microsecond)
		if got := s.Nanoseconds() - begin; got != (i+1)*300_000 {
			t.Errorf("after %d times 300 µs, %d ns have passed", i+1, got)
		}
	}
	if got := s.readings.Load(); got != 3 { // at 0, 1.2 and 2.4 ms
		t.Errorf("the clock was read %d times in 3 ms, want 3", got)
	}
	s.Begin(begin + int64(time.Hour))
	clock.now = clock.now.Add(time.Microsecond)
	if got := s.Nanoseconds() - begin; got <= int64(time.Hour) {
		t.Errorf("after Begin, the time is %d", got)
	}
}

// TestSteadyNeverGoesBack compares each time with those that other goroutines had before.
func TestSteadyNeverGoesBack(t *testing.T) {
	s := NewSteady(Real{}, false)
	var last atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 20_000 {
				before := last.Load()
				now := s.Nanoseconds()
				if now < before {
					t.Errorf("the time is %d after it was %d", now, before)
					return
				}
				for at := last.Load(); at < now && !last.CompareAndSwap(at, now); at = last.Load() {
				}
				if n%5000 == i {
					s.Begin(now + int64(time.Second))
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkSteady(b *testing.B) {
	s := NewSteady(Real{}, false)
	for b.Loop() {
		s.Nanoseconds()
	}
}
