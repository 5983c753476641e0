package runqueue

import (
	"sync"
	"sync/atomic"
)

// Lane is a part of a queue. Every worker may use it, but mostly its own
// worker does.
type Lane[T any] struct {
	chosen  atomic.Uint64       // how many times its worker has chosen an element
	waiting atomic.Int64        // ring.n, for workers without the lock
	seen    map[*Lane[T]]uint64 // the values of chosen in other lanes that its worker has seen

	mu   sync.Mutex
	ring ring[T]

	_ [64]byte // so that two lanes never share a cache line
}

// Chose counts a choice of the lane's worker, from any lane. It shows other
// workers that this one is not stuck.
func (l *Lane[T]) Chose() { l.chosen.Add(1) }

func (l *Lane[T]) push(xs []*T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range xs {
		l.ring.push(x)
	}
	l.waiting.Store(int64(l.ring.n))
}

// pop removes and returns the first element, or nil.
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

// half removes the first half, as far as it fits in the buffer.
func (l *Lane[T]) half(buffer []*T) []*T {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range min((l.ring.n+1)/2, cap(buffer)) {
		buffer = append(buffer, l.ring.pop())
	}
	l.waiting.Store(int64(l.ring.n))
	return buffer
}

// ring is a queue that reuses its memory.
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

// pop removes and returns the first element, or nil.
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
