// Package deque implements a queue in a ring that grows.
package deque

import "iter"

// Deque is a queue of values. Its zero value is empty and has no memory. Its methods must
// be called by one goroutine at a time.
type Deque[T any] struct {
	ring []T // a power of two long, or nil
	head int
	n    int
}

// firstSize is the number of values for which the first value makes room.
const firstSize = 4

// Len returns the number of values.
func (d *Deque[T]) Len() int { return d.n }

// At returns the place of a value, counted from the front. It holds until the next call of
// another method than Len, At and All.
func (d *Deque[T]) At(i int) *T { return &d.ring[(d.head+i)&(len(d.ring)-1)] }

// All are the places of the values, from the front.
func (d *Deque[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := 0; i < d.n && yield(d.At(i)); i++ {
		}
	}
}

// Push adds a value at the back.
func (d *Deque[T]) Push(x T) {
	if d.n == len(d.ring) {
		ring := make([]T, max(firstSize, 2*len(d.ring)))
		for i := range d.n {
			ring[i] = *d.At(i)
		}
		d.ring, d.head = ring, 0
	}
	d.n++
	*d.At(d.n - 1) = x
}

// Pop removes and returns the value at the front. There must be one.
func (d *Deque[T]) Pop() T {
	var none T
	front := d.At(0)
	x := *front
	*front = none
	d.head = (d.head + 1) & (len(d.ring) - 1)
	d.n--
	return x
}

// Remove removes the values that f reports, and returns them in order.
func (d *Deque[T]) Remove(f func(*T) bool) (out []T) {
	kept := 0
	for i := range d.n {
		if x := d.At(i); f(x) {
			out = append(out, *x)
		} else {
			*d.At(kept) = *x
			kept++
		}
	}
	var none T
	for i := kept; i < d.n; i++ {
		*d.At(i) = none
	}
	d.n = kept
	return out
}
