package engine

import (
	"context"
	"errors"

	"github.com/seed47132306/terrarium/abi"
)

// quantum is how many deliveries of one creature a worker handles before it
// looks whether others are waiting.
const quantum = 64

// quantumWork is how much work of one creature a worker does before it looks
// whether others are waiting, in fuel: some hundred microseconds' worth. A send
// counts as sendWork, for it is delivered by the worker.
const (
	quantumWork = 500_000
	sendWork    = 1_000
)

// streak is how often a worker may go on with the creature that it woke itself
// before it takes the next one from the queue.
const streak = 64

// worker runs turns, one after the other.
type worker struct {
	e    *Engine
	turn turn
	wake waker
	next *creature // to be run next, in place of the head of the queue
	// quantum is how many deliveries of one creature are handled before others
	// get their turn.
	quantum int
	work    int64 // done for the creature that is being served

	wall      int64 // what the clock said when it was last asked
	wallTurns int   // turns that may still use that
}

func newWorker(e *Engine) *worker {
	w := &worker{e: e, quantum: quantum}
	w.turn.e = e
	return w
}

// run works until the queue is closed. It returns with no creature in hand.
func (w *worker) run(ctx context.Context) {
	own := 0
	for {
		c := w.next
		w.next = nil
		if c == nil || own >= streak || w.e.isClosing() {
			if c != nil {
				w.e.queue.push(c)
			}
			own = 0
			w.wallTurns = 0
			c = w.e.queue.pop()
		} else {
			own++
		}
		if c == nil {
			return
		}
		w.serve(ctx, c)
	}
}

// next says what a creature has to do next.
type todo uint8

const (
	doNothing todo = iota
	doHandle       // a delivery
	doRefill       // read the store
)

// serve handles deliveries of a creature until there are none or its quantum
// is used up. The creature is scheduled when serve is called, and either on
// the queue or not scheduled when it returns.
func (w *worker) serve(ctx context.Context, c *creature) {
	g := c.home.lock()
	if c.hold != nil {
		w.leave(g, c)
		return
	}
	c.inHands = true
	w.work = 0
	for n := 0; ; n++ {
		if g == nil {
			w.retire(ctx, c)
			return
		}
		if c.hasWork() && (n >= w.quantum || w.work >= quantumWork || w.e.isClosing()) {
			c.inHands = false
			g.mu.Unlock()
			w.flush()
			w.e.queue.push(c)
			return
		}
		d, kind, what := c.take(g)
		if what == doHandle {
			c.behold(g)
		}
		if what == doNothing && c.instance != nil && !c.runs() {
			// The creature stays in the worker's hands until its instance is
			// closed: started again meanwhile, it must not run beside it.
			g.mu.Unlock()
			w.flush()
			w.closeInstance(ctx, c)
			g = c.home.lock()
			continue
		}
		if what == doNothing {
			c.giveUp()
			g.mu.Unlock()
			w.rest()
			return
		}
		g.mu.Unlock()
		w.flush()
		if what == doRefill {
			if err := w.refill(ctx, c); err != nil {
				w.pause(ctx, c, err)
				return
			}
			g = c.home.lock()
			continue
		}
		g = w.handle(ctx, c, d, kind)
	}
}

// leave puts a creature aside that somebody holds, who wakes it or, if it is gone,
// closes its instance.
func (w *worker) leave(g *graph, c *creature) {
	c.scheduled = false
	if g != nil {
		g.mu.Unlock()
	}
	w.rest()
}

