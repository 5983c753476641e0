// Package idle counts what keeps an engine from being idle: creatures that are runnable,
// running or waiting to try again.
//
// A counter is idle whenever its count is zero, and each such moment is one: a count that
// rises again at once has been zero. What wakes something else counts it before it counts
// itself off, so the count is never zero on the way.
package idle

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Counter counts what is to be done. Its methods may be called from any goroutine.
type Counter struct {
	busy    atomic.Int64
	mu      sync.Mutex
	waiters []chan struct{}
}

// Add changes the count. If that makes it zero, those that wait are told.
func (i *Counter) Add(n int64) {
	if i.busy.Add(n) != 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, w := range i.waiters {
		close(w)
	}
	i.waiters = nil
}

// Wait returns a channel that is closed at the next moment of idleness, or nil
// if this is one.
func (i *Counter) Wait() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	// The waiter is registered before the count is read: a count that falls to
	// zero afterwards finds it.
	w := make(chan struct{})
	i.waiters = append(i.waiters, w)
	if i.Busy() {
		return w
	}
	i.waiters = slices.DeleteFunc(i.waiters, func(other chan struct{}) bool { return other == w })
	return nil
}

// Busy reports whether something is to be done.
func (i *Counter) Busy() bool { return i.busy.Load() != 0 }
