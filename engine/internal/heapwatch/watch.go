// Package heapwatch notices when the process holds memory that no limit of a creature
// accounts for, such as what a runtime leaks for each call of an instance, and finds the
// creature whose instance holds it.
//
// A look compares what the last garbage collection found in use with what is accounted.
// A ledger puts growth down to the creatures that have worked, and names a suspect. There
// is one suspect at a time, until it has been tried or the next look names another. A trial
// closes its instance between two garbage collections. What is freed is measured, not
// guessed, and nothing is lost: an instance's memory is a cache. A suspect is convicted if
// enough was freed, and otherwise cleared, and not suspected again for a while. Growth for
// which there is no suspect left is reported once, and taken for granted.
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

// Watch watches the heap of the process for creatures of type T. A nil one finds nothing.
type Watch[T any] struct {
	onHeap      func() int64
	gauge       Gauge
	unaccounted atomic.Int64      // at the last look
	suspect     atomic.Pointer[T] // to be tried by the worker that gets it in hands

	mu     sync.Mutex // guards what follows; held during a trial
	cycle  uint64     // of the last look
	rest   int64      // accounted at the last look, linear memories apart
	ledger ledger[T]
}

// Gauge measures the heap of the process.
type Gauge interface {
	// Live is what the last garbage collection found in use, and its number.
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

// New returns a watch that takes action when the heap has grown by more than limit bytes
// that are not accounted. onHeap is what linear memories take of the heap, and compare
// orders two creatures that are suspected alike.
func New[T any](limit int64, onHeap func() int64, compare func(a, b *T) int) *Watch[T] {
	return &Watch[T]{onHeap: onHeap, gauge: processHeap{}, ledger: ledger[T]{limit: limit, compare: compare}}
}

// SetGauge has the heap measured another way. It is called before the first look.
func (w *Watch[T]) SetGauge(g Gauge) { w.gauge = g }

// Unaccounted is what the last look found beyond what is accounted.
func (w *Watch[T]) Unaccounted() int64 {
	if w == nil {
		return 0
	}
	return w.unaccounted.Load()
}

// Suspects reports whether a creature is to be tried.
func (w *Watch[T]) Suspects(c *T) bool { return w != nil && w.suspect.Load() == c }

// Unexplained is growth for which no creature is left to be tried.
type Unexplained[T any] struct {
	Grown, Unaccounted int64 // bytes
	Most               []*T  // the creatures that have worked most, three at most
}

// Look notes what the last garbage collection has found, unless it was noted before or
// another look or a trial is under way. account says what is accounted to
// creatures, their linear memories apart, and how much each has worked; ok is false if
// it cannot tell now. Look returns the creature to be tried if no worker has it, and what
// is to be reported, if anything is.
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

// Try tries a suspect: release closes its instance and forgets it. A nil release is that
// of a creature without one, which holds nothing. Try calls convicted with the bytes that
// were freed if the instance held memory; no other look or trial runs meanwhile.
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

// collected is what the heap holds after a collection without linear memories.
func (w *Watch[T]) collected() int64 {
	w.gauge.Collect()
	live, _ := w.gauge.Live()
	return live - w.onHeap()
}
