package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/outlets"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A turn is committed in two steps. Write turns its effects into events, rows and messages with
// their places in the log. Land applies them in memory. A turn that does not change its graph does
// both in one critical section (commit). A turn that changes its graph does so as part of the
// change (see turnChange), which may have to write the turn before its environments are updated.

// commit applies a successful turn that does not change its graph. In one critical
// section, the turn gets its place in the log, its effects become visible, and its
// cursor advances. It returns that section, or none if the creature has been removed.
func (w *turnWorker) commit(ctx context.Context, c *creature) section {
	t := &w.turn
	wall := w.wallClock()
	g := c.home.enterAt(wall)
	for !g.none() && !t.recalled.Current(g.memory) {
		g.leave()
		w.judgeAgain(ctx)
		if err := ctx.Err(); err != nil {
			return w.postpone(ctx, c, t.d, err)
		}
		if t.asking.Waits {
			return w.park(ctx, c, t.d, t.kind)
		}
		g = c.home.enterAt(wall)
	}
	if g.none() || c.removed {
		t.d.msg.Release()
		t.reset()
		return g
	}
	if c.halted(g) || t.tools != nil && !t.tools.recalled.Current(g.memory) {
		g.leave()
		return w.conflicted(ctx, c, t.d)
	}
	c.current = delivery{}
	rec := g.newRecord()
	l := &w.log
	l.begin(g, rec)
	l.write()
	t.recalled.Keep(&g.memory, rec)
	if t.tools != nil {
		t.tools.recalled.Keep(&g.memory, rec)
	}
	l.land(g, rec, &w.wake)
	if g.engine.stops.Any() {
		g.judgeStop(rec, &w.wake, c.deployment, false, nil)
	}
	c.charge(g, rec.Size())
	g.append(rec)
	t.d.msg.Release()
	t.reset()
	return g
}

// write gives the effects of the turn their places, in the order of the log.
func (l *turnLog) write() {
	t := l.t
	l.id = l.next()
	if l.shown {
		l.end()
	}
	if len(t.c.approvals.All) > 0 {
		for _, ev := range t.c.approvals.Unused(t.c.id, t.d.msg, t.kind) {
			l.log(ev)
		}
	}
	for i := range t.sends {
		l.send(&t.sends[i])
	}
	if len(t.wired)+len(t.Writes)+len(t.Timers) > 0 {
		l.writeMore()
	}
	if t.kind == abi.KindRequest && t.d.msg.Sender != "" {
		l.reply()
	}
}

// writeMore writes the effects that few turns have.
func (l *turnLog) writeMore() {
	t := l.t
	for i := range t.wired {
		l.lead(&t.wired[i])
	}
	for i := range t.Writes {
		l.store(&t.Writes[i])
	}
	for i := range t.Timers {
		l.set(&t.Timers[i])
	}
}

// end logs the end of the turn, with its log lines, its output and verdicts.
func (l *turnLog) end() {
	t := l.t
	about := journal.Event{Creature: t.c.id, Turn: l.id, Attempt: t.c.attempt + 1, Cause: l.cause}
	if l.wants(journal.EventTurnEnded) {
		ev := about
		ev.ID, ev.Kind, ev.Channel, ev.Seq = l.id, journal.EventTurnEnded, t.d.msg.Channel, t.d.msg.Seq
		summary := l.summary()
		ev.Payload = summary.Encode()
		l.log(ev)
	}
	if l.wants(journal.EventLog) {
		for _, line := range t.Logs {
			l.log(line.Event(about))
		}
	}
	if t.HasOutput && l.wants(journal.EventOutput) {
		ev := about
		ev.Kind, ev.Payload = journal.EventOutput, slices.Clone(t.Put)
		l.log(ev)
	}
	if l.wants(journal.EventPolicyDenied) {
		for i := range t.verdicts {
			l.log(t.verdicts[i].Event(about))
		}
	}
}

// summary is the payload of the turn_ended event.
func (l *turnLog) summary() journal.TurnEndedPayload {
	t := l.t
	d := journal.TurnEndedPayload{Kind: journal.KindOfDelivery(t.kind), Sends: len(t.sends), Writes: len(t.Writes), Fuel: max(t.fuel, 0), Awareness: t.seen()}
	if t.tools != nil {
		d.Tools = t.tools.Len()
	}
	if t.kind == kindTool {
		d.Kind = "tool"
	}
	if l.rec != nil {
		d.Notes = t.notes(l.g, l.cause, l.astray())
	}
	return d
}

