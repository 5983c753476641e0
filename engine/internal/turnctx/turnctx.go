// Package turnctx provides the context of a turn that a caller runs instead of a worker.
package turnctx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells the time in nanoseconds, and waits.
type Clock interface {
	Nanoseconds() int64
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// Context carries the values of the workers' context. It ends with the workers' context,
// with the caller's context, at the caller's deadline, or when the turn is over. A host
// calls Err again and again during a turn, and hardly ever Done, so only Done costs a
// goroutine. The methods may be called from any goroutine.
type Context struct {
	context.Context // the workers'
	caller          context.Context
	clock           Clock
	until           int64 // the deadline

	calls atomic.Int32 // of Err, up to unclocked
	ended atomic.Pointer[error]
	mu    sync.Mutex
	done  chan struct{} // nil until it is requested
	over  chan struct{} // ends the goroutine that waits to close done
	gone  sync.WaitGroup
}

// unclocked is how many calls of Err do not read the clock, which takes longer than the rest of a
// call. The engine calls Err once before the guest begins, right after New, and so does the host.
const unclocked = 2

// New returns the context of a turn, which ends at a time of the clock. The
// caller must call End.
func New(workers, caller context.Context, clock Clock, until int64) *Context {
	return &Context{Context: workers, caller: caller, clock: clock, until: until}
}

// Deadline returns no deadline, because the clock may not be the machine's.
func (c *Context) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Err returns why the context has ended, or nil. Its first calls do not tell that the deadline has
// passed, unless Done was called.
func (c *Context) Err() error {
	if err := c.ended.Load(); err != nil {
		return *err
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if err := c.caller.Err(); err != nil {
		return err
	}
	if n := c.calls.Load(); n < unclocked {
		c.calls.Store(n + 1) // callers at the same time only make it one call more
	} else if c.clock.Nanoseconds() >= c.until {
		return context.DeadlineExceeded
	}
	return nil
}

// Done returns a channel that is closed when the context ends.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done, c.over = make(chan struct{}), make(chan struct{})
		if c.ended.Load() != nil {
			close(c.done)
		} else {
			c.gone.Go(c.watch)
		}
	}
	return c.done
}

// watch closes done when the context ends.
func (c *Context) watch() {
	defer close(c.done)
	expired, stop := c.clock.Timer(time.Duration(c.until - c.clock.Nanoseconds()))
	defer stop()
	select {
	case <-c.Context.Done():
	case <-c.caller.Done():
	case <-expired:
		c.end(&errExpired)
	case <-c.over:
	}
}

// Why a context has ended, as variables: their addresses cost no allocation for each turn.
var errExpired, errOver error = context.DeadlineExceeded, context.Canceled

func (c *Context) end(why *error) { c.ended.CompareAndSwap(nil, why) }

// Cancel ends the context, so that the turn stops.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end(&errOver); c.over != nil {
		select {
		case <-c.over:
		default:
			close(c.over)
		}
	}
}

// End ends the context of a turn that is over, and waits for its goroutine.
func (c *Context) End() {
	c.Cancel()
	c.gone.Wait()
}
