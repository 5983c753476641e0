package timing

import (
	"slices"
	"testing"
	"time"
)

// still is a clock with a settable time.
type still struct{ now time.Time }

func (c *still) Now() time.Time { return c.now }

func (c *still) Timer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// TestTimersAreDueInOrder proves that a timer is called once, not before it is due and not
// after it was stopped. Stopping can be repeated.
func TestTimersAreDueInOrder(t *testing.T) {
	clock := &still{now: time.Unix(100, 0)}
	timers := New(clock)
	var called []int
	set := map[int]*Timer{}
	for _, n := range []int{5, 2, 9, 1, 7} {
		set[n] = timers.After(time.Duration(n)*time.Second, func() { called = append(called, n) })
	}
	timers.Stop(set[2])
	timers.Stop(set[2])
	timers.Stop(nil)
	for _, step := range []struct {
		at     int64
		called []int
		wait   time.Duration
	}{
		{100, nil, time.Second},
		{101, []int{1}, 4 * time.Second},
		{106, []int{1, 5}, time.Second},
		{200, []int{1, 5, 7, 9}, 0},
	} {
		clock.now = time.Unix(step.at, 0)
		due, wait := timers.Due()
		for _, x := range due {
			x.Call()
			timers.Stop(x) // changes nothing
		}
		if !slices.Equal(called, step.called) || wait != step.wait {
			t.Errorf("at %d: %v were called, and the next is due in %v; want %v, %v", step.at, called, wait, step.called, step.wait)
		}
	}
}

// TestCallDueAfterClose proves that CallDue calls each due function once, and none after Close.
func TestCallDueAfterClose(t *testing.T) {
	clock := &still{now: time.Unix(100, 0)}
	timers := New(clock)
	called := 0
	timers.After(time.Second, func() { called++ })
	timers.After(3*time.Second, func() { called++ })
	clock.now = time.Unix(101, 0)
	if wait, n := timers.CallDue(); called != 1 || n != 1 || wait != 2*time.Second {
		t.Errorf("called %d, counted %d, %v until the next", called, n, wait)
	}
	clock.now = time.Unix(103, 0)
	timers.Close()
	if wait, n := timers.CallDue(); called != 1 || n != 1 || wait != 0 {
		t.Errorf("after Close: called %d, counted %d, %v until the next", called, n, wait)
	}
}

// TestCloseWaitsForCalls proves that Close waits for a function that CallDue is calling,
// and that the next function, due at the same time, is no longer called.
func TestCloseWaitsForCalls(t *testing.T) {
	timers := New(&still{now: time.Unix(100, 0)})
	running, proceed, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ended, later := false, false
	timers.After(-time.Second, func() {
		close(running)
		<-proceed
		ended = true
	})
	timers.After(0, func() { later = true })
	go timers.CallDue()
	<-running
	go func() {
		timers.Close()
		if !ended {
			t.Error("Close returned while a function was running")
		}
		close(closed)
	}()
	<-timers.done
	close(proceed)
	<-closed
	if later {
		t.Error("a function was called after Close")
	}
}

// TestMeterWaits proves that a meter allows its grace at once, and then its rate. An allowance
// that is not used does not accumulate.
func TestMeterWaits(t *testing.T) {
	var m Meter
	second := int64(time.Second)
	m.Count(10*second, 30, 10) // three seconds' worth
	for _, tt := range []struct {
		now         int64
		grace, want time.Duration
	}{{10, 3 * time.Second, 0}, {10, time.Second, 2 * time.Second}, {12, time.Second, 0}, {13, 0, 0}} {
		if got := m.Wait(tt.now*second, tt.grace); got != tt.want {
			t.Errorf("at %d with %v of grace: wait %v, want %v", tt.now, tt.grace, got, tt.want)
		}
	}
	m.Count(1000*second, 10, 10)
	if got := m.Wait(1000*second, 0); got != time.Second {
		t.Errorf("after a pause: wait %v, want a second", got)
	}
}

// TestNextFindsPausesAmongTimers covers Next and NextPause.
func TestNextFindsPausesAmongTimers(t *testing.T) {
	timers := New(Real{})
	defer timers.Close()
	if _, ok := timers.Next(); ok {
		t.Error("Next returns a timer before any is set")
	}
	far := timers.After(time.Hour, func() {})
	timers.AfterPause(3*time.Hour, func() {})
	pause := timers.AfterPause(2*time.Hour, func() {})
	if at, ok := timers.Next(); !ok || at != far.at {
		t.Errorf("the next timer is at %v, want %v", at, far.at)
	}
	if at, ok := timers.NextPause(); !ok || at != pause.at {
		t.Errorf("the next pause ends at %v, want %v", at, pause.at)
	}
	timers.Stop(pause)
	if at, ok := timers.NextPause(); !ok || at.Sub(pause.at) < 50*time.Minute {
		t.Errorf("after the pause was stopped, the next pause ends at %v", at)
	}
}
