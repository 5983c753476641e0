package terrarium

import (
	"sync/atomic"
	"time"
)

// testStart is the time at which every test begins, so that its messages have the same
// times whenever it runs.
var testStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// testClock is a clock that a test moves. Its timers never fire: [engine.Engine.WaitIdle]
// calls what has come due.
type testClock struct{ now atomic.Int64 }

func newTestClock() *testClock {
	c := &testClock{}
	c.set(testStart)
	return c
}

func (c *testClock) Now() time.Time { return time.Unix(0, c.now.Load()).UTC() }

func (c *testClock) Timer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// set moves the clock to a time, but never backwards.
func (c *testClock) set(at time.Time) { c.now.Store(max(c.now.Load(), at.UnixNano())) }
