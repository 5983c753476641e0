package engine_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// handClock is a clock that a test moves. Timer blocks, so that only WaitIdle calls timers
// after the engine's own goroutine has begun to wait for one.
type handClock struct {
	mu      sync.Mutex
	now     time.Time
	read    func() // called once, after the next reading
	waiting chan struct{}
	proceed chan struct{}
	once    sync.Once
}

func newHandClock() *handClock {
	return &handClock{now: time.Unix(1_000_000, 0), waiting: make(chan struct{}), proceed: make(chan struct{})}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	now, read := c.now, c.read
	c.read = nil
	c.mu.Unlock()
	if read != nil {
		read()
	}
	return now
}

func (c *handClock) Timer(time.Duration) (<-chan time.Time, func()) {
	c.once.Do(func() { close(c.waiting) })
	<-c.proceed
	return nil, func() {}
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestWaitIdleFindsTimersThatBecomeDue lets a turn set a timer after WaitIdle has looked for
// due timers. WaitIdle does not return while that timer is due.
func TestWaitIdleFindsTimersThatBecomeDue(t *testing.T) {
	clock, h := newHandClock(), newFakeHost()
	running, finish := make(chan struct{}), make(chan struct{})
	h.on("late", func(tn abi.Turn, kind abi.Kind) error {
		switch kind {
		case abi.KindStart:
			return codeErr(tn, tn.TimerSet([]byte("far"), time.Hour, 0, nil))
		case abi.KindMessage:
			close(running)
			<-finish
			return codeErr(tn, tn.TimerSet([]byte("soon"), time.Millisecond, 0, nil))
		}
		return note(tn, "rang")
	})
	s := newSaved(t, engine.Options{Host: h, Workers: 1, Clock: clock})
	t.Cleanup(func() { close(clock.proceed) })
	c := s.add("c", "late")
	s.wait()
	<-clock.waiting
	if _, err := s.SendTo(t.Context(), c, engine.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	<-running
	clock.mu.Lock()
	clock.read = func() {
		close(finish)
		for s.Busy() {
			runtime.Gosched()
		}
		clock.advance(time.Second)
	}
	clock.mu.Unlock()
	s.wait()
	if got := s.state(c, "heard"); got != "rang\n" {
		t.Errorf("c heard %q, want the timer", got)
	}
}

// TestWaitIdleOfAPausedEngine proves that WaitIdle leaves due timers alone while the engine is
// paused.
func TestWaitIdleOfAPausedEngine(t *testing.T) {
	clock, h := newHandClock(), newFakeHost()
	close(clock.proceed)
	h.on("ticking", func(tn abi.Turn, kind abi.Kind) error {
		if kind == abi.KindStart {
			return codeErr(tn, tn.TimerSet([]byte("later"), time.Hour, 0, nil))
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h, Workers: 1, Clock: clock})
	c := s.add("c", "ticking")
	s.wait()
	s.shut()
	clock.advance(2 * time.Hour)
	s.o.Paused = true
	s.open()
	s.restore()
	s.wait()
	if wait, ok := s.NextTimer(); ok { // the timer would never fire
		t.Errorf("the next timer is due in %v", wait)
	}
	if rows, err := s.Timers(c); err != nil || len(rows) != 1 {
		t.Errorf("c has the timers %v, %v; want one", rows, err)
	}
}
