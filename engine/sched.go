package engine

import (
	"iter"
	"sync"
	"sync/atomic"
)

// runQueue is the queue of creatures that have something to do. A creature is
// in it at most once: its scheduled flag sees to that.
//
// Each worker has a lane of the queue, in which it puts what it wakes, so what
// belongs together stays in one cache. What others wake is in a lane that all share.
// A worker that has nothing to do steals. Within a lane creatures are taken from the
// front and put back at the end, and now and then a worker looks at the other lanes
// first, so every runnable creature gets its turn.
//
// Its locks are the innermost ones: they may be taken in a critical section.
type runQueue struct {
	shared lane
	lanes  []*lane // of the workers; does not change once they run

	// parked counts workers that wait, but for those that have been signalled. It
	// changes under mu. Who puts something in a lane reads it afterwards, and who
	// parks looks at the lanes after it is counted: one of the two sees the other.
	parked atomic.Int64
	mu     sync.Mutex
	cond   sync.Cond
	closed atomic.Bool
}

func newRunQueue() *runQueue {
	q := &runQueue{}
	q.cond.L = &q.mu
	return q
}

// addLane returns the lane of another worker.
func (q *runQueue) addLane() *lane {
	l := &lane{seen: map[*lane]uint64{}}
	q.lanes = append(q.lanes, l)
	return l
}

// push puts creatures at the end of a lane, or of the shared one, and wakes as many
// workers as it can use.
func (q *runQueue) push(l *lane, cs ...*creature) {
	if len(cs) == 0 {
		return
	}
	if l == nil {
		l = &q.shared
	}
	l.push(cs)
	if q.parked.Load() > 0 {
		q.unpark(int64(len(cs)))
	}
}

func (q *runQueue) unpark(most int64) {
	q.mu.Lock()
	n := min(q.parked.Load(), most)
	q.parked.Add(-n)
	q.mu.Unlock()
	for range n {
		q.cond.Signal()
	}
}

// pop takes the next creature for the worker of a lane, waiting for one. It answers
// nil once the queue is closed.
func (q *runQueue) pop(l *lane) *creature {
	for {
		if c := q.next(l); c != nil {
			return c
		}
		if !q.park() {
			return nil
		}
	}
}

// park waits until it is worth looking again. It answers false once the queue is
// closed.
func (q *runQueue) park() bool {
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
func (q *runQueue) some() bool {
	for l := range q.all() {
		if l.waiting.Load() > 0 {
			return true
		}
	}
	return false
}

// all ranges over the lanes, the shared one first.
func (q *runQueue) all() iter.Seq[*lane] {
	return func(yield func(*lane) bool) {
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

// next takes the next creature for the worker of a lane, if there is one.
func (q *runQueue) next(l *lane) *creature {
	if q.closed.Load() {
		return nil
	}
	if l.chosen.Load()%lookAround == 0 {
		if c := q.forgotten(l); c != nil {
			return c
		}
	}
	if c := l.pop(); c != nil {
		return c
	}
	for other := range q.all() {
		if other != l {
			if c := l.steal(other); c != nil {
				return c
			}
		}
	}
	return nil
}

// forgotten takes a creature that nobody may come to for long: a shared one, or one
// of a worker that has chosen none since this was last asked, as if in a long turn.
func (q *runQueue) forgotten(l *lane) *creature {
	if c := l.steal(&q.shared); c != nil {
		return c
	}
	for _, other := range q.lanes {
		chosen := other.chosen.Load()
		stuck := other != l && l.seen[other] == chosen
		l.seen[other] = chosen
		if stuck {
			if c := l.steal(other); c != nil {
				return c
			}
		}
	}
	return nil
}

// tryPop takes the first creature that no worker has put there.
func (q *runQueue) tryPop() *creature { return q.shared.pop() }

// rest ranges over what was left when the queue was closed.
func (q *runQueue) rest() iter.Seq[*creature] {
	return func(yield func(*creature) bool) {
		for l := range q.all() {
			for c := l.pop(); c != nil; c = l.pop() {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// close lets every pop return nil, now and later.
func (q *runQueue) close() {
	q.mu.Lock()
	q.closed.Store(true)
	q.mu.Unlock()
	q.cond.Broadcast()
}
