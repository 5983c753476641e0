package engine

import (
	"context"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// quantumWork is how much work of one creature a worker does before it checks whether
// other creatures wait, in fuel: some hundred microseconds' worth.
const quantumWork = 500_000

// todo says what a creature has to do next.
type todo uint8

const (
	doNothing todo = iota
	doHandle       // a delivery
	doRefill       // read the store
)

// run works until the queue is closed. When it returns, it owns no creature.
func (w *turnWorker) run(ctx context.Context) {
	lane := w.wake.Lane
	for c := w.e.queue.Pop(lane); c != nil; c = w.e.queue.Pop(lane) {
		w.wallTurns = 0
		w.serve(ctx, c)
	}
}

// serve serves one creature after another until none is left. A turn is committed in the critical
// section in which the next delivery is taken, even if that is for another creature of the same
// graph: leaving and entering it costs more than most of what is done in it.
func (w *turnWorker) serve(ctx context.Context, c *creature) {
	g := c.home.enter()
	for c != nil {
		g = w.serveOne(ctx, g, c)
		c, g = w.goOn(g)
	}
}

// goOn chooses the next creature and enters the critical section of its graph, which may
// be the one of the previous creature.
func (w *turnWorker) goOn(g section) (*creature, section) {
	c := w.choose()
	if c != nil && c.home.load() == g.graph {
		return c, g
	}
	if !g.none() {
		g.leave()
	}
	w.flush()
	if c == nil {
		w.wake.CountOwed(&w.e.idle)
		return nil, section{}
	}
	return c, c.home.enter()
}

// choose takes the creature that the worker woke last, whose message is still in the
// cache, or after a while the one that has waited longest.
func (w *turnWorker) choose() *creature {
	if w.streak == 0 {
		return nil
	}
	w.wake.Lane.Chose()
	if w.own < w.streak && !w.e.isClosing() {
		if c := w.wake.Last(); c != nil {
			w.own++
			return c
		}
	}
	w.own = 0
	return w.e.queue.Next(w.wake.Lane)
}

// serveOne handles deliveries of a creature until there are none or its quantum is used
// up. The creature is scheduled when serveOne is called, and either on the queue or not
// scheduled when it returns. Before and afterwards the worker is in the section of its
// graph, or in none if the creature was removed or the worker has put it back.
func (w *turnWorker) serveOne(ctx context.Context, g section, c *creature) section {
	if c.hold != nil && !c.owned {
		// The holder wakes it or, if it was removed, closes its instance.
		c.scheduled = false
		w.wake.Owed--
		return g
	}
	c.owned = true
	w.work = 0
	for n := 0; !g.none(); n++ {
		stays := w.caller != nil && n > 0 && c.instance != nil && c.cold(g)
		if stays || c.hasWork(g) && (n >= w.quantum || w.work >= quantumWork || w.e.isClosing()) {
			c.owned = stays // a worker closes its instance first, held or not
			g.leave()
			w.putBack(c)
			return section{}
		}
		d, kind, what := c.chooseNext(g)
		switch {
		case what == doHandle:
			c.behold(g)
			w.store = g.store
			g.leave()
			w.flush()
			g = w.handle(ctx, c, d, kind)
		case what == doRefill:
			g.leave()
			w.flush()
			if err := w.refill(ctx, c); err != nil {
				w.pause(ctx, c, err)
				return section{}
			}
			g = c.home.enter()
		case c.instance != nil && c.cold(g):
			// The worker owns the creature until its instance is closed: if it is started
			// again meanwhile, it must not run beside that instance.
			g.leave()
			w.flush()
			w.turn.stop(ctx, c)
			g = c.home.enter()
		default:
			w.rest(g, c)
			return g
		}
	}
	if w.caller != nil {
		w.putBack(c) // for a worker to retire it, which owns it until then
		return section{}
	}
	w.retire(ctx, c)
	return section{}
}

// chooseNext decides what the creature does next.
func (c *creature) chooseNext(g section) (delivery, abi.Kind, todo) {
	switch {
	case !c.hasWork(g):
		return delivery{}, 0, doNothing
	case c.retry != nil:
		d := *c.retry
		c.retry = nil
		c.current = d
		return d, d.msg.Kind, doHandle
	case !c.started:
		m := message.New(nil, nil)
		m.Kind, m.Time = abi.KindStart, g.tick()
		return delivery{msg: m}, abi.KindStart, doHandle
	case len(c.jobs) > 0:
		c.job, c.jobs = c.jobs[0], c.jobs[1:]
		return delivery{msg: c.job.msg}, kindTool, doHandle
	case c.hasNews(g):
		return c.changeNotice(g), abi.KindGraphChanged, doHandle
	case c.mb.window.Len() > 0:
		d := c.mb.pop()
		c.current = d
		if g.store == nil {
			c.mb.noteLoad(g)
		}
		return d, d.msg.Kind, doHandle
	case !c.mb.waiting():
		return delivery{}, 0, doNothing
	}
	return delivery{}, 0, doRefill
}

// retire releases a creature that is no longer in a graph.
func (w *turnWorker) retire(ctx context.Context, c *creature) {
	w.turn.stop(ctx, c)
	w.rest(section{}, c)
}

// handle runs one turn and commits it or deals with its failure. It returns the section
// of the creature's graph, or none if the creature was removed.
func (w *turnWorker) handle(ctx context.Context, c *creature, d delivery, kind abi.Kind) section {
	if w.wall >= w.lookAt {
		w.lookAtHeap(ctx)
	}
	if w.caller != nil {
		ctx = w.caller.ctx
	}
	job := c.job
	g := w.handleTurn(ctx, c, d, kind)
	if w.caller != nil {
		w.caller.part(g, c)
	}
	if job != nil {
		c.endJob(g, job)
	}
	if !g.none() {
		w.throttle(g, c)
	}
	return g
}

func (w *turnWorker) handleTurn(ctx context.Context, c *creature, d delivery, kind abi.Kind) section {
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
		l := w.e.lock()
		defer l.unlock()
		return w.commitChange(ctx, l, c, d)
	}
	return w.commit(ctx, c)
}

