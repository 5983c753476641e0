// Package idle counts the creatures that keep an engine from being idle: those
// that are runnable, running or waiting to retry.
//
// A counter is idle whenever its count is zero, even if the count rises again
// at once. A creature that wakes another one counts it before it removes
// itself, so the count is not zero in between.
package idle

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Counter counts pending work. Its methods may be called from any goroutine.
type Counter struct {
	busy    atomic.Int64
	waiting atomic.Int64 // len(waiters), for callers without the lock
	mu      sync.Mutex
	waiters []chan struct{}
}

// Add changes the count. If that makes it zero, Add wakes all waiters.
func (i *Counter) Add(n int64) {
	if i.busy.Add(n) != 0 || i.waiting.Load() == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, w := range i.waiters {
		close(w)
	}
	i.waiters = nil
	i.waiting.Store(0)
}

// Wait returns a channel that is closed the next time the count is zero, or nil if it is zero
// now.
func (i *Counter) Wait() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	// The waiter is registered before the count is read, so that an Add that
	// makes the count zero afterwards finds it.
	w := make(chan struct{})
	i.waiters = append(i.waiters, w)
	i.waiting.Store(int64(len(i.waiters)))
	if i.Busy() {
		return w
	}
	i.waiters = slices.DeleteFunc(i.waiters, func(other chan struct{}) bool { return other == w })
	i.waiting.Store(int64(len(i.waiters)))
	return nil
}

// Busy reports whether there is pending work.
func (i *Counter) Busy() bool { return i.busy.Load() != 0 }

// Await waits until there is no pending work and no timer that is due, or until the context
// has ended or closing is closed. callTimers calls the due timers, and returns how many have
// been called so far.
func (i *Counter) Await(ctx context.Context, closing <-chan struct{}, callTimers func() uint64) (ended, closed bool) {
	for {
		before := callTimers()
		busy := i.Wait()
		if busy == nil {
			// Work that ended meanwhile may have set a timer that is due already.
			if callTimers() == before {
				return false, false
			}
			continue
		}
		select {
		case <-busy:
		case <-closing:
			return false, true
		case <-ctx.Done():
			return true, false
		}
	}
}
