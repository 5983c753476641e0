package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// DefaultUnaccountedMemory is that of [Options.UnaccountedMemory].
const DefaultUnaccountedMemory = 256 << 20

const (
	lookAgain = time.Second // how often a worker looks whether there was a collection
	// heldPart is the part of the limit that the end of an instance must free to show
	// that it held memory.
	heldPart = 4
	// creatureBytes is what a creature and what the host keeps of its instance may take
	// of the heap. Tables come on top: 8 bytes for an element.
	creatureBytes = 32 << 10
)

// heapWatch notices when the process holds memory that no limit of a creature
// accounts for, such as what a runtime leaks for each call of an instance. Workers
// drive it between turns. It finds a suspect by a heapLedger and tries it: the suspect's
// instance is closed between two garbage collections. What is freed is measured, not
// guessed, and nothing is lost: an instance's memory is a cache.
type heapWatch struct {
	gauge       heapGauge
	unaccounted atomic.Int64             // at the last look
	suspect     atomic.Pointer[creature] // to be tried by the worker that gets it in hands

	mu     sync.Mutex // guards what follows; held during a trial
	cycle  uint64     // of the last look
	rest   int64      // accounted at the last look, linear memories apart
	ledger heapLedger
}

// heapGauge measures the heap of the process.
type heapGauge interface {
	// live is what the last garbage collection found in use, and its number.
	live() (bytes int64, cycle uint64)
	// collect runs a garbage collection and waits for its end.
	collect()
}

type processHeap struct{}

func (processHeap) live() (int64, uint64) {
	s := [2]metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64()), s[1].Value.Uint64()
}

func (processHeap) collect() { runtime.GC() }

// newHeapWatch returns nil when the limit is negative.
func newHeapWatch(limit int64) *heapWatch {
	if limit < 0 {
		return nil
	}
	if limit == 0 {
		limit = DefaultUnaccountedMemory
	}
	return &heapWatch{gauge: processHeap{}, ledger: heapLedger{limit: limit}}
}

// UnaccountedBytes is what the process held in its Go heap after the last garbage
// collection beyond what is accounted to creatures: their state, their mailboxes,
// linear memories that lie in the heap, and 32 KiB for each. Workers look about once a
// second while turns run; it is 0 before.
func (e *Engine) UnaccountedBytes() int64 {
	if e.heap == nil {
		return 0
	}
	return e.heap.unaccounted.Load()
}

// lookAtHeap looks at the heap, and says when to do so again. The worker is in no
// critical section.
func (w *worker) lookAtHeap(ctx context.Context) {
	h, first := w.heap, w.lookAt == 0
	if w.wall > 0 { // the clock was asked
		w.lookAt = w.wall + int64(lookAgain)
	}
	if h == nil || first || w.e.isClosing() || !h.mu.TryLock() {
		return
	}
	idle := h.look(w.e)
	h.mu.Unlock()
	if idle != nil {
		w.tryIdle(ctx, idle)
	}
}

// look notes what a garbage collection has found since the last look. It returns the
// creature to be tried, if no worker has it. The caller holds mu.
func (h *heapWatch) look(e *Engine) *creature {
	live, cycle := h.gauge.live()
	if cycle == h.cycle {
		return nil
	}
	// The holder of e.mu may be waiting for this worker.
	if !e.mu.TryRLock() {
		return nil
	}
	rest, worked := int64(0), map[*creature]uint64{}
	for _, g := range e.graphs {
		rest += g.accounted(worked)
	}
	e.mu.RUnlock()
	unaccounted := live - e.onHeap() - rest
	h.cycle, h.rest = cycle, rest
	h.unaccounted.Store(max(0, unaccounted))
	suspect, tooMuch := h.ledger.add(unaccounted, worked)
	h.suspect.Store(suspect)
	if tooMuch && suspect == nil {
		h.tellUnknown(e)
	}
	return suspect
}