// send writes one send effect.
func (l *turnLog) send(s *sendEffect) {
	if s.reach != nil {
		l.reach(s)
		return
	}
	if s.left {
		l.denied++
		return
	}
	payload, headers := l.t.Bytes(s.payload), l.t.Bytes(s.headers)
	if s.mutated {
		payload, headers = s.mutatedPayload, s.mutatedHeaders
	}
	to := s.ch
	if l.moved || s.to != nil {
		to = l.target(s)
	}
	switch {
	case s.ask != nil:
		l.ask(s, to)
	case to == nil:
		l.bury(s.unsent(l.t.c, l.id, slices.Clone(payload), slices.Clone(headers)))
	default:
		l.sent++
		l.post(to, l.message(abi.KindMessage, payload, headers))
	}
}

// ask writes one request. A request without a recipient is answered at once.
func (l *turnLog) ask(s *sendEffect, to *channel) {
	row := journal.RequestRow{Creature: l.t.c.id, Tag: s.ask.tag, Deadline: timing.After(l.g.wall, int64(s.ask.deadline))}
	if to == nil {
		row.ID = l.id // it never gets an id of its own
		l.post(l.inbox(l.t.c), resultOf(&row, answer{code: abi.NotConnected, text: "the creature that was asked is no longer in this graph"}))
		return
	}
	headers, _ := journal.EncodeHeaders(map[string]string{message.HeaderDeadline: strconv.FormatInt(s.ask.deadline.Milliseconds(), 10)})
	m := message.New(slices.Clone(l.t.Bytes(s.payload)), headers)
	m.Kind, m.Sender, m.SenderName = abi.KindRequest, l.t.c.id, l.t.c.name
	l.sent++
	l.post(to, m)
	row.ID = m.ID
	l.asks = append(l.asks, &question{key: row.ID, row: row})
	if l.rec != nil {
		l.rec.Requests = append(l.rec.Requests, row)
	}
}

// lead writes one delivery over an output wire, unless the wire has been removed.
func (l *turnLog) lead(o *outlets.Delivery) {
	wire := &o.Outlet.OutputWire
	if l.unwired(wire.ID) {
		return
	}
	from, to := l.t.c, l.wireEnd(wire)
	if reason, text := o.Undeliverable(from.wireEnd(), to.wireEnd(), func() []string { return l.g.loop(from, to) }); text != "" {
		l.bury(letter{DeadLetterRow: o.Letter(from.id, to.wireEnd().ID, reason, text), turn: l.id, from: from})
		return
	}
	l.sent++
	l.post(l.inbox(to), l.message(abi.KindOutput, o.Payload, o.Headers))
}

// bury writes a dead letter.
func (l *turnLog) bury(d letter) {
	d.ID, d.Time = l.next(), l.tick()
	if l.wants(journal.EventDeadLetter) {
		l.log(d.event())
	}
	l.letters = append(l.letters, d)
	if l.rec != nil {
		l.rec.Letters = append(l.rec.Letters, d.DeadLetterRow)
	}
}

// store writes the turn's change of one key of the state.
func (l *turnLog) store(w *effects.Write) {
	if !l.wants(journal.EventState) {
		return
	}
	if l.rec != nil {
		l.rec.State = append(l.rec.State, journal.StateRow{Creature: l.t.c.id, Key: w.Key, Value: w.Value, Deleted: w.Deleted})
	}
	l.log(journal.Event{Kind: journal.EventState, Creature: l.t.c.id, Turn: l.id, Payload: w.Encode()})
}

// set writes the turn's change of a timer. Delays count from the commit: a creature
// that handles an old backlog sets its timers from the present, not the past.
func (l *turnLog) set(x *effects.Timer) {
	row, rec := journal.TimerRow{Creature: l.t.c.id, Name: x.Name}, l.rec
	if rec != nil && l.t.c.timers[x.Name] != nil {
		if l.ahead != nil { // a first record has the rows of the timers before the turn
			rec.Timers = slices.DeleteFunc(rec.Timers, func(r journal.TimerRow) bool { return r.Creature == row.Creature && r.Name == row.Name })
		}
		rec.Drop.Timers = append(rec.Drop.Timers, row)
	}
	if !x.Cancel {
		row.Due, row.Period, row.Payload = timing.After(l.g.wall, int64(x.Delay)), int64(x.Period), x.Payload
		if rec != nil {
			rec.Timers = append(rec.Timers, row)
		}
	}
	l.timers = append(l.timers, row)
}

