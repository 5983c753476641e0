package sim

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that moves only when advanced. It may be read from any
// goroutine. Its timers never fire.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock with an arbitrary non-zero time.
func NewClock() *Clock {
	c := &Clock{}
	c.now.Store(1_700_000_000_000_000_000)
	return c
}

// Now implements engine.Clock.
func (c *Clock) Now() time.Time { return time.Unix(0, c.now.Load()) }

// Timer implements engine.Clock. The channel never delivers anything.
func (c *Clock) Timer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// Advance moves the clock; d may be negative.
func (c *Clock) Advance(d time.Duration) { c.now.Add(int64(d)) }
