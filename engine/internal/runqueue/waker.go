package runqueue

import "github.com/seed47132306/terrarium/engine/internal/idle"

// Waker collects elements that a critical section made runnable, to be put on the queue
// after it. Its methods must be called by one goroutine at a time.
type Waker[T any] struct {
	List []*T
	// Later is set in a worker's waker. The elements that it wakes and releases are not
	// counted at once but in Owed, because most turns wake as many as they end. While the
	// worker owns an element, which counts as busy, the difference cannot be observed.
	Later bool
	Owed  int64
	Lane  *Lane[T] // the worker's; nil: none
}

// Add notes that an element has become busy.
func (w *Waker[T]) Add(x *T, busy *idle.Counter) {
	w.List = append(w.List, x)
	if w.Later {
		w.Owed++
		return
	}
	busy.Add(1)
}

// Last removes and returns the element that was added last, or nil.
func (w *Waker[T]) Last() *T {
	n := len(w.List)
	if n == 0 {
		return nil
	}
	x := w.List[n-1]
	w.List[n-1] = nil
	w.List = w.List[:n-1]
	return x
}

// Flush puts the collected elements on the queue. It counts them first, because other
// workers may be done with them at once.
func (w *Waker[T]) Flush(q *Queue[T], busy *idle.Counter) {
	if w.Owed > 0 {
		w.CountOwed(busy)
	}
	q.Push(w.Lane, w.List...)
	clear(w.List)
	w.List = w.List[:0]
}

// CountOwed applies the count in Owed.
func (w *Waker[T]) CountOwed(busy *idle.Counter) {
	if w.Owed != 0 {
		busy.Add(w.Owed)
		w.Owed = 0
	}
}
