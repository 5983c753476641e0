package sqlitestore

import (
	"context"
	"sync"
)

// exclusion is a lock that a caller can wait for until its context ends.
type exclusion chan struct{}

func newExclusion() exclusion { return make(exclusion, 1) }

// Lock takes the lock, however long that takes.
func (x exclusion) Lock() { x <- struct{}{} }

// Unlock gives it back.
func (x exclusion) Unlock() { <-x }

// lockWithin takes the lock, unless ctx ends before.
func (x exclusion) lockWithin(ctx context.Context) error {
	select {
	case x <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// crossing gives cuts priority: background work checks between its steps whether a cut is
// under way, and waits until it has ended. So a cut waits for one step at most. The zero
// value is ready; its methods may be called by any goroutine.
//
// A goroutine that waits must not hold anything that a cut needs.
type crossing struct {
	mu   sync.Mutex
	free chan struct{} // closed when the cut is over; nil while there is none
}

// enter begins a cut, which leave ends. There is one at a time.
func (x *crossing) enter() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.free = make(chan struct{})
}

func (x *crossing) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(x.free)
	x.free = nil
}

// giveWay waits until no cut is under way.
func (x *crossing) giveWay() {
	x.mu.Lock()
	free := x.free
	x.mu.Unlock()
	if free != nil {
		<-free
	}
}
