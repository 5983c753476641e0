// Package runqueue implements the queue of elements that workers run next. Only one
// caller at a time may add an element, and not again before it was taken: the queue
// does not check for duplicates.
//
// Each worker has its own lane for the elements it wakes, so that related
// elements stay in one cache. Elements woken by other callers go to a shared
// lane. An idle worker steals. Within a lane elements are taken from the front
// and put back at the end, and from time to time a worker checks the other
// lanes first, so that every element gets its turn.
//
// A worker that has nothing to do is parked. Another goroutine may borrow the place of a
// parked worker to run an element itself. So there are never more running elements than
// workers.
//
// A queue is open until Close and cannot be reopened. A closed queue returns
// elements only through Rest. Its locks are innermost: no method calls code
// outside the package, so all except Pop may be called in any critical
// section.
package runqueue

import (
	"iter"
	"sync"
	"sync/atomic"
)

// Queue is a queue with lanes. Its methods except AddLane may be called from
// any goroutine.
type Queue[T any] struct {
	shared Lane[T]
	lanes  []*Lane[T] // of the workers; fixed once they run

	// places counts the parked workers in its lower half, and the lent places
	// in its upper half; aClosed is set once the queue is closed. A parked
	// worker that has been signalled, or whose place is lent, no longer counts
	// as parked. A caller that adds an element to a lane reads places
	// afterwards, and a worker that parks, or a borrower that returns a place,
	// checks the lanes after it is counted, so that at least one of the two
	// sees the other.
	places atomic.Int64
	mu     sync.Mutex
	cond   sync.Cond
	closed atomic.Bool
}

const (
	onePlace = 1 << 32
	aClosed  = 1 << 62
)

func parked(places int64) int64 { return places & (onePlace - 1) }

func lent(places int64) int64 { return places &^ aClosed / onePlace }

// New returns a queue without lanes for workers.
func New[T any]() *Queue[T] {
	q := &Queue[T]{}
	q.cond.L = &q.mu
	return q
}

// AddLane adds and returns the lane of a worker. All lanes must be added
// before the queue is used.
func (q *Queue[T]) AddLane() *Lane[T] {
	l := &Lane[T]{seen: map[*Lane[T]]uint64{}}
	q.lanes = append(q.lanes, l)
	return l
}

// Push adds elements at the end of a lane, or of the shared lane if l is nil,
// and wakes as many workers as are useful.
func (q *Queue[T]) Push(l *Lane[T], xs ...*T) {
	if len(xs) == 0 {
		return
	}
	if l == nil {
		l = &q.shared
	}
	q.put(l, xs)
}

// put adds elements to a lane, and wakes workers for them.
func (q *Queue[T]) put(l *Lane[T], xs []*T) {
	l.push(xs)
	if parked(q.places.Load()) > 0 {
		q.unpark(int64(len(xs)))
	}
}

// mostStolen is how many elements change lanes at a time.
const mostStolen = 32

// steal moves the first half of a lane into another one, except for the first element,
// which it returns. While they are moved, the others are in no lane: a worker that parks
// then does not see them, and has to be woken for them, because the worker that they were
// moved to may be in a long turn.
func (q *Queue[T]) steal(to, from *Lane[T]) *T {
	if from.waiting.Load() == 0 {
		return nil
	}
	var buffer [mostStolen]*T
	got := from.half(buffer[:0])
	if len(got) == 0 {
		return nil
	}
	if len(got) > 1 {
		q.put(to, got[1:])
	}
	return got[0]
}

func (q *Queue[T]) unpark(most int64) {
	q.mu.Lock() // a worker that is counted waits
	n := q.uncount(most)
	q.mu.Unlock()
	for range n {
		q.cond.Signal()
	}
}

// uncount removes up to most parked workers from the count, and returns how many.
func (q *Queue[T]) uncount(most int64) int64 {
	for {
		old := q.places.Load()
		n := min(parked(old), most)
		if n == 0 || q.places.CompareAndSwap(old, old-n) {
			return n
		}
	}
}

// Borrow takes the place of a parked worker, without waiting. It returns false
// if there is none, or the queue is closed. The caller must call Return, and the
// worker runs nothing until then. Pop of a closed queue waits for Return.
func (q *Queue[T]) Borrow() bool {
	for {
		old := q.places.Load()
		if parked(old) == 0 || old&aClosed != 0 {
			return false
		}
		if q.places.CompareAndSwap(old, old-1+onePlace) {
			return true
		}
	}
}

// Return gives a borrowed place back.
func (q *Queue[T]) Return() {
	if q.places.Add(1-onePlace)&aClosed != 0 {
		q.mu.Lock() // a worker that has seen the place lent waits
		defer q.mu.Unlock()
		q.cond.Broadcast()
		return
	}
	if q.some() {
		q.unpark(1)
	}
}

// Pop waits for the next element for the worker of a lane and takes it. It
// returns nil once the queue is closed.
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

// park waits until there may be an element. It returns false once the queue is
// closed and no place is lent.
func (q *Queue[T]) park() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed.Load() {
		q.places.Add(1)
		// If the place has been lent meanwhile, Return looks at the lanes.
		if !q.some() || q.uncount(1) == 0 {
			q.cond.Wait()
		}
	}
	for q.closed.Load() && lent(q.places.Load()) > 0 {
		q.cond.Wait()
	}
	return !q.closed.Load()
}

// some reports whether any lane has an element.
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

// lookAround is after how many choices a worker checks the other lanes before
// its own.
const lookAround = 64

// Next takes the next element for the worker of a lane, or returns nil without
// waiting.
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
			if x := q.steal(l, other); x != nil {
				return x
			}
		}
	}
	return nil
}

// forgotten takes an element that might otherwise wait for long: a shared one,
// or one of a worker that has made no choice since the last check, for example
// because of a long turn.
func (q *Queue[T]) forgotten(l *Lane[T]) *T {
	if x := q.steal(l, &q.shared); x != nil {
		return x
	}
	for _, other := range q.lanes {
		chosen := other.chosen.Load()
		stuck := other != l && l.seen[other] == chosen
		l.seen[other] = chosen
		if stuck {
			if x := q.steal(l, other); x != nil {
				return x
			}
		}
	}
	return nil
}

// PopShared takes the first element of the shared lane, or returns nil.
func (q *Queue[T]) PopShared() *T { return q.shared.pop() }

// Rest iterates over the elements left when the queue was closed.
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

// Close makes every current and future Pop return nil.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed.Store(true)
	q.places.Or(aClosed)
	q.mu.Unlock()
	q.cond.Broadcast()
}
