package engine

import (
	"context"
	"errors"
	"slices"
	"time"

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
	if t.tools != nil {
		calls = t.tools.log
	}
	t.reset()
	w.discard(ctx, c)
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
	c.counters.burn(fuel)
	about := journal.Event{Creature: c.id, Attempt: c.attempt, Channel: d.msg.Channel, Seq: d.msg.Seq, Cause: d.msg.LogID()}
	g.logLines(rec, about, logs)
	failure := about
	failure.Kind = journal.EventTurnFailed
	payload := journal.TurnFailedPayload{
		Kind: journal.KindOfDelivery(kind), Fuel: max(fuel, 0), Code: abi.CodeOf(err).String(), Error: errtext.Clip(err.Error()), Awareness: notice,
	}
	if rec != nil {
		payload.Notes = c.inputNotes(g, c.facing, d, about.Cause).WithCalls(calls)
	}
	failure.Payload = journal.JSON(payload)
	g.log(rec, failure)
	judged.log(g, rec, about)

	ruling, intense := judged.ruling(), c.noteFailure(g, wall)
	switch {
	case ruling == deploy.RuleDrop, ruling == deploy.RuleNothing && c.attempt >= c.restart.Attempts:
		w.deadLetter(g, rec, c, d, kind, err, logs)
	default:
		c.retry = &d
	}
	switch {
	case ruling == deploy.RuleQuarantine, ruling == deploy.RuleNothing && intense:
		w.quarantine(g, rec, c, err)
	case c.retry != nil:
		g.backOff(c, c.restart.Pause(c.attempt, w.e.jitter))
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
	d.msg.Release()
}

// noteFailure counts a failure and reports whether there were more than the restart
// policy allows.
func (c *creature) noteFailure(_ section, now int64) (intense bool) {
	horizon := now - int64(c.restart.Within)
	c.attempts = append(slices.DeleteFunc(c.attempts, func(at int64) bool { return at < horizon }), now)
	return len(c.attempts) > c.restart.Max
}

// quarantine stops a creature and reports that to the graph: with an event and, if the
// creature may report to its root, with a message.
func (w *turnWorker) quarantine(g section, rec *journal.Record, c *creature, err error) {
	c.quarantined = true
	c.failJobs(g, &abi.Error{Code: abi.Stopped, Op: "tool", Message: "the creature " + c.name + " is quarantined", Remedy: "start it first", IDs: map[string]string{"creature": string(c.id)}})
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
		c.owned = false
		g.leave()
		w.putBack(c) // to close its instance
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

// refill reads the next deliveries of a creature from the store into its
// mailbox.
func (w *turnWorker) refill(ctx context.Context, c *creature) error {
	return refillMailbox(ctx, &c.mb, &c.home)
}

// backlog is the part of one feed of a mailbox that waits in the store.
type backlog struct {
	feed   *feed
	from   uint64
	end    uint64
	events []journal.Event
	whole  bool // events reach end
	broken bool // what follows events, or all of it, is missing
}

// refillMailbox reads the next deliveries of a lagging mailbox from the store. It reads
// outside of the critical section; if the graph was cut meanwhile, or the mailbox
// changed, it discards what it has read, and the next call reads again.
func refillMailbox(ctx context.Context, mb *mailbox, home *graphPointer) error {
	g := home.enter()
	if g.none() {
		return nil
	}
	if !mb.lagging || mb.n > 0 || g.store == nil {
		g.leave()
		return nil
	}
	store, logs := g.store, mb.backlogs()
	limit, bytes := max(16, mb.bound/max(1, len(logs))), max(1, windowBytes/int64(max(1, len(logs))))
	g.leave()

	for i := range logs {
		b := &logs[i]
		events, err := store.Messages(ctx, b.feed.id, b.from, b.end, limit, bytes)
		if err != nil {
			if ctx.Err() == nil && !home.logsTo(store) {
				return nil
			}
			return err
		}
		n := len(events)
		b.events, b.whole = events, n == 0 || events[n-1].Seq >= b.end
	}
	missing := store.Missing()
	if mb.creature != nil && missing != nil {
		for i := range logs {
			logs[i].breakOff()
		}
	}
	again := home.enter()
	if again.none() {
		return nil
	}
	if again != g || again.store != store {
		again.leave()
		return nil
	}
	lost := mb.putRead(again, logs)
	again.leave()
	g.engine.reportLost(lost, missing)
	return nil
}

// backlogs lists the feeds with deliveries that wait in the store.
func (mb *mailbox) backlogs() []backlog {
	var out []backlog
	for _, s := range mb.feeds {
		if end := s.lastMessage(); end > s.offered {
			out = append(out, backlog{feed: s, from: s.offered, end: end})
		}
	}
	return out
}

// putRead puts what was read into the window, in the order of the log. A feed that was
// not read to its end is known only in part, so nothing later than its last known message
// can be taken yet. It returns the feeds that turn out to be lost.
func (mb *mailbox) putRead(g section, logs []backlog) []*feed {
	logs = slices.DeleteFunc(logs, func(b backlog) bool {
		return b.feed.offered != b.from || !slices.Contains(mb.feeds, b.feed)
	})
	lost := mb.markLost(g, logs)
	for i := range logs {
		if b := &logs[i]; b.whole && len(b.events) == 0 {
			b.feed.offered = b.end // no promised message is left
		}
	}
	for {
		b := earliest(logs)
		if b == nil {
			break
		}
		mb.takeEvent(g, b.feed, &b.events[0])
		if b.events = b.events[1:]; len(b.events) == 0 && !b.whole {
			break
		}
	}
	mb.lagging = false
	for _, s := range mb.feeds {
		if s.lastMessage() > s.offered && !s.lost {
			mb.lagging = true
		}
	}
	for _, s := range slices.Clone(mb.feeds) {
		if mb.settleFeed(s) {
			mb.dropFeed(s)
		}
	}
	return lost
}

// earliest returns the log whose next message is the oldest, or nil if all are read.
// Comparing only the next messages keeps the order of every channel, even if the clock
// has been set back.
func earliest(logs []backlog) *backlog {
	var found *backlog
	for i := range logs {
		b := &logs[i]
		if len(b.events) > 0 && (found == nil || b.events[0].Time < found.events[0].Time) {
			found = b
		}
	}
	return found
}

// takeEvent puts a message that was read from the store into the window.
func (mb *mailbox) takeEvent(g section, s *feed, ev *journal.Event) {
	if mb.creature != nil && ev.Creature == mb.creature.id && !journal.IsInbox(s.id) {
		s.offered = ev.Seq // a sender never hears itself
		if mb.n == 0 {
			s.cursor = max(s.cursor, ev.Seq)
		}
		return
	}
	m := message.New(ev.Payload, ev.Headers)
	m.ID, m.Time, m.Channel, m.Seq, m.Sender = ev.ID, ev.Time, ev.Channel, ev.Seq, ev.Creature
	m.Kind = message.KindOf(ev.Kind)
	m.SenderName = g.senderName(ev.Creature)
	mb.push(s, m)
	m.Release()
}

// senderName is the current name of a sender, if it is still in the graph.
func (g section) senderName(id journal.CreatureID) string {
	if id == "" {
		return ""
	}
	if c := g.creatures[id]; c != nil {
		return c.name
	}
	return string(id)
}

// isCanceled reports whether err only says that a context ended.
func isCanceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// backOff keeps a creature from running for a while.
func (g section) backOff(c *creature, d time.Duration) {
	e := g.engine
	c.backingOff = true
	e.idle.Add(1) // a pending retry is not idle
	e.timers.After(d, func() {
		g := c.home.enter()
		if g.none() {
			return // the removal has already adjusted the count
		}
		var w waker
		if c.backingOff {
			c.backingOff = false
			c.wake(g, &w)
			e.idle.Add(-1)
		}
		g.leave()
		w.flush(e)
	})
}
