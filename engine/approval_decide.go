package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Decision answers the question of a policy.
type Decision = inspect.Decision

// Decided is an answer that has taken effect.
type Decided struct {
	inspect.Approval
	sent Sent
}

// Wait waits until the answer is as durable as the creature's graph promises.
func (d *Decided) Wait(ctx context.Context) error {
	if err := d.sent.wait(ctx); err != nil {
		return errtext.UnknownOutcome("approve", "the decision was accepted, but may be lost", "look at the approvals again", err)
	}
	return nil
}

// Approvals lists the questions of policies that turns wait for, by age within a graph: of
// the given graphs, by any id that they have had, or of all.
func (e *Engine) Approvals(graphs ...journal.GraphID) ([]inspect.Approval, error) {
	out := []inspect.Approval{}
	err := e.core.eachApproval(graphs, func(g section, c *creature, q *approval.Question) bool {
		if q.Row.Waits() {
			out = append(out, c.approvalStatus(g, q))
		}
		return false
	})
	return out, err
}

func (c *creature) approvalStatus(g section, q *approval.Question) inspect.Approval {
	out := inspect.Approval{ApprovalRow: q.Row, Creature: c.id, Name: c.name, Graph: g.id, Behind: c.mb.pending()}
	if c.retry == nil && c.current.msg == nil && !q.Row.Message.IsZero() && out.Behind > 0 {
		out.Behind-- // it has not been taken since the session was restored
	}
	return out
}

// eachApproval calls f for the questions about turns of creatures, inside the critical
// section of their graph, until f returns true.
func (e *core) eachApproval(graphs []journal.GraphID, f func(g section, c *creature, q *approval.Question) bool) error {
	l := e.rlock()
	defer l.runlock()
	var in []*graph
	for _, id := range graphs {
		g, err := l.present(id)
		if err != nil {
			return err
		}
		in = append(in, g)
	}
	if len(graphs) == 0 {
		in = l.sortedGraphs()
	}
	for _, graph := range in {
		if graph != nil && inGraph(graph, f) {
			return nil
		}
	}
	return nil
}

func inGraph(graph *graph, f func(g section, c *creature, q *approval.Question) bool) bool {
	g := graph.enterAt(graph.engine.wallClock())
	defer g.leave()
	for _, c := range g.sortedCreatures() {
		for _, q := range slices.Clone(c.approvals.All) {
			if f(g, c, q) {
				return true
			}
		}
	}
	return false
}

// Decide answers a question of a policy, in one of the given graphs or, without any, in all. When
// all questions about a turn are answered, the turn runs again, and what was approved takes effect
// with it. If the question was answered before, or its deadline has passed, the error is conflict.
func (e *Engine) Decide(id journal.EventID, d Decision, graphs ...journal.GraphID) (*Decided, error) {
	if err := approval.CheckDecision(d.By, d.Reason); err != nil {
		return nil, err
	}
	if e.core.isClosing() {
		return nil, errtext.Closed
	}
	var out *Decided
	var w waker
	found := errtext.Gone("approval", id.String())
	found.Remedy = "approvals lists those that wait"
	err := e.core.eachApproval(graphs, func(g section, c *creature, q *approval.Question) bool {
		if q.Row.ID != id {
			return false
		}
		if found = g.mayDecide(c, q, &w); found == nil {
			g.decide(&w, c, q, d.Decision(), d.By, d.Reason, false)
			out = &Decided{c.approvalStatus(g, q), Sent{ch: g.channels[journal.InboxOf(c.id)], store: g.store, upTo: g.seq}}
		}
		return true
	})
	w.flush(&e.core)
	if err == nil && found != nil {
		err = found
	}
	return out, err
}

// mayDecide returns an error if the question has been answered. A deadline that has passed
// answers it, even in an engine whose timers do not run.
func (g section) mayDecide(c *creature, q *approval.Question, w *waker) *abi.Error {
	if q.Row.Waits() && q.Row.Deadline <= g.wall {
		g.decide(w, c, q, q.Row.Otherwise(), "", approval.DeadlinePassed, true)
	}
	if q.Row.Waits() {
		return nil
	}
	return q.Conflict(c.id)
}

// decide answers a question, and lets the turn run again if it was the last one.
func (g section) decide(w *waker, c *creature, q *approval.Question, d journal.ApprovalDecision, by, because string, byDeadline bool) {
	g.engine.timers.Stop(q.Timer)
	q.Row.Decision, q.Row.By, q.Row.Because = d, by, because
	rec := g.newRecord()
	row := q.RowOf(c.next())
	g.log(rec, row.Decided(c.id, byDeadline))
	putApprovals(g, rec, c)
	c.charge(g, rec.Size())
	g.append(rec)
	if c.approvals.OpenBeside(q) {
		return
	}
	c.unpark(g.engine)
	c.wake(g, w)
}

// decideByDeadline answers a question whose time is over.
func (e *core) decideByDeadline(c *creature, q *approval.Question) {
	g := c.home.enterAt(e.wallClock())
	if g.none() {
		return
	}
	var w waker
	if !e.isClosing() && q.Row.Waits() && slices.Contains(c.approvals.All, q) {
		g.decide(&w, c, q, q.Row.Otherwise(), "", approval.DeadlinePassed, true)
	}
	g.leave()
	w.flush(e)
}
