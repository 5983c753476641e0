package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/stopping"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ToolCall is a call of a group tool from outside that was started.
type ToolCall struct {
	e   *core
	c   *creature
	job *toolJob
}

// Tool calls a group tool on behalf of a creature, as a turn of its own without a delivery, and
// returns what the guest would get: the result as JSON, or the error. It waits until the turn is
// committed and as durable as its graph promises. If the creature does not run, or the engine is
// paused, the error is stopped. If ctx ends or the engine is closed first, or the store fails, it
// is unknown_outcome: the call may have been executed, or may still be.
func (e *Engine) Tool(ctx context.Context, caller journal.CreatureID, name string, args []byte) ([]byte, error) {
	call, err := e.StartTool(caller, name, args)
	if err != nil {
		return nil, err
	}
	return call.Wait(ctx)
}

// StartTool starts what [Engine.Tool] does, and returns at once. Calls on behalf of one
// creature are executed in the order in which they were started.
func (e *Engine) StartTool(caller journal.CreatureID, name string, args []byte) (*ToolCall, error) {
	l := e.core.rlock()
	c := l.creatures[caller]
	l.runlock()
	if c == nil {
		return nil, errtext.Gone("creature", string(caller))
	}
	job := &toolJob{name: name, args: args, msg: message.New(nil, nil), done: make(chan jobAnswer, 1)}
	job.msg.SenderName = e.core.ids.ID("t") // the ids of what it adds derive from this
	if err := e.post(c, job); err != nil {
		return nil, err
	}
	return &ToolCall{&e.core, c, job}, nil
}

// Wait returns the tool's result, once its turn is committed and durable. It must be called once.
func (t *ToolCall) Wait(ctx context.Context) ([]byte, error) {
	select {
	case a := <-t.job.done:
		return t.answered(ctx, a)
	case <-ctx.Done():
		return nil, t.unknown("the caller stopped waiting, and the call may have happened, or may still happen", context.Cause(ctx))
	case <-t.e.closing:
	}
	select { // the turn may have ended just before
	case a := <-t.job.done:
		return t.answered(ctx, a)
	default:
		return nil, t.unknown("the engine is closed, and the call may have happened", nil)
	}
}

// answered returns what the caller gets for an answer, once that is durable.
func (t *ToolCall) answered(ctx context.Context, a jobAnswer) ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	if err := (Sent{ch: t.e.inbox(t.c), store: a.store, upTo: a.seq}).wait(ctx); err != nil {
		return nil, t.unknown("the call was executed, but may be lost", err)
	}
	return a.result, nil
}

func (t *ToolCall) unknown(message string, cause error) error {
	return errtext.UnknownOutcome(t.job.name, message, "look at status or the history before calling it again", cause).With("caller", string(t.c.id))
}

func (e *core) inbox(c *creature) *channel {
	l := e.rlock()
	defer l.runlock()
	if ch := l.channels[journal.InboxOf(c.id)]; ch != nil {
		return ch
	}
	return &channel{} // it was removed meanwhile
}

// post gives a job to a creature.
func (e *Engine) post(c *creature, job *toolJob) error {
	g := c.home.enter()
	if g.none() {
		return errtext.Gone("creature", string(c.id))
	}
	if !c.runs(g) {
		defer g.leave()
		return stopping.NotRunning(c.id, c.name, "is "+string(c.stateName(g)), g.spent.Stops.Stopped(c.deployment))
	}
	if c.approvals.Parked {
		defer g.leave()
		return approval.AwaitingApproval(c.id, c.name)
	}
	if g.engine.paused {
		defer g.leave()
		return errtext.Paused(string(c.id))
	}
	var w waker
	job.msg.Time = e.core.wallClock()
	c.jobs = append(c.jobs, job)
	c.wake(g, &w)
	g.leave()
	w.flush(&e.core)
	return nil
}

// callTool runs a job in place of the guest.
func (w *turnWorker) callTool(ctx context.Context, c *creature, d delivery, job *toolJob) error {
	t := &w.turn
	t.begin(ctx, c, d, kindTool, false)
	t.fuel = -1
	result, code := t.Tool([]byte(job.name), job.args)
	job.result, job.err = result, nil
	if code != abi.OK {
		e := t.Fault.Error(job.name)
		job.err = e.With("caller", string(c.id))
	}
	return job.err
}

// refuseJob ends a turn whose tool call was refused. Only what policies have said about
// the call is logged. It returns as handle does.
func (w *turnWorker) refuseJob(c *creature) section {
	t, wall := &w.turn, w.wallClock()
	defer t.reset()
	g := c.home.enterAt(wall)
	if g.none() {
		return g
	}
	c.current, c.conflicts = delivery{}, 0
	if len(t.verdicts) > 0 {
		rec := g.newRecord()
		for _, v := range t.verdicts {
			g.logVerdict(rec, journal.Event{Creature: c.id}, v)
		}
		g.append(rec)
	}
	return g
}

// endJob answers the caller of a job, unless the job is to be run again.
func (c *creature) endJob(g section, job *toolJob) {
	c.job = nil
	switch {
	case g.none() || c.removed:
		job.done <- jobAnswer{err: errtext.Gone("creature", string(c.id))}
	case job.again:
		job.again = false
		c.jobs = slices.Insert(c.jobs, 0, job)
	default:
		job.done <- jobAnswer{job.result, job.err, g.store, g.seq}
	}
}

// failJobs answers the callers of jobs of a creature that is removed or stopped.
func (c *creature) failJobs(_ section, err error) {
	for _, job := range c.jobs {
		job.done <- jobAnswer{err: err}
	}
	c.jobs = nil
}
