package conformance

import (
	"sync"
	"time"
)

// clock is a clock that a case moves. Its timers never fire by themselves: WaitIdle
// calls what is due. Its methods may be called from any goroutine.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Timer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
