package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// failed deals with a turn that did not succeed: only its log lines are kept. It returns
// as handle does.
func (w *turnWorker) failed(ctx context.Context, c *creature, d delivery, kind abi.Kind, err error) section {
	t := &w.turn
	logs, fuel, notice := slices.Clone(t.Logs), t.fuel, t.notice()
	var calls []journal.NotedCall
	reached := slices.Clone(t.reached)
	if t.tools != nil {
		calls = t.tools.log
	}
	t.reset()
	w.e.discardInstance(ctx, c)
	wall := w.e.wallClock()
	w.wall = wall
	g, judged := w.enterFailed(ctx, wall, c, d, kind, err)
	if g.none() || c.removed {
		d.msg.Release()
		return g
	}
	c.current = delivery{}
	rec := g.newRecord()
	c.attempt++
	c.counters.Failures++
	c.counters.Burn(fuel)
	about := journal.Event{Creature: c.id, Attempt: c.attempt, Channel: d.msg.Channel, Seq: d.msg.Seq, Cause: d.msg.LogID()}
	g.logLines(rec, about, logs)
	failure := about
	failure.Kind = journal.EventTurnFailed
	payload := journal.TurnFailedPayload{
		Kind: journal.KindOfDelivery(kind), Fuel: max(fuel, 0), Code: abi.CodeOf(err).String(), Error: errtext.Clip(err.Error()), Awareness: notice,
	}
	if rec != nil {
		payload.Notes = c.inputNotes(g, c.facing, d, about.Cause).WithCalls(calls).WithReached(reached)
	}
	failure.Payload = journal.JSON(payload)
	g.log(rec, failure)
	judged.log(g, rec, about)

	ruling, intense := judged.ruling(), c.noteFailure(g, wall)
	switch {
	case ruling == deploy.RuleDrop, ruling == deploy.RuleNothing && c.attempt >= c.restart().Attempts:
		w.deadLetter(g, rec, c, d, kind, err, logs)
	default:
		c.retry = &d
	}
	switch {
	case ruling == deploy.RuleQuarantine, ruling == deploy.RuleNothing && intense:
		w.quarantine(g, rec, c, err)
	case c.retry != nil:
		g.backOff(c, c.restart().Pause(c.attempt, w.e.jitter))
	}
	c.charge(g, rec.Size())
	g.append(rec)
	return g
}

// deadLetter makes a delivery that its creature has failed for good a dead letter.
func (w *turnWorker) deadLetter(g section, rec *journal.Record, c *creature, d delivery, kind abi.Kind, err error, logs []effects.Line) {
	l := letterOf(&c.mb, d.msg, journal.DeadReason(abi.CodeOf(err).String()))
	l.Attempts, l.Error = c.attempt, errtext.Clip(err.Error())
	if n := len(logs); n > 0 {
		l.LastWords = logs[n-1].Text
	}
	g.log(rec, journal.Event{
		Kind: journal.EventCreatureFailed, Creature: c.id, Attempt: c.attempt, Channel: d.msg.Channel, Seq: d.msg.Seq, Cause: d.msg.LogID(),
		Payload: journal.JSON(journal.CreatureFailedPayload{Kind: journal.KindOfDelivery(kind), Code: string(l.Reason), Error: l.Error}),
	})
	if kind != abi.KindGraphChanged { // the awareness document can be read at any time
		g.deadLetter(rec, l)
	}
	w.answerFailed(g, rec, d.msg, answer{code: abi.CodeOf(err), text: l.Error, from: c})
	c.attempt, c.conflicts = 0, 0
	if c.noteDealt(g, kind) {
		putCreature(g, rec, c)
	}
	c.advance(rec, d)
	for _, ev := range c.approvals.Unused(c.id, d.msg, kind) {
		g.log(rec, ev)
	}
	c.useApprovals(g, rec, d.msg, kind)
	d.msg.Release()
}

// noteFailure counts a failure and reports whether there were more than the restart policy allows.
func (c *creature) noteFailure(_ section, now int64) (intense bool) {
	horizon := now - int64(c.restart().Within)
	c.attempts = append(slices.DeleteFunc(c.attempts, func(at int64) bool { return at < horizon }), now)
	return len(c.attempts) > c.restart().Max
}

// quarantine stops a creature and reports that to the graph: with an event and, if the
// creature may report to its root, with a message.
func (w *turnWorker) quarantine(g section, rec *journal.Record, c *creature, err error) {
	c.quarantined = true
	c.failJobs(g, errtext.NotRunning(string(c.id), c.name, "is quarantined"))
	c.attempts = nil
	g.reshape(&w.wake)
	if g.store == nil {
		c.mb.noteLoad(g)
	}
	why := journal.QuarantinedPayload{Kind: "quarantine", Code: abi.CodeOf(err).String(), Error: errtext.Clip(err.Error())}
	g.log(rec, journal.Event{Kind: journal.EventQuarantined, Creature: c.id, Payload: journal.JSON(why)})
	ch := c.wiring.Load().byAlias[deploy.ReportChannel]
	if ch == nil {
		return
	}
	headers, _ := journal.EncodeHeaders(map[string]string{message.HeaderReport: journal.EventQuarantined.String()})
	report := journal.JSON(struct {
		Event    string `json:"event"`
		Creature string `json:"creature"`
		Code     string `json:"code"`
		Error    string `json:"error"`
	}{journal.EventQuarantined.String(), c.name, why.Code, why.Error})
	m := g.newMessage(rec, report, headers)
	m.Kind, m.Sender, m.SenderName = abi.KindMessage, c.id, c.name
	g.sequence(ch, m)
	g.logMessage(rec, ch, m, journal.EventID{}, journal.EventID{})
	g.publish(ch, m, &w.wake, rec)
	m.Release()
}

// pause releases a creature for a while after a failure outside of its guest, such as
// reading its store.
func (w *turnWorker) pause(ctx context.Context, c *creature, err error) {
	g := c.home.enter()
	if g.none() {
		w.retire(ctx, c)
		return
	}
	if !c.runs(g) {
		g.leave()
		w.putBack(c) // to close its instance; a worker owns it until then
		return
	}
	w.awaitRepair(g, c, err)
	w.rest(g, c)
	g.leave()
}

// awaitRepair makes a creature wait for its store, longer each time, and reports that
// less and less often: a full disk affects many creatures, and may stay full for hours.
// The worker owns the creature.
func (w *turnWorker) awaitRepair(g section, c *creature, err error) {
	c.waits++
	if c.waits&(c.waits-1) == 0 {
		w.e.log.Warn("a creature waits for its store", "creature", c.id, "name", c.name, "tries", c.waits, "error", err)
	}
	g.backOff(c, deploy.DefaultRestart.Pause(c.waits, w.e.jitter))
}

// postpone puts a delivery back as if it had never been taken: the engine is closing, or
// something other than the guest failed. It returns as handle does.
func (w *turnWorker) postpone(ctx context.Context, c *creature, d delivery, err error) section {
	c.portrait.wiring = nil // the turn's notes may not be in the log
	w.turn.reset()
	w.e.discardInstance(ctx, c)
	g := c.home.enter()
	if g.none() {
		d.msg.Release()
		return g
	}
	c.current = delivery{}
	if d.feed != nil {
		c.retry = &d
	}
	if c.job != nil {
		c.job.again = true
	}
	if ctx.Err() == nil {
		w.awaitRepair(g, c, err)
	}
	return g
}
