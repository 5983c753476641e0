package sqlitestore

import (
	"context"
	"sync"
)

// exclusion is a lock for which one need not wait for longer than a context lasts.
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

// crossing lets cuts go first: what works in the background asks between two of
// its steps whether one is under way, and waits until it is over. So the pause of a
// cut has the processor and the disk to itself but for one step. The zero value is
// ready; its methods may be called by any goroutine.
//
// Who waits must not hold anything that a cut needs.
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
