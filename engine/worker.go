package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/internal/heapwatch"
	"github.com/seed47132306/terrarium/engine/internal/runqueue"
	"github.com/seed47132306/terrarium/engine/journal"
)

// quantum is how many deliveries of one creature a worker handles before it checks
// whether other creatures wait.
const quantum = 64

// streak is how often a worker may continue with a creature that it woke itself before it
// takes the next one from the queue.
const streak = 64

// sendWork is how much fuel a send counts as, because the worker delivers it.
const sendWork = 1_000

// waker collects the creatures that a critical section made runnable.
type waker struct{ runqueue.Waker[creature] }

// flush puts the collected creatures on the run queue.
func (w *waker) flush(e *core) { w.Flush(e.queue, &e.idle) }

// turnWorker is a goroutine that runs turns, one after the other. (A worker among the
// creatures is a child of one, and not a type.)
type turnWorker struct {
	e    *core
	turn turn
	log  turnLog // of the turn, when it commits
	wake waker
	// quantum is how many deliveries of one creature are handled before other creatures
	// are served.
	quantum int
	// streak is how often the worker may continue with a creature that it woke itself
	// before it takes the next one from the queue. At 0 serve serves one creature.
	streak int
	own    int           // how often it has done so
	caller *callerTurn   // whose turn it runs; nil: it is a goroutine
	work   int64         // done for the creature that is being served
	store  journal.Store // of the graph in which the current turn began

	wall      int64                      // result of the last clock reading
	wallTurns int                        // turns that may still use it
	heap      *heapwatch.Watch[creature] // the engine's; nil: none
	lookAt    int64                      // the time from which on the worker looks at the heap again
}

func newWorker(e *core, l *runqueue.Lane[creature]) *turnWorker {
	w := &turnWorker{e: e, heap: e.heap, quantum: quantum, streak: streak}
	w.turn.e, w.log.t = e, &w.turn
	w.wake.Later, w.wake.Lane = true, l
	return w
}

// rest releases a creature, which is no longer busy.
func (w *turnWorker) rest(g section, c *creature) {
	c.release(g)
	w.wake.Owed--
}

// flush puts the woken creatures on the queue.
func (w *turnWorker) flush() {
	if len(w.wake.List) > 0 {
		w.wake.flush(w.e)
	}
}

// putBack puts the worker's creature at the end of the queue, after those that it woke.
func (w *turnWorker) putBack(c *creature) {
	w.wake.List = append(w.wake.List, c)
	w.wake.flush(w.e)
}

// A worker reads the real clock only once in a while, because reading it costs as much as
// a tenth of a short turn.
const (
	wallTurns = 16     // turns that use the same time, at most
	longTurn  = 20_000 // fuel, some ten microseconds' worth; a longer turn reads the clock again
)

// wallClock is the time, as logged, of what the worker does now.
func (w *turnWorker) wallClock() int64 {
	fuel := w.turn.fuel
	if !w.e.sampled || w.wallTurns == 0 || fuel < 0 || fuel > longTurn {
		w.wall, w.wallTurns = w.e.wallClock(), wallTurns
	}
	w.wallTurns--
	return w.wall
}

// awaitStore waits until the log of the creature's graph has room for the turn's record.
// A graph that had no log when the turn began may have one by now: its bound is exceeded
// by at most one record for every worker.
func (w *turnWorker) awaitStore(ctx context.Context, c *creature) error {
	for w.store != nil {
		if err := w.store.Room(ctx); err == nil || ctx.Err() != nil || c.home.logsTo(w.store) {
			return err
		}
		g := c.home.enter()
		if g.none() {
			return nil // commit notices that
		}
		w.store = g.store
		g.leave()
	}
	return nil
}
