package turnctx

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// still is a clock that the test moves.
type still struct {
	now  atomic.Int64
	ring chan time.Time
}

func (c *still) Nanoseconds() int64 { return c.now.Load() }

func (c *still) Timer(time.Duration) (<-chan time.Time, func()) { return c.ring, func() {} }

type ctxKey struct{}

// TestContextEndsWithWhateverEndsFirst proves that Err and Done agree on when and why the
// context has ended, whether Done was called before or is called afterwards.
func TestContextEndsWithWhateverEndsFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(workers, caller func(), clock *still, c *Context)
		want error
	}{
		"workers":  {func(workers, _ func(), _ *still, _ *Context) { workers() }, context.Canceled},
		"caller":   {func(_, caller func(), _ *still, _ *Context) { caller() }, context.Canceled},
		"deadline": {func(_, _ func(), clock *still, _ *Context) { clock.now.Store(100); close(clock.ring) }, context.DeadlineExceeded},
		"turn":     {func(_, _ func(), _ *still, c *Context) { c.Cancel(); c.Cancel() }, context.Canceled},
	} {
		for _, early := range []bool{false, true} {
			workers, stopWorkers := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, 1))
			caller, stopCaller := context.WithCancel(t.Context())
			clock := &still{ring: make(chan time.Time)}
			c := New(workers, caller, clock, 100)
			if early {
				select {
				case <-c.Done():
					t.Errorf("%s: done before anything has ended", name)
				default:
				}
			}
			for range unclocked {
				if err := c.Err(); err != nil || c.Value(ctxKey{}) != 1 {
					t.Errorf("%s: a new context has the error %v and the value %v", name, err, c.Value(ctxKey{}))
				}
			}
			child, stop := context.WithCancel(c)
			tt.end(stopWorkers, stopCaller, clock, c)
			if err := c.Err(); !errors.Is(err, tt.want) {
				t.Errorf("%s: Err is %v, want %v", name, err, tt.want)
			}
			<-c.Done()
			<-child.Done()
			if err := context.Cause(child); !errors.Is(err, tt.want) {
				t.Errorf("%s: the cause of its child is %v, want %v", name, err, tt.want)
			}
			c.End()
			stop()
			stopWorkers()
			stopCaller()
		}
	}
}

// TestFirstCallsDoNotReadTheClock proves that the calls before the guest begins cost no reading of
// the clock, and that every later call notices the deadline.
func TestFirstCallsDoNotReadTheClock(t *testing.T) {
	clock := &still{}
	clock.now.Store(100)
	c := New(t.Context(), t.Context(), clock, 100)
	defer c.End()
	for range unclocked {
		if err := c.Err(); err != nil {
			t.Errorf("an early call returns %v", err)
		}
	}
	for range 3 {
		if err := c.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a later call returns %v", err)
		}
	}
}

// TestContextEndsWithTheTurn proves that the context ends with the turn, so that nothing waits
// longer.
func TestContextEndsWithTheTurn(t *testing.T) {
	c := New(t.Context(), t.Context(), &still{}, 100)
	done := c.Done()
	c.End()
	<-done
	late := New(t.Context(), t.Context(), &still{}, 100)
	late.End()
	<-late.Done()
	if c.Err() == nil || late.Err() == nil {
		t.Error("the context of a turn that is over has not ended")
	}
}
