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

// DefaultUnaccountedMemory is that of [Options.UnaccountedMemory].
const DefaultUnaccountedMemory = 256 << 20

const (
	lookAgain = time.Second // how often a worker looks whether there was a collection
	// creatureBytes is what a creature and what the host keeps of its instance may take
	// of the heap. Tables come on top: 8 bytes for an element.
	creatureBytes = 32 << 10
)

// newHeapWatch returns what watches the heap between turns, or nil when the limit is
// negative.
func (e *core) newHeapWatch(limit int64) *heapwatch.Watch[creature] {
	if limit < 0 {
		return nil
	}
	byID := func(a, b *creature) int { return cmp.Compare(a.id, b.id) }
	return heapwatch.New(cmp.Or(limit, DefaultUnaccountedMemory), e.onHeap, byID)
}

// UnaccountedBytes is what the process held in its Go heap after the last garbage
// collection beyond what is accounted to creatures: their state, their mailboxes,
// linear memories that lie in the heap, and 32 KiB for each. Workers look about once a
// second while turns run; it is 0 before.
func (e *Engine) UnaccountedBytes() int64 { return e.core.heap.Unaccounted() }

// lookAtHeap looks at the heap, and says when to do so again. The worker is in no
// critical section.
func (w *turnWorker) lookAtHeap(ctx context.Context) {
	h, first := w.heap, w.lookAt == 0
	if w.wall > 0 { // the clock was asked
		w.lookAt = w.wall + int64(lookAgain)
	}
	if h == nil || first || w.e.isClosing() {
		return
	}
	idle, report := h.Look(w.e.accounted)
	if report != nil {
		w.e.tellUnexplained(report)
	}
	if idle != nil {
		w.tryIdle(ctx, idle)
	}
}

// accounted is what is accounted to all creatures, and how much each has worked. It
// cannot tell while the holder of the mutation lock may be waiting for this worker.
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

// tellUnexplained warns of growth for which no creature could be found.
func (e *core) tellUnexplained(r *heapwatch.Unexplained[creature]) {
	var ids []journal.CreatureID
	for _, c := range r.Most {
		ids = append(ids, c.id)
	}
	e.log.Warn("the process holds memory that is not accounted to creatures", "grown_bytes", r.Grown,
		"unaccounted_bytes", r.Unaccounted, "ran_most", ids)
}

// onHeap is what the linear memories of all instances take of the Go heap, if the host
// tells.
func (e *core) onHeap() int64 {
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
			bytes += m.Size() / int64(max(1, m.Refs.Load()))
		}
	}
	return bytes
}

// tryIdle tries a creature that no worker has. If one has it, that one does.
func (w *turnWorker) tryIdle(ctx context.Context, c *creature) {
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

// trySuspect tries the creature in the worker's hands. A turn that holds the mutation
// lock keeps no others waiting for that.
func (w *turnWorker) trySuspect(ctx context.Context, c *creature) {
	if w.turn.alone != nil {
		return
	}
	instance := c.instance
	c.instance = nil
	w.tryWithout(ctx, c, instance)
}

// tryWithout closes a suspect's instance and measures what that frees. A nil instance
// holds nothing.
func (w *turnWorker) tryWithout(ctx context.Context, c *creature, instance abi.Instance) {
	var release func()
	if instance != nil {
		release = func() {
			if err := instance.Close(ctx); err != nil {
				w.e.log.Debug("closing an instance", "creature", c.id, "error", err)
			}
			instance = nil
		}
	}
	w.heap.Try(c, release, func(freed int64) { w.e.tellHeld(c, freed) })
}

// tellHeld says in the log and in the creature's own what its instance held.
func (e *core) tellHeld(c *creature, freed int64) {
	g := c.home.lock()
	if g == nil {
		return
	}
	defer g.mu.Unlock()
	e.log.Warn("an instance was replaced that held memory which is not accounted", "creature", c.id, "name", c.name, "freed_bytes", freed)
	text := fmt.Sprintf("the instance was replaced: it held %d bytes of the process beyond what is accounted; report the module", freed)
	rec := g.newRecord()
	g.logLines(rec, journal.Event{Creature: c.id}, []effects.Line{{Level: abi.LevelWarn, Text: text, Engine: true}})
	g.append(rec)
}
