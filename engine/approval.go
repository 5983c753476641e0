package engine

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A policy that asks makes the whole turn wait: nothing of it takes effect, and its
// delivery is put back as for a turn that conflicts with another. When all questions are
// answered, the turn runs again, and what a policy asks then is looked up among the
// answers. So an answer takes effect with the turn, exactly once, and the only thing to be
// kept is the question, which lies in the row of the creature.

// next is the message of the delivery that is put back, or nil.
func (c *creature) next() *message.Message {
	if c.retry == nil {
		return nil
	}
	return c.retry.msg
}

// firstApprovals are the creature's questions for the first record of a store.
func firstApprovals(x *change, c *creature) []journal.ApprovalRow {
	done := func(q *approval.Question) bool {
		for _, b := range x.burials {
			if b.mb.creature == c && b.unasked != nil && b.unasked(q) {
				return true
			}
		}
		t := x.turn
		return t != nil && t.c == c && t.d.msg != nil && q.IsAbout(t.d.msg, t.kind)
	}
	return c.approvals.FirstRows(c.next(), x.entry.ids, done)
}

// awaitDeadline sets the timer of a question.
func (g section) awaitDeadline(c *creature, q *approval.Question) {
	e := g.engine
	q.Timer = e.timers.At(time.Unix(0, q.Row.Deadline), func() { e.decideByDeadline(c, q) })
}

// putApprovals writes the creature's questions to its row.
func putApprovals(g section, rec *journal.Record, c *creature) {
	if rec == nil {
		return
	}
	rec.Creatures = append(rec.Creatures, c.row(g))
}

// parkWithRoom is park, once the store has room.
func (w *turnWorker) parkWithRoom(ctx context.Context, c *creature, d delivery, kind abi.Kind) section {
	if w.turn.alone == nil {
		if err := w.awaitStore(ctx, c); err != nil {
			return w.postpone(ctx, c, d, err)
		}
	}
	return w.park(ctx, c, d, kind)
}

// park makes a delivery wait until the questions about its turn are answered. It returns
// as handle does.
func (w *turnWorker) park(ctx context.Context, c *creature, d delivery, kind abi.Kind) section {
	asked := w.turn.asking.List
	w.turn.reset()
	w.e.discardInstance(ctx, c)
	g := c.home.enterAt(w.wallClock())
	if g.none() || c.removed {
		d.msg.Release()
		return g
	}
	c.current, c.conflicts = delivery{}, 0
	if d.feed != nil {
		c.retry = &d
	}
	g.noteAsked(c, d.msg, kind, asked)
	if d.feed == nil { // a start or a notice, which take makes again
		d.msg.Release()
	}
	if c.approvals.Parked {
		c.failJobs(g, approval.AwaitingApproval(c.id, c.name))
	}
	return g
}

// noteAsked logs the questions that a turn asks for the first time, and withdraws those
// that it no longer asks.
func (g section) noteAsked(c *creature, m *message.Message, kind abi.Kind, asked []approval.Asked) {
	own, rec := &c.approvals, g.newRecord()
	fresh, idle := own.Note(asked, m, kind, g.wall)
	for _, q := range fresh {
		q.Row.ID, q.Row.Time = g.nextID(), g.tick()
		own.All = append(own.All, q)
		g.log(rec, q.Asked(c.id))
		g.awaitDeadline(c, q)
	}
	for _, ev := range own.Withdrawals(c.id, approval.NotAskedAgain, idle) {
		g.log(rec, ev)
	}
	if own.Drop(g.engine.timers, idle) || len(fresh) > 0 {
		putApprovals(g, rec, c)
		c.charge(g, rec.Size())
		g.append(rec)
	}
}

// useApprovals forgets the questions about a delivery that has been dealt with.
func (c *creature) useApprovals(g section, rec *journal.Record, m *message.Message, kind abi.Kind) {
	if c.approvals.Drop(g.engine.timers, func(q *approval.Question) bool { return q.IsAbout(m, kind) }) {
		putApprovals(g, rec, c)
	}
}

// unpark lets the next turn of a creature run, unless it has to wait for a recipe.
func (c *creature) unpark(e *core) {
	c.approvals.Parked = c.approvals.Unjudged(func(deployment string) bool {
		_, applied := e.policies.Load(deployment)
		return applied
	})
}

// askAgain runs parked turns again, because what they ask may depend on policies that have
// changed.
func (e locked) askAgain() {
	var w waker
	for _, graph := range e.graphs {
		g := graph.enter()
		for _, c := range g.creatures {
			if c.approvals.Parked || len(c.approvals.All) > 0 {
				c.unpark(e.core)
				c.wake(g, &w)
			}
		}
		g.leave()
	}
	w.flush(e.core)
}

// toAnswer prepares the turn for the questions of policies. It reports whether the turn
// can wait: a call of a tool from outside cannot.
func (t *turn) toAnswer() bool {
	a := &t.asking
	if t.c.job != nil || a.Read {
		return t.c.job == nil
	}
	a.Read = true
	if g := t.c.home.enter(); !g.none() {
		defer g.leave()
		a.Known, a.Kept = t.c.approvals.Known(t.d.msg, t.kind), len(t.c.approvals.All)
		for _, c := range g.creatures {
			a.Open += c.approvals.Open()
		}
	}
	return true
}

// answerEvent answers the question of a policy about an operation that a call of a tool
// requests, with a denial or nil.
func (t *turn) answerEvent(ev *deploy.PolicyEvent, a deploy.Ask) *deploy.Verdict {
	if !t.toAnswer() {
		v := a.Denial()
		return &v
	}
	return t.asking.AnswerOnce(a, ev.Deployment, ev.SpawnedID(), ev.Question)
}

// answerCall answers the questions of policies about a call of a tool.
func (t *turn) answerCall(ev *deploy.PolicyEvent, said *deploy.Words) {
	switch {
	case len(said.Asks) == 0:
	case !t.toAnswer():
		said.DenyAsks()
	default:
		t.asking.AnswerEach(said, ev.Deployment, ev.Question)
	}
}

// answerSend answers the questions of policies about a message that they let through.
func (t *turn) answerSend(s *sendEffect, ev *deploy.SendEvent, d *deploy.SendDecision) {
	switch {
	case len(d.Asks) == 0 || d.Dropped != nil:
		return
	case !t.toAnswer():
		d.DenyAsks()
		return
	}
	payload, headers := ev.Payload, ev.Headers
	if d.Mutated {
		payload, headers = d.Payload, d.Headers
	}
	t.asking.AnswerEach(&d.Words, ev.Deployment, func(policy string, n int) deploy.Question {
		return ev.Question(policy, s.ch.id, payload, headers, n)
	})
}
