package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/heapwatch"
	"github.com/seed47132306/terrarium/engine/journal"
)

// DefaultUnaccountedMemory is the default of [Options.UnaccountedMemory].
const DefaultUnaccountedMemory = 256 << 20

const (
	lookAgain = time.Second // how often a worker checks for a new garbage collection
	// creatureBytes is the heap that a creature and the host's data about its instance
	// may use. Tables come on top: 8 bytes for each element.
	creatureBytes = 32 << 10
)

// newHeapWatch returns the watch of the heap between turns, or nil if the limit is negative.
func (e *core) newHeapWatch(limit int64) *heapwatch.Watch[creature] {
	if limit < 0 {
		return nil
	}
	byID := func(a, b *creature) int { return cmp.Compare(a.id, b.id) }
	return heapwatch.New(cmp.Or(limit, DefaultUnaccountedMemory), heapwatch.OnHeap(e.host), byID)
}

// UnaccountedBytes is the size of the Go heap after the last garbage collection, less
// what is accounted to creatures: their state, their mailboxes, linear memories that lie
// in the heap, and 32 KiB for each. Workers measure it about once a second while turns
// run; it is 0 before the first measurement.
func (e *Engine) UnaccountedBytes() int64 { return e.core.heap.Unaccounted() }

// lookAtHeap measures the heap and sets the time of the next look. The worker is in no
// critical section.
func (w *turnWorker) lookAtHeap(ctx context.Context) {
	h, first := w.heap, w.lookAt == 0
	if w.wall > 0 { // the clock has been read
		w.lookAt = w.wall + int64(lookAgain)
	}
	if h == nil || first || w.e.isClosing() {
		return
	}
	idle, report := h.Look(w.e.accounted)
	if report != nil {
		w.e.logUnexplained(report)
	}
	if idle != nil {
		w.tryIdle(ctx, idle)
	}
}

// accounted returns the bytes accounted to all creatures, and how much each has worked.
// ok is false while the holder of the mutation lock may be waiting for this worker.
func (e *core) accounted() (rest int64, worked map[*creature]uint64, ok bool) {
	l, ok := e.tryRLock()
	if !ok {
		return 0, nil, false
	}
	defer l.runlock()
	worked = map[*creature]uint64{}
	for _, g := range l.graphs {
		rest += g.accounted(worked)
	}
	return rest, worked, true
}

// logUnexplained warns of growth that no creature explains.
func (e *core) logUnexplained(r *heapwatch.Unexplained[creature]) {
	var ids []journal.CreatureID
	for _, c := range r.Most {
		ids = append(ids, c.id)
	}
	e.log.Warn("the process holds memory that is not accounted to creatures", "grown_bytes", r.Grown,
		"unaccounted_bytes", r.Unaccounted, "ran_most", ids)
}

// accounted returns the bytes accounted to the creatures of the graph, and adds to worked
// how much each has worked: its fuel, plus the cost of a send for each turn, because not
// every host counts fuel. A message counts in part for each mailbox that holds it.
func (g *graph) accounted(worked map[*creature]uint64) (bytes int64) {
	s := g.enter()
	defer s.leave()
	for _, c := range s.creatures {
		worked[c] = c.counters.Fuel + sendWork*(c.counters.Turns+c.counters.Failures)
		bytes += creatureBytes + c.stateSize
		for d := range c.mb.window.All() {
			bytes += d.msg.Size() / int64(max(1, d.msg.Refs.Load()))
		}
	}
	return bytes
}

// tryIdle tries a creature that no worker owns. If a worker owns it, that worker does it.
func (w *turnWorker) tryIdle(ctx context.Context, c *creature) {
	g := c.home.enter()
	if g.none() {
		return
	}
	instance := c.takeIdle(g)
	if g.leave(); instance != nil {
		w.tryWithout(ctx, c, instance)
	}
}

// trySuspect tries the creature that the worker owns. It does nothing in a turn that runs
// alone (see handleAlone), because other turns wait for that one.
func (w *turnWorker) trySuspect(ctx context.Context, c *creature) {
	if w.turn.alone != nil {
		return
	}
	instance := c.instance
	c.instance = nil
	w.tryWithout(ctx, c, instance)
}

// tryWithout closes a suspect's instance and measures how much memory that frees. A nil
// instance holds nothing.
func (w *turnWorker) tryWithout(ctx context.Context, c *creature, instance abi.Instance) {
	var release func()
	if instance != nil {
		release = func() {
			w.e.closeUnused(ctx, c, instance)
			instance = nil
		}
	}
	w.heap.Try(c, release, func(freed int64) { w.e.logHeld(c, freed) })
}

// logHeld writes to the engine's log and to the creature's how much its instance held.
func (e *core) logHeld(c *creature, freed int64) {
	g := c.home.enter()
	if g.none() {
		return
	}
	defer g.leave()
	e.log.Warn("an instance that held unaccounted memory was replaced", "creature", c.id, "name", c.name, "freed_bytes", freed)
	text := fmt.Sprintf("the instance was replaced: it held %d bytes of the process beyond what is accounted; report the module", freed)
	rec := g.newRecord()
	g.logLines(rec, journal.Event{Creature: c.id}, []effects.Line{{Level: abi.LevelWarn, Text: text, Engine: true}})
	g.append(rec)
}
