package sqlitestore

import (
	"context"
	"sync"
	"time"
)

// exclusion is a lock that a caller can wait for until its context ends.
type exclusion chan struct{}

func newExclusion() exclusion { return make(exclusion, 1) }

// Lock takes the lock, however long that takes.
func (x exclusion) Lock() { x <- struct{}{} }

// Unlock releases the lock.
func (x exclusion) Unlock() { <-x }

// lockWithin takes the lock, unless ctx ends first.
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

// pacing bounds how far the background may be behind before changes wait for it.
type pacing struct {
	// remains is how many files ended sessions may leave. Each takes some two descriptors,
	// and 200 KB of memory while it is open.
	remains int
	// buried is how many stores of ended sessions may wait to be closed.
	buried int
	// patience bounds the wait of one change. A disk that makes no progress must not keep
	// graphs from changing.
	patience time.Duration
}

var usualPacing = pacing{remains: 256, buried: 64, patience: 2 * time.Second}

// pacePoll is the interval at which a waiting change checks whether it may continue.
const pacePoll = 5 * time.Millisecond

// Behind reports whether ended sessions have left so much to do that changes should wait. What
// cannot be done at present does not count: waiting would be of no use.
func (d *Directory) Behind() bool {
	return d.remains.Load()-d.held.Load() > int64(d.options.pacing.remains) || d.keeper.waiting() > d.options.pacing.buried
}

// Pace waits until the background has caught up, until it cannot do more at present, or
// until the patience for one change has ended; see [journal.Pacer]. Otherwise, cuts that
// follow each other faster than histories are copied would use up files and memory.
func (d *Directory) Pace(ctx context.Context) error {
	if !d.Behind() {
		return nil
	}
	d.hydrator.nudge()
	tick, enough := time.NewTicker(pacePoll), time.NewTimer(d.options.pacing.patience)
	defer tick.Stop()
	defer enough.Stop()
	for d.Behind() && !(d.hydrator.idle() && d.keeper.waiting() == 0) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-enough.C:
			return nil
		case <-tick.C:
		}
	}
	return nil
}
