package engine

import (
	"sync"
	"sync/atomic"
)

// waker collects the creatures that a critical section made runnable, so that
// they are put on the run queue after it.
type waker struct {
	list []*creature
	// later is set in a worker's waker. What it wakes and gives up is not counted
	// at once but in owed, for most turns wake as many as they end. As long as the
	// worker has a creature in hands, which counts, nobody can tell.
	later bool
	owed  int64
	lane  *lane // the worker's; nil: none
}

// add notes that a creature has become busy.
func (w *waker) add(c *creature) {
	w.list = append(w.list, c)
	if w.later {
		w.owed++
		return
	}
	c.engine().idle.add(1)
}

// last takes out what was added last.
func (w *waker) last() *creature {
	n := len(w.list)
	if n == 0 {
		return nil
	}
	c := w.list[n-1]
	w.list[n-1] = nil
	w.list = w.list[:n-1]
	return c
}

// flush puts what was collected on the run queue. It is counted before, for others
// may be done with it at once.
func (w *waker) flush(e *Engine) {
	if w.owed > 0 {
		w.settle(&e.idle)
	}
	e.queue.push(w.lane, w.list...)
	clear(w.list)
	w.list = w.list[:0]
}

// settle counts what is owed.
func (w *waker) settle(i *idleness) {
	if w.owed != 0 {
		i.add(w.owed)
		w.owed = 0
	}
}

// idleness counts what keeps an engine from being idle: creatures that are
// runnable, running or waiting to try again.
type idleness struct {
	busy    atomic.Int64
	mu      sync.Mutex
	waiters []chan struct{}
}

func (i *idleness) add(n int64) {
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

// wait returns a channel that is closed at the next moment of idleness, or nil
// if this is one.
func (i *idleness) wait() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	// The waiter is registered before the count is read: a count that falls to
	// zero afterwards finds it.
	w := make(chan struct{})
	i.waiters = append(i.waiters, w)
	if i.busy.Load() != 0 {
		return w
	}
	i.waiters = without(i.waiters, w)
	return nil
}
