package sim

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that moves when it is told to. It may be read from any
// goroutine. Nobody may wait for it.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock that shows some time that is not zero.
func NewClock() *Clock {
	c := &Clock{}
	c.now.Store(1_700_000_000_000_000_000)
	return c
}

// Now implements engine.Clock.
func (c *Clock) Now() time.Time { return time.Unix(0, c.now.Load()) }

// Timer implements engine.Clock. The channel never delivers anything.
func (c *Clock) Timer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// Advance moves the clock; backwards too.
func (c *Clock) Advance(d time.Duration) { c.now.Add(int64(d)) }
