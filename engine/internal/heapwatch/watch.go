// Package heapwatch detects memory of the process that no limit of a creature
// accounts for, such as memory that a runtime leaks for each call of an
// instance, and finds the creature whose instance holds it.
//
// A look compares the memory in use after the last garbage collection with the
// accounted memory. A ledger attributes growth to the creatures that have
// worked, and names a suspect. There is one suspect at a time, until it has
// been tried or the next look names another. A trial closes its instance
// between two garbage collections. The freed memory is measured, not guessed,
// and nothing is lost, because an instance's memory is a cache. A suspect is
// convicted if enough was freed; otherwise it is cleared and not suspected
// again for a while. Growth without a remaining suspect is reported once, and
// then accepted.
package heapwatch

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// heldPart is the part of the limit that the end of an instance must free to show that it
// held memory.
const heldPart = 4

// Watch watches the heap of the process for creatures of type T. A nil Watch
// finds nothing.
type Watch[T any] struct {
	onHeap      func() int64
	gauge       Gauge
	unaccounted atomic.Int64      // at the last look
	suspect     atomic.Pointer[T] // tried by the worker that next owns it

	mu     sync.Mutex // guards the fields below; held during a trial
	cycle  uint64     // of the last look
	rest   int64      // accounted at the last look, without linear memories
	ledger ledger[T]
}

// Gauge measures the heap of the process.
type Gauge interface {
	// Live returns the bytes in use after the last garbage collection, and its
	// number.
	Live() (bytes int64, cycle uint64)
	// Collect runs a garbage collection and waits for its end.
	Collect()
}

type processHeap struct{}

func (processHeap) Live() (int64, uint64) {
	s := [2]metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64()), s[1].Value.Uint64()
}

func (processHeap) Collect() { runtime.GC() }

// New returns a watch that acts when the heap has grown by more than limit
// unaccounted bytes. onHeap returns the bytes of linear memories on the heap,
// and compare orders two equally suspected creatures.
func New[T any](limit int64, onHeap func() int64, compare func(a, b *T) int) *Watch[T] {
	return &Watch[T]{onHeap: onHeap, gauge: processHeap{}, ledger: ledger[T]{limit: limit, compare: compare}}
}

// SetGauge sets another way to measure the heap. Call it before the first
// look.
func (w *Watch[T]) SetGauge(g Gauge) { w.gauge = g }

// Unaccounted returns the unaccounted bytes found by the last look.
func (w *Watch[T]) Unaccounted() int64 {
	if w == nil {
		return 0
	}
	return w.unaccounted.Load()
}

// Suspects reports whether a creature should be tried.
func (w *Watch[T]) Suspects(c *T) bool { return w != nil && w.suspect.Load() == c }

// Unexplained is growth for which no creature is left to try.
type Unexplained[T any] struct {
	Grown, Unaccounted int64 // bytes
	Most               []*T  // the creatures that have worked most, at most three
}

// Look records the result of the last garbage collection, unless it was
// recorded before or another look or a trial is in progress. account returns
// the memory accounted to creatures, without their linear memories, and how
// much each has worked; ok is false if that is unknown now. Look returns the
// creature to try if no worker owns it, and the unexplained growth to report,
// if any.
func (w *Watch[T]) Look(account func() (rest int64, worked map[*T]uint64, ok bool)) (suspect *T, report *Unexplained[T]) {
	if !w.mu.TryLock() {
		return nil, nil
	}
	defer w.mu.Unlock()
	live, cycle := w.gauge.Live()
	if cycle == w.cycle {
		return nil, nil
	}
	rest, worked, ok := account()
	if !ok {
		return nil, nil
	}
	unaccounted := live - w.onHeap() - rest
	w.cycle, w.rest = cycle, rest
	w.unaccounted.Store(max(0, unaccounted))
	suspect, tooMuch := w.ledger.add(unaccounted, worked)
	w.suspect.Store(suspect)
	if tooMuch && suspect == nil {
		most := w.ledger.most()
		report = &Unexplained[T]{w.ledger.grown(), w.unaccounted.Load(), most[:min(3, len(most))]}
		w.ledger.acceptGrowth()
	}
	return suspect, report
}

// Try tries a suspect: release closes its instance and drops the reference.
// release is nil for a creature without an instance, which holds nothing. If
// the instance held memory, Try calls convicted with the freed bytes; no other
// look or trial runs meanwhile.
func (w *Watch[T]) Try(c *T, release func(), convicted func(freed int64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suspect.CompareAndSwap(c, nil)
	if release == nil {
		w.ledger.clear(c)
		return
	}
	before := w.collected()
	release()
	after := w.collected()
	if freed := before - after; freed >= max(1, w.ledger.limit/heldPart) {
		w.ledger.convict(c, after-w.rest)
		w.unaccounted.Store(max(0, after-w.rest))
		convicted(freed)
		return
	}
	w.ledger.clear(c)
}

// collected runs a collection and returns the bytes on the heap without linear
// memories.
func (w *Watch[T]) collected() int64 {
	w.gauge.Collect()
	live, _ := w.gauge.Live()
	return live - w.onHeap()
}
