// Package ring implements a bounded queue between writers that never wait and one reader.
//
// When a value does not fit, the ring drops and counts it and all later values, until the
// reader has taken the values in the ring and then the number of dropped ones. A closed
// ring accepts no more values; those in it can still be taken.
package ring

import "sync"

// Ring holds values of type T. Its methods may be called from any goroutine;
// only one at a time may take values.
type Ring[T any] struct {
	news chan struct{} // holds a token when there may be something to read

	mu     sync.Mutex // guards the fields below
	slots  []T        // grows up to most
	most   int
	head   int
	n      int
	missed uint64
	closed bool
}

// New returns a ring for at most that many values, and at least one.
func New[T any](most int) *Ring[T] {
	return &Ring[T]{most: most, news: make(chan struct{}, 1)}
}

// News returns a channel that delivers a token when there may be something to
// take, or the ring was closed.
func (r *Ring[T]) News() <-chan struct{} { return r.news }

func (r *Ring[T]) signal() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Offer adds a value, or counts it as missed.
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

// grow makes room on demand, because a reader that keeps up needs little.
// Offer calls it.
func (r *Ring[T]) grow() {
	const least = 64
	slots := make([]T, min(max(2*len(r.slots), least), r.most))
	n := copy(slots, r.slots[r.head:])
	copy(slots[n:], r.slots[:r.head])
	r.slots, r.head = slots, 0
}

// Take removes and returns the first value or, if there is none, the number of
// missed values. ok is false if there is neither.
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

// Empty reports whether there is nothing to take.
func (r *Ring[T]) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n == 0 && r.missed == 0
}

// Overflown reports whether values were missed and the reader has not taken
// their number yet.
func (r *Ring[T]) Overflown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed > 0
}

// Clear drops all values and the number of missed ones.
func (r *Ring[T]) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.slots)
	r.head, r.n, r.missed = 0, 0, 0
}

// Close makes the ring accept no more values. It may be called again.
func (r *Ring[T]) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.signal()
}

// Closed reports whether the ring is closed, and in ended whether it is also
// empty.
func (r *Ring[T]) Closed() (closed, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed, r.closed && r.n == 0
}
