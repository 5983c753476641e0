// Package ring has a bounded queue between writers that never wait and one reader.
//
// A ring has room until it is full. From the first value that does not fit, values are left
// out and counted, until the reader has taken all that is there and been told how many are
// missing; then there is room again. A closed ring takes no more values; what is in it can
// still be taken.
package ring

import "sync"

// Ring holds values of type T. Its methods may be called from any goroutine; one at a time
// takes values.
type Ring[T any] struct {
	news chan struct{} // holds a token when there may be something to read

	mu     sync.Mutex // guards what follows
	slots  []T        // grows up to most
	most   int
	head   int
	n      int
	missed uint64
	closed bool
}

// New returns a ring that holds at most so many values, at least one.
func New[T any](most int) *Ring[T] {
	return &Ring[T]{most: most, news: make(chan struct{}, 1)}
}

// News is a channel from which the reader gets a token when there may be something to take,
// or the ring was closed.
func (r *Ring[T]) News() <-chan struct{} { return r.news }

func (r *Ring[T]) signal() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Offer puts in a value, or counts it as missed.
func (r *Ring[T]) Offer(x T) {
	r.mu.Lock()
	switch {
	case r.closed:
	case r.n == r.most || r.missed > 0:
		r.missed++
	default:
		if r.n == len(r.slots) {
			r.grow()
		}
		r.slots[(r.head+r.n)%len(r.slots)] = x
		r.n++
	}
	r.mu.Unlock()
	r.signal()
}

// grow makes room: a reader that keeps up needs little, whatever it may have. It is a
// part of Offer.
func (r *Ring[T]) grow() {
	const least = 64
	slots := make([]T, min(max(2*len(r.slots), least), r.most))
	n := copy(slots, r.slots[r.head:])
	copy(slots[n:], r.slots[:r.head])
	r.slots, r.head = slots, 0
}

// Take takes out the first value or, if there is none, how many were missed. It is not ok
// if there is neither.
func (r *Ring[T]) Take() (x T, missed uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n > 0 {
		var none T
		x, r.slots[r.head] = r.slots[r.head], none
		r.head = (r.head + 1) % len(r.slots)
		r.n--
		return x, 0, true
	}
	missed, r.missed = r.missed, 0
	return x, missed, missed > 0
}

// Empty reports whether nothing is to be taken.
func (r *Ring[T]) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n == 0 && r.missed == 0
}

// Overflown reports whether values have been missed that the reader has not been told of.
func (r *Ring[T]) Overflown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed > 0
}

// Clear drops what is in the ring, and what was missed.
func (r *Ring[T]) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.slots)
	r.head, r.n, r.missed = 0, 0, 0
}

// Close lets no more values in. It may be called again.
func (r *Ring[T]) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.signal()
}

// Closed reports whether the ring is closed, and ended whether it holds no more values, too.
func (r *Ring[T]) Closed() (closed, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed, r.closed && r.n == 0
}