// tellUnknown warns of growth for which no creature could be found.
func (h *heapWatch) tellUnknown(e *Engine) {
	most := h.ledger.most()
	var ids []journal.CreatureID
	for _, c := range most[:min(3, len(most))] {
		ids = append(ids, c.id)
	}
	e.log.Warn("the process holds memory that is not accounted to creatures", "grown_bytes", h.ledger.grown(),
		"unaccounted_bytes", h.unaccounted.Load(), "ran_most", ids)
	h.ledger.settle()
}

// onHeap is what the linear memories of all instances take of the Go heap, if the host
// tells.
func (e *Engine) onHeap() int64 {
	if h, ok := e.host.(interface{ HeapBytes() int64 }); ok {
		return h.HeapBytes()
	}
	return 0
}

// accounted is what is accounted to the creatures of the graph, and notes how much each
// has worked: in fuel, and as much as a send for each turn, for not every host counts
// fuel. A message counts in part for each mailbox that has it.
func (g *graph) accounted(worked map[*creature]uint64) (bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.creatures {
		worked[c] = c.counters.Fuel + sendWork*(c.counters.Turns+c.counters.Failures)
		bytes += creatureBytes + c.stateSize
		for i := range c.mb.n {
			m := c.mb.at(i).msg
			bytes += m.size() / int64(max(1, m.refs.Load()))
		}
	}
	return bytes
}

// tryIdle tries a creature that no worker has. If one has it, that one does.
func (w *worker) tryIdle(ctx context.Context, c *creature) {
	g := c.home.lock()
	if g == nil {
		return
	}
	if c.scheduled || c.hold != nil || c.instance == nil {
		g.mu.Unlock()
		return
	}
	instance := c.instance
	c.instance = nil
	g.mu.Unlock()
	w.tryWithout(ctx, c, instance)
}

// suspects reports whether a creature is to be tried.
func (h *heapWatch) suspects(c *creature) bool { return h != nil && h.suspect.Load() == c }

// trySuspect tries the creature in the worker's hands. A turn that holds the mutation
// lock keeps no others waiting for that.
func (w *worker) trySuspect(ctx context.Context, c *creature) {
	if w.turn.alone {
		return
	}
	instance := c.instance
	c.instance = nil
	w.tryWithout(ctx, c, instance)
}

// tryWithout closes a suspect's instance and measures what that frees. A nil instance
// holds nothing.
func (w *worker) tryWithout(ctx context.Context, c *creature, instance abi.Instance) {
	h := w.e.heap
	h.mu.Lock()
	defer h.mu.Unlock()
	h.suspect.CompareAndSwap(c, nil)
	if instance == nil {
		h.ledger.clear(c)
		return
	}
	before := h.collected(w.e)
	err := instance.Close(ctx)
	instance = nil
	if err != nil {
		w.e.log.Debug("closing an instance", "creature", c.id, "error", err)
	}
	after := h.collected(w.e)
	if freed := before - after; freed >= max(1, h.ledger.limit/heldPart) {
		h.ledger.convict(c, after-h.rest)
		h.unaccounted.Store(max(0, after-h.rest))
		w.e.tellHeld(c, freed)
		return
	}
	h.ledger.clear(c)
}

// collected is what the heap holds after a collection without linear memories.
func (h *heapWatch) collected(e *Engine) int64 {
	h.gauge.collect()
	live, _ := h.gauge.live()
	return live - e.onHeap()
}

// tellHeld says in the log and in the creature's own what its instance held.
func (e *Engine) tellHeld(c *creature, freed int64) {
	g := c.home.lock()
	if g == nil {
		return
	}
	defer g.mu.Unlock()
	e.log.Warn("an instance was replaced that held memory which is not accounted", "creature", c.id, "name", c.name, "freed_bytes", freed)
	text := fmt.Sprintf("the instance was replaced: it held %d bytes of the process beyond what is accounted; report the module", freed)
	rec := g.newRecord()
	g.logLines(rec, journal.Event{Creature: c.id}, []logLine{{level: abi.LevelWarn, text: text, engine: true}})
	g.append(rec)
}
