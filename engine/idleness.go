package engine

import (
	"github.com/seed47132306/terrarium/engine/internal/idle"
	"github.com/seed47132306/terrarium/engine/internal/runqueue"
)

// waker collects the creatures that a critical section made runnable, to be put on the
// run queue after it.
type waker struct {
	list []*creature
	// later is set in a worker's waker. The creatures that it wakes and releases are not
	// counted at once but in owed, because most turns wake as many as they end. While the
	// worker owns a creature, which counts as busy, the difference cannot be observed.
	later bool
	owed  int64
	lane  *runqueue.Lane[creature] // the worker's; nil: none
}

// add notes that a creature has become busy.
func (w *waker) add(c *creature) {
	w.list = append(w.list, c)
	if w.later {
		w.owed++
		return
	}
	c.engine().idle.Add(1)
}

// last removes and returns the creature that was added last.
func (w *waker) last() *creature {
	n := len(w.list)
	if n == 0 {
		return nil
	}
	c := w.list[n-1]
	w.list[n-1] = nil
	w.list = w.list[:n-1]
	return c
}

// flush puts the collected creatures on the run queue. It counts them first, because
// other workers may be done with them at once.
func (w *waker) flush(e *core) {
	if w.owed > 0 {
		w.countOwed(&e.idle)
	}
	e.queue.Push(w.lane, w.list...)
	clear(w.list)
	w.list = w.list[:0]
}

// countOwed applies the count in owed.
func (w *waker) countOwed(i *idle.Counter) {
	if w.owed != 0 {
		i.Add(w.owed)
		w.owed = 0
	}
}
