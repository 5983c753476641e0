// Package runqueue has the queue of what workers are to do next. An element is put in
// by one caller at a time and not again before it is out: the queue does not look for
// duplicates.
//
// Each worker has a lane of the queue, in which it puts what it wakes, so what
// belongs together stays in one cache. What others wake is in a lane that all share.
// A worker that has nothing to do steals. Within a lane elements are taken from the
// front and put back at the end, and now and then a worker looks at the other lanes
// first, so every element gets its turn.
//
// A queue is open until Close, and closed from then on; nothing opens it again. A
// closed one hands out nothing but by Rest. Its locks are innermost: no method calls
// anything outside, so all but Pop may be called in any critical section.
package runqueue

import (
	"iter"
	"sync"
	"sync/atomic"
)

// Queue is a queue with lanes. Its methods may be called from any goroutine, but for
// AddLane.
type Queue[T any] struct {
	shared Lane[T]
	lanes  []*Lane[T] // of the workers; does not change once they run

	// parked counts workers that wait, but for those that have been signalled. mu
	// guards its changes. A caller that puts something in a lane reads it afterwards, and a
	// worker that parks looks at the lanes after it is counted: one of the two sees the other.
	parked atomic.Int64
	mu     sync.Mutex
	cond   sync.Cond
	closed atomic.Bool
}

// New returns a queue without lanes of workers.
func New[T any]() *Queue[T] {
	q := &Queue[T]{}
	q.cond.L = &q.mu
	return q
}

// AddLane returns the lane of another worker. All lanes are added before anything is
// put in or taken out.
func (q *Queue[T]) AddLane() *Lane[T] {
	l := &Lane[T]{seen: map[*Lane[T]]uint64{}}
	q.lanes = append(q.lanes, l)
	return l
}

// Push puts elements at the end of a lane, or of the shared one if l is nil, and wakes as
// many workers as it can use.
func (q *Queue[T]) Push(l *Lane[T], xs ...*T) {
	if len(xs) == 0 {
		return
	}
	if l == nil {
		l = &q.shared
	}
	l.push(xs)
	if q.parked.Load() > 0 {
		q.unpark(int64(len(xs)))
	}
}

func (q *Queue[T]) unpark(most int64) {
	q.mu.Lock()
	n := min(q.parked.Load(), most)
	q.parked.Add(-n)
	q.mu.Unlock()
	for range n {
		q.cond.Signal()
	}
}

// Pop takes the next element for the worker of a lane, waiting for one. It answers
// nil once the queue is closed.
func (q *Queue[T]) Pop(l *Lane[T]) *T {
	for {
		if x := q.Next(l); x != nil {
			return x
		}
		if !q.park() {
			return nil
		}
	}
}

// park waits until it is worth looking again. It answers false once the queue is
// closed.
func (q *Queue[T]) park() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parked.Add(1)
	if q.closed.Load() || q.some() {
		q.parked.Add(-1)
	} else {
		q.cond.Wait()
	}
	return !q.closed.Load()
}

// some reports whether there is something in any lane.
func (q *Queue[T]) some() bool {
	for l := range q.all() {
		if l.waiting.Load() > 0 {
			return true
		}
	}
	return false
}

// all ranges over the lanes, the shared one first.
func (q *Queue[T]) all() iter.Seq[*Lane[T]] {
	return func(yield func(*Lane[T]) bool) {
		if !yield(&q.shared) {
			return
		}
		for _, l := range q.lanes {
			if !yield(l) {
				return
			}
		}
	}
}

// lookAround is after how many choices a worker looks at the other lanes before its
// own.
const lookAround = 64

// Next takes the next element for the worker of a lane, if there is one, and waits for
// none.
func (q *Queue[T]) Next(l *Lane[T]) *T {
	if q.closed.Load() {
		return nil
	}
	if l.chosen.Load()%lookAround == 0 {
		if x := q.forgotten(l); x != nil {
			return x
		}
	}
	if x := l.pop(); x != nil {
		return x
	}
	for other := range q.all() {
		if other != l {
			if x := l.steal(other); x != nil {
				return x
			}
		}
	}
	return nil
}

// forgotten takes an element that no worker may come to for long: a shared one, or one
// of a worker that has chosen none since this was last asked, as if in a long turn.
func (q *Queue[T]) forgotten(l *Lane[T]) *T {
	if x := l.steal(&q.shared); x != nil {
		return x
	}
	for _, other := range q.lanes {
		chosen := other.chosen.Load()
		stuck := other != l && l.seen[other] == chosen
		l.seen[other] = chosen
		if stuck {
			if x := l.steal(other); x != nil {
				return x
			}
		}
	}
	return nil
}

// PopShared takes the first element that no worker has put there, if there is one.
func (q *Queue[T]) PopShared() *T { return q.shared.pop() }

// Rest ranges over what was left when the queue was closed.
func (q *Queue[T]) Rest() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for l := range q.all() {
			for x := l.pop(); x != nil; x = l.pop() {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// Close lets every Pop return nil, now and later.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed.Store(true)
	q.mu.Unlock()
	q.cond.Broadcast()
}
