package engine

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/internal/turnctx"
	"github.com/seed47132306/terrarium/engine/journal"
)

// callerTurn runs the turn of a request in the goroutine of its caller. It has its own
// turnWorker, which takes the place of a parked worker. Unlike other workers, it hands the
// creature over as soon as the caller would have to wait for anything other than this turn.
type callerTurn struct {
	worker  *turnWorker
	workers context.Context // of the other workers
	headers []byte          // memory for the headers of the request

	ctx      *turnctx.Context // of the turn
	request  journal.EventID
	into     []byte
	apart    bool // into is not the memory of the request's payload, which is still needed
	answered bool
	answer   callerAnswer
	later    chan callerAnswer // receives the answer if the turn has ended without one
}

// briefTurn is the most fuel of a turn that a caller may run: a few hundred microseconds. A
// turn is expected to use as much fuel as the creature's last turn.
const briefTurn = 1_000_000

// callerTurns has what callers need in order to run turns.
type callerTurns struct {
	pool   sync.Pool    // of *callerTurn
	lookAt atomic.Int64 // the time at which a worker must look at the heap again
}

// init prepares the turns of callers. workers is the context of the engine's workers.
func (p *callerTurns) init(e *core, workers context.Context) {
	p.lookAt.Store(timing.After(e.wallClock(), int64(lookAgain)))
	p.pool.New = func() any {
		t := &callerTurn{worker: newWorker(e, nil), workers: workers}
		w := t.worker
		w.quantum, w.streak, w.caller, w.turn.caller = 1, 0, t, t
		w.lookAt = math.MaxInt64 // a worker does
		return t
	}
}

// due reports, about once a second, that a worker must run the next turn, because workers
// look at the heap before a turn.
func (p *callerTurns) due(wall int64) bool {
	at := p.lookAt.Load()
	return wall >= at && p.lookAt.CompareAndSwap(at, timing.After(wall, int64(lookAgain)))
}

// requestHere makes a request and runs its turn, if the turn can begin at once. If the
// request has to go through the queue, it does nothing and returns false. Otherwise the call
// has its answer, or waits for it.
func (e *Engine) requestHere(ctx context.Context, to journal.CreatureID, out *Outgoing, call *Call) bool {
	if out.Producer != "" || out.Offset != 0 {
		return false
	}
	l := e.core.rlock()
	c := l.creatures[to]
	l.runlock()
	if c == nil || !e.core.queue.Borrow() {
		return false
	}
	t := e.callerTurns.pool.Get().(*callerTurn)
	wall := e.core.wallClock()
	var g section
	here := !e.callerTurns.due(wall)
	if here {
		g, here = t.begin(ctx, c, out, call, wall)
	}
	if here {
		t.run(c, g)
		call.request, call.reply, call.answered, call.answer = t.request, t.later, t.answered, t.answer
		if !t.answered {
			call.into = out.Into
		}
		t.ctx, t.into, t.answer, t.later = nil, nil, callerAnswer{}, nil
	}
	e.callerTurns.pool.Put(t)
	e.core.queue.Return()
	return here
}

// begin publishes the request if its turn can begin. It then returns the section of the graph.
func (t *callerTurn) begin(ctx context.Context, c *creature, out *Outgoing, call *Call, wall int64) (g section, here bool) {
	w := t.worker
	var err error
	if t.headers, err = message.RequestHeaders(t.headers[:0], out.Headers, call.deadline); err != nil || len(out.Payload)+len(t.headers) > deploy.MaxMessage {
		return section{}, false // the request will be refused
	}
	if g = c.home.enterAt(wall); g.none() {
		return g, false
	}
	s := c.mb.inbox()
	if !c.servesCaller(g) || s == nil || len(s.ch.feeds) != 1 || s.ch.policy.Load() != nil || w.e.isClosing() || w.heap.Suspects(c) {
		g.leave()
		return section{}, false
	}
	w.wall, w.wallTurns = wall, 1
	call.ch, call.until = s.ch, timing.After(wall, int64(call.deadline))
	m := message.NewBorrowed(out.Payload, t.headers)
	m.Kind = abi.KindRequest
	g.sequence(s.ch, m)
	t.request, t.into, t.apart, t.answered = m.ID, out.Into, !message.SameMemory(out.Into, out.Payload), false
	t.ctx = turnctx.New(t.workers, ctx, w.e.clock, call.until)
	g.logMessage(nil, s.ch, m, journal.EventID{}, journal.EventID{})
	g.publish(s.ch, m, &w.wake, nil)
	m.Release()
	w.wake.Last() // the creature itself
	w.wake.CountOwed(&w.e.idle)
	return g, true
}

// servesCaller reports whether the creature is idle and its next turn is likely to be short.
func (c *creature) servesCaller(g section) bool {
	if g.store != nil || g.over > 0 || c.scheduled || c.hold != nil { // it may have another owner
		return false
	}
	if c.judged(g) {
		return false
	}
	return c.brief && !c.usesTools && c.instance != nil && c.conflicts == 0 && c.runs(g) && !c.backingOff && !c.approvals.Parked && !c.hasWork(g)
}

// judged reports whether policies or predicates may judge the effects of the creature's turn.
// These do not end when the caller's context ends.
func (c *creature) judged(g section) bool {
	w := c.wiring.Load()
	if w.outlets != nil || slices.ContainsFunc(w.sends, func(s sendEdge) bool { return s.ch.policy.Load() != nil }) {
		return true
	}
	if c.deployment == "" {
		return false
	}
	policy, _ := g.engine.policies.Load(c.deployment)
	return policy != nil
}

// run runs the turn.
func (t *callerTurn) run(c *creature, g section) {
	w := t.worker
	if g = w.serveOne(t.workers, g, c); !g.none() {
		g.leave()
	}
	w.flush()
	w.wake.CountOwed(&w.e.idle)
	t.ctx.End()
}

// take stores the answer of the turn.
func (t *callerTurn) take(g section, a answer) {
	if t.worker.turn.replyHere && a.code == abi.OK {
		a.payload = t.into
	} else if t.into != nil {
		a.payload = append(t.into[:0], a.payload...)
	} else {
		a.payload = slices.Clone(a.payload)
	}
	t.answered, t.answer = true, answerFrom(g, a)
}

// part is called at the end of the turn, in the last critical section in which no other goroutine
// can handle the request. If the request has no answer yet, a worker will handle it.
func (t *callerTurn) part(g section, c *creature) {
	switch {
	case t.answered:
	case g.none() || c.removed:
		t.take(section{}, answer{code: abi.NotConnected, text: removedText})
	default:
		t.later = make(chan callerAnswer, 1)
		w := t.worker
		w.e.callers.Store(t.request, t.later)
		if c.retry != nil {
			c.retry.msg.Own()
		}
	}
}

// answerCaller passes an answer to the outside caller of a request.
func (t *turn) answerCaller(g section, request journal.EventID, a answer) {
	if x := t.caller; x != nil && x.request == request && !x.answered {
		x.take(g, a)
		return
	}
	t.e.answerCaller(g, request, a)
}

// handsOver ends a turn that is run by its caller, so that a worker runs it instead. It
// reports whether the turn is run by its caller.
func (t *turn) handsOver() bool {
	if t.caller == nil {
		return false
	}
	t.c.brief = false
	t.caller.ctx.Cancel()
	return true
}