// take decides what the creature does next. The caller holds the graph's mu.
func (c *creature) take(g *graph) (delivery, abi.Kind, todo) {
	switch {
	case !c.hasWork():
		return delivery{}, 0, doNothing
	case c.retry != nil:
		d := *c.retry
		c.retry = nil
		c.current = d
		return d, d.msg.kind, doHandle
	case !c.started:
		m := newMessage(nil, nil)
		m.kind, m.time = abi.KindStart, g.tick()
		return delivery{msg: m}, abi.KindStart, doHandle
	case len(c.jobs) > 0:
		c.job, c.jobs = c.jobs[0], c.jobs[1:]
		return delivery{msg: c.job.msg}, kindTool, doHandle
	case c.hasNews(g):
		return c.changeNotice(g), abi.KindGraphChanged, doHandle
	case c.mb.n > 0:
		d := c.mb.pop()
		c.current = d
		if g.store == nil {
			c.mb.noteLoad(g)
		}
		return d, d.msg.kind, doHandle
	case !c.mb.waiting():
		return delivery{}, 0, doNothing
	}
	return delivery{}, 0, doRefill
}

// retire gives up a creature that is in no graph any more.
func (w *worker) retire(ctx context.Context, c *creature) {
	w.closeInstance(ctx, c)
	c.giveUp()
	w.rest()
}

// closeInstance closes a creature's instance, if it has one, in an orderly
// way. The creature is in the worker's hands.
func (w *worker) closeInstance(ctx context.Context, c *creature) {
	if c.instance != nil {
		stopInstance(ctx, &w.turn, c, c.instance)
		c.instance = nil
	}
}

// stopInstance runs creature_stop and closes the instance. Both may fail
// without consequence: nothing of the instance is used any more.
func stopInstance(ctx context.Context, t *turn, c *creature, instance abi.Instance) {
	t.begin(c, delivery{msg: bootMessage}, 0, true)
	err := instance.Stop(ctx, t)
	t.reset()
	if err = errors.Join(err, instance.Close(ctx)); err != nil {
		t.e.log.Debug("closing an instance", "creature", c.id, "error", err)
	}
}

// rest notes that a creature is not busy any more, and puts what it woke on
// the queue, but for one that the worker runs itself.
func (w *worker) rest() {
	if n := len(w.wake.list); n > 0 && w.next == nil {
		w.next = w.wake.list[n-1]
		w.wake.list = w.wake.list[:n-1]
	}
	w.wake.flush(w.e.queue)
	w.e.idle.add(-1)
}

// flush puts what was woken on the queue.
func (w *worker) flush() {
	if len(w.wake.list) > 0 {
		w.wake.flush(w.e.queue)
	}
}

// handle runs one turn and commits it or deals with its failure. It returns
// with the critical section of the creature's graph entered, or nil if the
// creature is gone.
func (w *worker) handle(ctx context.Context, c *creature, d delivery, kind abi.Kind) *graph {
	job := c.job
	g := w.handleTurn(ctx, c, d, kind)
	if job != nil {
		c.endJob(g, job)
	}
	return g
}

func (w *worker) handleTurn(ctx context.Context, c *creature, d delivery, kind abi.Kind) *graph {
	if err := c.loadState(ctx); err != nil {
		return w.postpone(ctx, c, d, err)
	}
	if c.conflicts >= maxConflicts {
		return w.handleAlone(ctx, c, d, kind)
	}
	if g, over := w.attempt(ctx, c, d, kind); over {
		return g
	}
	if err := w.awaitStore(ctx, c); err != nil {
		return w.postpone(ctx, c, d, err)
	}
	if w.turn.changesGraph() {
		w.e.mu.Lock()
		defer w.e.mu.Unlock()
		return w.commitChange(ctx, c, d)
	}
	return w.commit(ctx, c)
}

// attempt runs the guest and asks the policies about what it did. If that is the
// end of the turn, it returns as handle does.
func (w *worker) attempt(ctx context.Context, c *creature, d delivery, kind abi.Kind) (g *graph, over bool) {
	err := w.execute(ctx, c, d, kind)
	switch {
	case w.turn.tools != nil && w.turn.tools.conflict:
		return w.conflicted(ctx, c, d), true // whatever else the guest made of it
	case err != nil && ctx.Err() != nil:
		return w.postpone(ctx, c, d, err), true
	case c.job != nil && err != nil:
		return w.refuseJob(c), true
	case err != nil:
		return w.failed(ctx, c, d, kind, err), true
	}
	w.judge(ctx)
	if err := ctx.Err(); err != nil {
		return w.postpone(ctx, c, d, err), true // policies that are interrupted fail, which says nothing of the turn
	}
	return nil, false
}

