package runqueue

import (
	"sync"
	"sync/atomic"
)

// Lane is a part of a queue. Every worker may put in and take out, but it is mostly
// one that does.
type Lane[T any] struct {
	chosen  atomic.Uint64       // how often its worker has chosen an element
	waiting atomic.Int64        // ring.n, for workers that look from outside
	seen    map[*Lane[T]]uint64 // what its worker has seen of the others' chosen

	mu   sync.Mutex
	ring ring[T]

	_ [64]byte // so that two lanes never share a cache line
}

// Chose counts that the lane's worker has chosen what it does next, from whichever lane.
// Others see by it that the worker is not stuck.
func (l *Lane[T]) Chose() { l.chosen.Add(1) }

func (l *Lane[T]) push(xs []*T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range xs {
		l.ring.push(x)
	}
	l.waiting.Store(int64(l.ring.n))
}

// pop takes the first element, if there is one.
func (l *Lane[T]) pop() *T {
	if l.waiting.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.ring.pop()
	l.waiting.Store(int64(l.ring.n))
	return x
}

// mostStolen is how many elements change lanes at a time.
const mostStolen = 32

// steal moves the first half of what another lane has into this one, but for the
// first element, which it returns.
func (l *Lane[T]) steal(from *Lane[T]) *T {
	if from.waiting.Load() == 0 {
		return nil
	}
	var buffer [mostStolen]*T
	got := from.half(buffer[:0])
	if len(got) == 0 {
		return nil
	}
	if len(got) > 1 {
		l.push(got[1:])
	}
	return got[0]
}

// half takes out the first half, as far as it fits in the buffer.
func (l *Lane[T]) half(buffer []*T) []*T {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range min((l.ring.n+1)/2, cap(buffer)) {
		buffer = append(buffer, l.ring.pop())
	}
	l.waiting.Store(int64(l.ring.n))
	return buffer
}

// ring is a queue that uses its memory again.
type ring[T any] struct {
	slots []*T // a power of two long, or nil
	head  int
	n     int
}

func (r *ring[T]) push(x *T) {
	if r.n == len(r.slots) {
		slots := make([]*T, max(64, 2*r.n))
		for i := range r.n {
			slots[i] = r.slots[(r.head+i)&(r.n-1)]
		}
		r.slots, r.head = slots, 0
	}
	r.slots[(r.head+r.n)&(len(r.slots)-1)] = x
	r.n++
}

// pop takes the first one, if there is one.
func (r *ring[T]) pop() *T {
	if r.n == 0 {
		return nil
	}
	x := r.slots[r.head]
	r.slots[r.head] = nil
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	return x
}
