package engine

import (
	"iter"
	"sync"
	"sync/atomic"
)

// runQueue is the queue of creatures that have something to do. A creature is
// in it at most once: its scheduled flag sees to that.
//
// Workers take from the front and put back at the end, so every runnable
// creature gets its turn. A worker additionally keeps the creature that it
// woke last to itself (worker.next), which is the one whose message is still
// in the cache.
type runQueue struct {
	mu     sync.Mutex
	cond   sync.Cond
	ring   []*creature // a power of two long
	head   int
	n      int
	parked int
	closed bool
}

func newRunQueue() *runQueue {
	q := &runQueue{ring: make([]*creature, 64)}
	q.cond.L = &q.mu
	return q
}

// push appends creatures and wakes as many workers as it can use.
func (q *runQueue) push(cs ...*creature) {
	if len(cs) == 0 {
		return
	}
	q.mu.Lock()
	for _, c := range cs {
		if q.n == len(q.ring) {
			ring := make([]*creature, 2*len(q.ring))
			for i := range q.n {
				ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
			}
			q.ring, q.head = ring, 0
		}
		q.ring[(q.head+q.n)&(len(q.ring)-1)] = c
		q.n++
	}
	wake := min(q.parked, len(cs))
	q.mu.Unlock()
	for range wake {
		q.cond.Signal()
	}
}

// pop takes the first creature, waiting for one. It answers nil once the queue
// is closed.
func (q *runQueue) pop() *creature {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n == 0 && !q.closed {
		q.parked++
		q.cond.Wait()
		q.parked--
	}
	if q.closed {
		return nil
	}
	return q.take()
}

// tryPop takes the first creature if there is one.
func (q *runQueue) tryPop() *creature {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 || q.closed {
		return nil
	}
	return q.take()
}

func (q *runQueue) take() *creature {
	c := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return c
}

// rest ranges over what was left when the queue was closed.
func (q *runQueue) rest() iter.Seq[*creature] {
	return func(yield func(*creature) bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		for q.n > 0 {
			if !yield(q.take()) {
				return
			}
		}
	}
}

// close lets every pop return nil, now and later.
func (q *runQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cond.Broadcast()
}

// waker collects the creatures that a critical section made runnable, so that
// they are put on the run queue after it.
type waker struct{ list []*creature }

func (w *waker) add(c *creature) { w.list = append(w.list, c) }

// flush puts what was collected on the run queue.
func (w *waker) flush(q *runQueue) {
	q.push(w.list...)
	clear(w.list)
	w.list = w.list[:0]
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