// attempt runs the guest and asks the policies about its effects. If that ends the turn,
// it returns as handle does.
func (w *turnWorker) attempt(ctx context.Context, c *creature, d delivery, kind abi.Kind) (g section, over bool) {
	err := w.execute(ctx, c, d, kind)
	switch {
	case w.turn.tools != nil && w.turn.tools.conflict:
		return w.conflicted(ctx, c, d), true // whatever the result of the guest
	case err != nil && ctx.Err() != nil:
		return w.postpone(ctx, c, d, err), true
	case w.turn.asking.Waits:
		return w.parkWithRoom(ctx, c, d, kind), true // whatever the result of the guest
	case err != nil && w.turn.alone == nil: // what remains of a failed turn is stored, too
		if err := w.awaitStore(ctx, c); err != nil {
			return w.postpone(ctx, c, d, err), true
		}
	}
	switch {
	case c.job != nil && err != nil:
		return w.refuseJob(c), true
	case err != nil:
		return w.failed(ctx, c, d, kind, err), true
	}
	w.judge(ctx)
	if err := ctx.Err(); err != nil {
		return w.postpone(ctx, c, d, err), true // interrupted policies fail, which says nothing about the turn
	}
	if w.turn.asking.Waits {
		return w.parkWithRoom(ctx, c, d, kind), true
	}
	return section{}, false
}

// execute runs the guest. The effects are in w.turn.
func (w *turnWorker) execute(ctx context.Context, c *creature, d delivery, kind abi.Kind) error {
	if c.job != nil {
		return w.callTool(ctx, c, d, c.job)
	}
	t := &w.turn
	if o := &w.e.observers; o.Times() || o.Wants(journal.EventTurnStarted) {
		w.e.publishTurnStarted(c, d)
		w.wallTurns = 0 // the turn must not end before that
	}
	err := w.call(ctx, c, d, kind)
	if t.late && ctx.Err() == nil {
		w.e.discardInstance(ctx, c)
		t.reset()
		if !c.beholdAgain() {
			return nil // it was removed, which commit notices
		}
		err = w.call(ctx, c, d, kind)
	}
	if err == nil && (w.e.freshInstances || c.spec.Restart.Mode == deploy.RestartAlways) {
		w.e.discardInstance(ctx, c)
	}
	return err
}

// call passes a delivery to the creature's instance, or to a new one.
func (w *turnWorker) call(ctx context.Context, c *creature, d delivery, kind abi.Kind) error {
	t := &w.turn
	if w.heap.Suspects(c) {
		w.trySuspect(ctx, c)
	}
	fresh, woken := c.instance == nil, c.asleep && c.attempt == 0
	if err := t.start(ctx, c); err != nil {
		return err
	}
	if fresh {
		if !woken {
			w.noteInstance(c)
		}
		t.reset()
	}
	t.begin(ctx, c, d, kind, false)
	t.wiring = c.facing
	err := c.veil.Error(handleIn(ctx, c.instance, t, kind, len(d.msg.Payload)))
	t.fuel = c.instance.FuelUsed()
	c.brief = 0 <= t.fuel && t.fuel <= briefTurn && t.tools == nil
	w.work += max(t.fuel, 0) + sendWork*int64(len(t.sends))
	return err
}

// handleIn calls the guest. A host that panics fails the turn: in the goroutine of a caller,
// which may recover, the creature and the worker's place would be lost otherwise.
func handleIn(ctx context.Context, in abi.Instance, t *turn, kind abi.Kind, size int) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			err = &abi.Error{Code: abi.Internal, Op: "handle", Message: fmt.Sprintf("the host panicked: %v", p), Remedy: "report it, with the module"}
		}
	}()
	err = in.Handle(ctx, t, kind, size)
	returned = true
	return err
}