// execute runs the guest. What it did is in w.turn.
func (w *worker) execute(ctx context.Context, c *creature, d delivery, kind abi.Kind) error {
	if c.job != nil {
		return w.callTool(c, d, c.job)
	}
	t := &w.turn
	if w.e.observed(EventTurnStarted) {
		w.e.publishTurnStarted(c, d)
	}
	err := w.call(ctx, c, d, kind)
	if t.late && ctx.Err() == nil {
		w.discard(ctx, c)
		t.reset()
		if !c.beholdAgain() {
			return nil // it is gone, which commit notices
		}
		err = w.call(ctx, c, d, kind)
	}
	if err == nil && (w.e.freshInstances || c.restart.Mode == RestartAlways) {
		w.discard(ctx, c)
	}
	return err
}

// call hands a delivery to the creature's instance, or to a new one.
func (w *worker) call(ctx context.Context, c *creature, d delivery, kind abi.Kind) error {
	t := &w.turn
	fresh := c.instance == nil
	if err := c.start(ctx, t); err != nil {
		return err
	}
	if fresh {
		w.noteInstance(c)
		t.reset()
	}
	t.begin(c, d, kind, false)
	t.wiring = c.facing
	err := c.instance.Handle(ctx, t, kind, len(d.msg.payload))
	t.fuel = c.instance.FuelUsed()
	w.work += max(t.fuel, 0) + sendWork*int64(len(t.sends))
	return err
}

// Of the real clock a worker asks once in a while: that costs as much as a tenth
// of a short turn.
const (
	wallTurns = 16     // turns that go by the same time, at most
	longTurn  = 20_000 // fuel, some ten microseconds' worth; what takes longer asks anew
)

// wallClock is the time, as the log has it, of what the worker does now.
func (w *worker) wallClock() int64 {
	fuel := w.turn.fuel
	if _, real := w.e.clock.(realClock); !real || w.wallTurns == 0 || fuel < 0 || fuel > longTurn {
		w.wall, w.wallTurns = w.e.wallClock(), wallTurns
	}
	w.wallTurns--
	return w.wall
}

// discard closes the instance without ceremony.
func (w *worker) discard(ctx context.Context, c *creature) {
	if c.instance == nil {
		return
	}
	if err := c.instance.Close(ctx); err != nil {
		w.e.log.Debug("closing an instance", "creature", c.id, "error", err)
	}
	c.instance = nil
}

// awaitStore waits until the log of the creature's graph has room for the
// turn's record.
func (w *worker) awaitStore(ctx context.Context, c *creature) error {
	for {
		g := c.home.lock()
		if g == nil {
			return nil // commit notices
		}
		store := g.store
		g.mu.Unlock()
		if store == nil {
			return nil
		}
		if err := store.Room(ctx); err == nil || ctx.Err() != nil || c.home.logsTo(store) {
			return err
		}
	}
}

// postpone puts a delivery back as if it had never been taken: the engine is
// closing, or something other than the guest failed. It returns as handle does.
func (w *worker) postpone(ctx context.Context, c *creature, d delivery, err error) *graph {
	c.portrait.wiring = nil // what the turn has noted is not in the log, it may be
	w.turn.reset()
	w.discard(ctx, c)
	g := c.home.lock()
	if g == nil {
		d.msg.release()
		return nil
	}
	c.current = delivery{}
	if d.src != nil {
		c.retry = &d
	}
	if c.job != nil {
		c.job.again = true
	}
	if ctx.Err() == nil {
		w.awaitRepair(c, err)
	}
	return g
}
