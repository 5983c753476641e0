package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// TestTimersOfTheFarFuture proves that a timer whose delay or period goes beyond the last
// possible time is not due now.
func TestTimersOfTheFarFuture(t *testing.T) {
	clock, h := newHandClock(), newFakeHost()
	close(clock.proceed)
	h.on("patient", func(tn abi.Turn, kind abi.Kind) error {
		switch kind {
		case abi.KindStart:
			for name, times := range map[string][2]time.Duration{"far": {math.MaxInt64, 0}, "rare": {time.Millisecond, math.MaxInt64}} {
				if code := tn.TimerSet([]byte(name), times[0], times[1], nil); code != abi.OK {
					return codeErr(tn, code)
				}
			}
			return nil
		case abi.KindTimer:
			return note(tn, "rang")
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h, Workers: 1, Clock: clock})
	c := s.add("c", "patient")
	s.wait()
	for range 3 {
		clock.advance(time.Second)
		s.wait()
	}
	if got := s.state(c, "heard"); got != "rang\n" {
		t.Errorf("c heard %q, want only the timer rare, once", got)
	}
	if rows, err := s.Timers(c); err != nil || len(rows) != 2 {
		t.Errorf("c has the timers %v, %v; want two", rows, err)
	}
}