// reply writes the answer to a request of a creature. Outside callers are answered
// when the turn lands.
func (l *turnLog) reply() {
	t, m := l.t, l.t.d.msg
	if l.asker, l.settled = l.question(m); l.settled == nil {
		if t.replied {
			l.bury(letter{turn: l.id, DeadLetterRow: journal.DeadLetterRow{
				Reason: journal.DeadNotConnected, Creature: m.Sender, Sender: l.t.c.id, Kind: journal.EventDirectMessage,
				Error: notWaiting, Payload: slices.Clone(t.givenReply()),
			}})
		}
		return
	}
	row := l.settled.row
	if a := l.ahead; a != nil {
		row.ID = cmp.Or(a.x.entry.ids[row.ID], row.ID)
		l.rec.Requests = slices.DeleteFunc(l.rec.Requests, func(r journal.RequestRow) bool { return r.ID == row.ID })
	}
	if l.rec != nil {
		l.rec.Drop.Requests = append(l.rec.Drop.Requests, row.ID)
	}
	l.post(l.inbox(l.asker), resultOf(&row, l.answer()))
}

// answer is the turn's answer to the request that it has handled.
func (l *turnLog) answer() answer {
	if t := l.t; t.replied {
		return answer{payload: t.givenReply(), from: l.t.c}
	}
	return answer{code: abi.Unavailable, text: l.t.c.name + " did not reply", from: l.t.c}
}

// land applies in memory what has been written, and adds the creature's cursor rows to a record.
func (l *turnLog) land(g section, rec *journal.Record, w *waker) {
	c, t := l.t.c, l.t
	c.waits, c.attempt, c.conflicts = 0, 0, 0
	c.counters.Turns++
	c.counters.Sent += l.sent
	c.counters.Burn(t.fuel)
	if g.engine.stops.Any() {
		g.count(rec, c, l.sent)
	}
	if c.noteDealt(g, t.kind) {
		putCreature(g, rec, c)
	}
	c.advance(rec, t.d)
	if len(c.approvals.All) > 0 {
		c.useApprovals(g, rec, t.d.msg, t.kind)
	}
	if l.ahead != nil {
		l.ahead.arrive(l.posts)
	}
	if l.hasMore() {
		l.landMore(g)
	}
	for i := range l.posts {
		p := &l.posts[i]
		g.publish(p.ch, p.m, w, rec)
		p.m.Release()
		*p = post{}
	}
	if t.kind == abi.KindRequest && t.d.msg.Sender == "" {
		t.answerCaller(g, t.d.msg.ID, l.answer())
	}
	l.posts, l.g, l.rec, l.ahead, l.sent = l.posts[:0], section{}, nil, nil, 0
}

// hasMore reports whether the turn has effects other than messages. Few turns do.
func (l *turnLog) hasMore() bool {
	return len(l.t.Writes)+len(l.letters)+len(l.timers)+len(l.asks)+l.denied > 0 || l.settled != nil
}

// landMore applies the effects that few turns have.
func (l *turnLog) landMore(g section) {
	c, t, e := l.t.c, l.t, g.engine
	for _, write := range t.Writes {
		if write.Deleted {
			c.state.Delete(write.Key)
		} else {
			c.state.Set(write.Key, write.Value)
		}
		c.stateSize = t.StateSize
	}
	c.counters.Denied += uint64(l.denied)
	for i := range l.letters {
		l.letters[i].count(e)
		if l.rec == nil {
			g.letters.Keep(l.letters[i].DeadLetterRow)
		}
	}
	for _, row := range l.timers {
		g.disarm(nil, c, row.Name)
		if row.Due != 0 {
			g.arm(c, row)
		}
	}
	if q := l.settled; q != nil {
		e.timers.Stop(q.timer)
		delete(l.asker.questions, q.key)
	}
	for _, q := range l.asks {
		g.noteRequest(c, q)
	}
	l.forgetMore()
}

// advance moves the cursor past a delivery that has been handled.
func (c *creature) advance(rec *journal.Record, d delivery) {
	s := d.feed
	if s == nil {
		return
	}
	s.cursor = max(s.cursor, d.msg.Seq)
	done := c.mb.settleFeed(s)
	putCursor(rec, c.reader(), s)
	if done {
		c.mb.dropFeed(s)
	}
}
