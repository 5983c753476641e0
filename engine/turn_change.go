package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// maxConflicts is how often a turn may meet other changes of its graph before it is
// run while nobody else can make one.
const maxConflicts = 3

// changesGraph reports whether the turn has operations on the graph to carry out.
func (t *turn) changesGraph() bool { return t.tools != nil && len(t.tools.ops) > 0 }

// handleAlone is handle with the mutation lock held, so that the topology stays as
// the turn sees it. The guest is bounded by its limits, and what is waited for the
// store is waited for before.
func (w *worker) handleAlone(ctx context.Context, c *creature, d delivery, kind abi.Kind) *graph {
	if err := w.awaitStore(ctx, c); err != nil {
		return w.postpone(ctx, c, d, err)
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.turn.alone = true
	defer func() { w.turn.alone = false }()
	if g, over := w.attempt(ctx, c, d, kind); over {
		return g
	}
	if w.turn.changesGraph() {
		return w.commitChange(ctx, c, d)
	}
	return w.commit(ctx, c)
}

// commitChange commits a turn together with what it does to the graph: either all
// of it happens, or the turn is run again. The caller holds the mutation lock. It
// returns as commit does.
func (w *worker) commitChange(ctx context.Context, c *creature, d delivery) *graph {
	t := &w.turn
	if g := c.home.load(); g == nil || c.removed {
		return w.commit(ctx, c) // which notices
	}
	s := t.newStaging()
	if err := s.replay(t.tools.ops); err != nil {
		s.x.undo()
		if t.alone && abi.CodeOf(err) == abi.Denied {
			s.x.logRefusals()
			return w.failed(ctx, c, d, t.kind, err) // to run it again would not help
		}
		return w.conflicted(ctx, c, d)
	}
	s.x.turn = &turnChange{w: w, c: c, d: d}
	switch err := s.x.carryOut(ctx); {
	case errors.Is(err, errForgotten):
		return w.conflicted(ctx, c, d)
	case err != nil:
		return w.postpone(ctx, c, d, err)
	}
	d.msg.release()
	t.reset()
	return c.home.lock() // nobody can remove it meanwhile: the caller holds the lock
}

// conflicted has a turn run again whose graph has changed under it. Nothing of it
// remains. It returns as handle does.
func (w *worker) conflicted(ctx context.Context, c *creature, d delivery) *graph {
	w.turn.reset()
	w.discard(ctx, c)
	g := c.home.lock()
	if g == nil || c.removed {
		d.msg.release()
		return g
	}
	c.current = delivery{}
	c.conflicts++
	c.counters.Conflicts++
	switch {
	case c.job != nil:
		c.job.again = true
	case d.src != nil:
		c.retry = &d
	default: // a start, which take makes anew
		d.msg.release()
	}
	return g
}

// turnChange is the turn that makes a change. What it does besides is logged in the
// same record as the change or, if that cuts stores, in the first record of the one
// in which its creature is then: so a crash leaves both or neither. The graph
// operations come first: what the turn sends reaches those whom it has added.
//
// The methods do nothing on nil.
type turnChange struct {
	w      *worker
	c      *creature
	d      delivery
	cursor uint64 // of d's source, before the turn
	fresh  bool   // the creature's start had not been handled
	log    *turnLog
}

// cause is the message that the turn handles, as the log has it; none if there is no
// turn, or the delivery is of no log.
func (tc *turnChange) cause(x *change) journal.EventID {
	if tc == nil {
		return journal.EventID{}
	}
	return cmp.Or(x.entry.ids[tc.d.msg.id], tc.d.msg.logID())
}

// advance counts the delivery as dealt with, before stores are cut: their first
// records have it so.
func (tc *turnChange) advance() {
	if tc == nil {
		return
	}
	c, s := tc.c, tc.d.src
	c.current = delivery{}
	if s != nil {
		tc.cursor, s.cursor = s.cursor, max(s.cursor, tc.d.msg.seq)
	}
	if tc.w.turn.kind == abi.KindStart && !c.started {
		c.started, tc.fresh = true, true
	}
}

// goBack undoes advance.
func (tc *turnChange) goBack() {
	if tc == nil {
		return
	}
	if s := tc.d.src; s != nil {
		tc.c.current, s.cursor = tc.d, tc.cursor
	}
	if tc.fresh {
		tc.c.started = false
	}
}

// logFirst logs the turn in the first record of the store that its creature's graph
// gets, before the environments follow.
func (tc *turnChange) logFirst(x *change, rec *journal.Record, id journal.GraphID, origin journal.Origin) {
	if tc == nil || x.e.topo.GraphOf(tc.c.id) != id {
		return
	}
	tc.log = tc.write(x, rec, id, x.tick, func() journal.EventID { return journal.EventID{Origin: origin, Seq: uint64(len(rec.Events) + 1)} })
}

// announce shows observers what a first record has of the turn: they see the order
// of the log.
func (tc *turnChange) announce(x *change, plan *storePlan) {
	if tc == nil || tc.log == nil {
		return
	}
	for i := range tc.log.events {
		x.show(plan, &tc.log.events[i])
	}
}

// land carries out what the turn does besides, when the environments have followed.
func (tc *turnChange) land(x *change) {
	if tc == nil {
		return
	}
	c, t := tc.c, &tc.w.turn
	g := c.home.load()
	var rec *journal.Record // of rows that a first record has already
	if tc.log == nil {
		rec = x.record(g)
		tc.log = tc.write(x, rec, g.id, g.tick, g.nextID)
		for i := range tc.log.events {
			x.e.publish(&tc.log.events[i], g.keeper(rec))
		}
	}
	c.succeed(t, rec)
	if s := tc.d.src; s != nil && slices.Contains(c.mb.sources, s) {
		tc.w.advance(g, rec, c, tc.d)
	}
	if tc.fresh {
		putCreature(rec, c)
	}
	c.remember(t)
	tc.log.land(x, g)
	c.charge(g, tc.log.size(len(t.tools.ops)))
	for _, op := range t.tools.ops {
		if add, ok := op.groupOp.(*addNode); ok {
			add.c = nil // it lives
		}
	}
}

// turnLog is what a turn leaves in the log, and what follows from that in memory.
type turnLog struct {
	x     *change
	tc    *turnChange
	graph journal.GraphID
	rec   *journal.Record // nil where there is no log
	next  func() journal.EventID
	tick  func() int64
	turn  journal.EventID // the turn_ended event
	cause journal.EventID

	heads   map[journal.ChannelID]uint64
	events  []journal.Event // in order
	posts   []*message
	letters []letter
	asks    []journal.RequestRow
	timers  []journal.TimerRow // to be set; cancelled ones have no due time
	settled *question          // that the turn has answered
	denied  int
}

// write logs the turn as it is when the change has been made.
func (tc *turnChange) write(x *change, rec *journal.Record, id journal.GraphID, tick func() int64, next func() journal.EventID) *turnLog {
	t, c := &tc.w.turn, tc.c
	l := &turnLog{x: x, tc: tc, graph: id, rec: rec, next: next, tick: tick, heads: map[journal.ChannelID]uint64{}}
	l.cause = tc.cause(x)
	l.turn = next()
	about := journal.Event{Creature: c.id, Turn: l.turn, Attempt: c.attempt + 1, Cause: l.cause}
	ended := about
	ended.ID, ended.Kind, ended.Channel, ended.Seq, ended.Payload = l.turn, journal.EventTurnEnded, tc.d.msg.channel, tc.d.msg.seq, journal.JSON(t.summary(l.cause, rec != nil))
	l.log(ended)
	for _, line := range t.logs {
		l.log(line.event(about))
	}
	if t.hasOutput {
		l.log(t.outputEvent(about))
	}
	for i := range t.verdicts {
		l.log(t.verdicts[i].event(about))
	}
	for i := range t.sends {
		l.send(&t.sends[i])
	}
	for i := range t.wired {
		l.lead(&t.wired[i])
	}
	for _, write := range t.writes {
		if rec != nil {
			rec.State = append(rec.State, journal.StateRow{Creature: c.id, Key: write.key, Value: write.value, Deleted: write.deleted})
		}
		l.log(journal.Event{Kind: journal.EventState, Creature: c.id, Turn: l.turn, Payload: encodeStateWrite(write)})
	}
	l.setTimers()
	l.reply()
	return l
}

// log adds an event.
func (l *turnLog) log(ev journal.Event) {
	ev.Graph = l.graph
	if ev.ID.IsZero() {
		ev.ID = l.next()
	}
	ev.Time = cmp.Or(ev.Time, l.tick())
	l.events = append(l.events, ev)
	if l.rec != nil {
		l.rec.Events = append(l.rec.Events, ev)
	}
}

// post gives a message its place in a channel.
func (l *turnLog) post(id journal.ChannelID, m *message) {
	head, known := l.heads[id]
	if ch := l.x.channel(id); !known && ch != nil {
		head = ch.head
	}
	head++
	l.heads[id] = head
	m.channel, m.seq, m.id, m.time = id, head, l.next(), l.tick()
	ev := m.event(l.graph)
	ev.Turn, ev.Cause = l.turn, l.cause
	l.log(ev)
	l.posts = append(l.posts, m)
	if l.rec != nil {
		l.rec.Heads = append(l.rec.Heads, journal.HeadRow{Channel: id, Seq: head})
	}
}

// send carries out one send.
func (l *turnLog) send(s *sendEffect) {
	t, c := &l.tc.w.turn, l.tc.c
	if s.left {
		l.denied++
		return
	}
	payload, headers := slices.Clone(t.bytes(s.payload)), slices.Clone(t.bytes(s.headers))
	if s.mutated {
		payload, headers = s.mutatedPayload, s.mutatedHeaders
	}
	to := l.target(s)
	m := newMessage(payload, headers)
	m.kind, m.sender, m.senderName = abi.KindMessage, c.id, c.name
	switch {
	case s.ask != nil:
		l.ask(s, to, m)
	case to == "":
		l.bury(s.unsent(c, l.turn, payload, headers))
	default:
		l.post(to, m)
	}
}

// lead carries out one delivery over an output wire, unless the wire has gone.
func (l *turnLog) lead(o *wiredOutput) {
	c, wire := l.tc.c, &o.outlet.OutputWire
	if wireWithID(l.x.wiresOf(c), wire.ID) < 0 {
		return
	}
	to := l.wireEnd(wire)
	if reason, text := c.home.load().undeliverable(c, to, o); text != "" {
		l.bury(letter{DeadLetterRow: o.letter(c, to, reason, text), turn: l.turn, from: c})
		return
	}
	m := newMessage(slices.Clone(o.payload), o.headers)
	m.kind, m.sender, m.senderName = abi.KindOutput, c.id, c.name
	l.post(journal.InboxOf(to.id), m)
}

// wireEnd is where a wire leads when the change has been made; nil: nowhere.
func (l *turnLog) wireEnd(wire *journal.OutputWire) *creature {
	if wire.To != journal.ToRoot {
		if l.x.e.topo.GraphOf(wire.To) != l.graph {
			return nil
		}
		return l.x.creature(wire.To)
	}
	info, _ := l.x.e.topo.Graph(l.graph)
	for _, id := range info.Creatures { // eldest first
		t, _ := l.x.e.topo.Creature(id)
		if cr := l.x.creature(id); t.Root && (l.tc.c.deployment == "" || cr.deployment == l.tc.c.deployment) {
			return cr
		}
	}
	return nil
}

// target is the channel of a send when the change has been made; "" if there is none.
func (l *turnLog) target(s *sendEffect) journal.ChannelID {
	if s.to != nil {
		if l.x.e.topo.GraphOf(s.to.id) != l.graph {
			return ""
		}
		return journal.InboxOf(s.to.id)
	}
	info, _ := l.x.e.topo.Creature(l.tc.c.id)
	for _, e := range info.Edges {
		if e.Direction == journal.Send && e.Alias == s.alias {
			return e.Channel
		}
	}
	return ""
}

// bury logs a dead letter.
func (l *turnLog) bury(d letter) {
	d.ID, d.Time = l.next(), l.tick()
	l.log(d.event())
	l.letters = append(l.letters, d)
	if l.rec != nil {
		l.rec.Letters = append(l.rec.Letters, d.DeadLetterRow)
	}
}

// ask carries out one request. One that reaches nobody is answered at once.
func (l *turnLog) ask(s *sendEffect, to journal.ChannelID, m *message) {
	row := journal.RequestRow{Creature: l.tc.c.id, Tag: s.ask.tag, Deadline: l.x.wall + int64(s.ask.deadline)}
	if to == "" {
		row.ID = l.turn // it never gets an id of its own
		l.post(journal.InboxOf(l.tc.c.id), resultOf(&row, answer{code: abi.NotConnected, text: "who was asked is not in this graph any more"}))
		return
	}
	m.kind = abi.KindRequest
	m.headers, _ = journal.EncodeHeaders(map[string]string{headerDeadline: strconv.FormatInt(s.ask.deadline.Milliseconds(), 10)})
	l.post(to, m)
	row.ID = m.id
	l.asks = append(l.asks, row)
	if l.rec != nil {
		l.rec.Requests = append(l.rec.Requests, row)
	}
}

// setTimers sets and cancels timers.
func (l *turnLog) setTimers() {
	for _, x := range l.tc.w.turn.timers {
		row := journal.TimerRow{Creature: l.tc.c.id, Name: x.name}
		if rec := l.rec; rec != nil {
			rec.Timers = slices.DeleteFunc(rec.Timers, func(r journal.TimerRow) bool { return r.Creature == row.Creature && r.Name == row.Name })
			rec.Drop.Timers = append(rec.Drop.Timers, row)
		}
		if !x.cancel {
			row.Due, row.Period, row.Payload = l.x.wall+int64(x.delay), int64(x.period), x.payload
			if l.rec != nil {
				l.rec.Timers = append(l.rec.Timers, row)
			}
		}
		l.timers = append(l.timers, row)
	}
}

// reply answers the request that the turn has handled, to a creature; one from
// outside is answered when the turn lands.
func (l *turnLog) reply() {
	t, m := &l.tc.w.turn, l.tc.d.msg
	if t.kind != abi.KindRequest || m.sender == "" {
		return
	}
	asker := l.x.e.creatures[m.sender]
	if asker != nil && l.x.e.topo.GraphOf(asker.id) == l.graph {
		l.settled = asker.questions[m.id]
	}
	if l.settled == nil {
		if t.replied {
			l.bury(letter{turn: l.turn, DeadLetterRow: journal.DeadLetterRow{
				Reason: abi.NotConnected.String(), Creature: m.sender, Sender: l.tc.c.id, Kind: journal.EventDirectMessage,
				Error: NotWaiting, Payload: slices.Clone(t.bytes(t.reply)),
			}})
		}
		return
	}
	row := l.settled.row
	row.ID = cmp.Or(l.x.entry.ids[row.ID], row.ID)
	if rec := l.rec; rec != nil {
		rec.Requests = slices.DeleteFunc(rec.Requests, func(r journal.RequestRow) bool { return r.ID == row.ID })
		rec.Drop.Requests = append(rec.Drop.Requests, row.ID)
	}
	l.post(journal.InboxOf(asker.id), resultOf(&row, l.answer()))
}

// answer is the turn's answer to the request that it has handled.
func (l *turnLog) answer() answer {
	t := &l.tc.w.turn
	if t.replied {
		return answer{payload: t.bytes(t.reply), from: l.tc.c}
	}
	return answer{code: abi.Unavailable, text: l.tc.c.name + " did not reply", from: l.tc.c}
}

// size is about what the turn has stored, with so many operations on the graph.
func (l *turnLog) size(ops int) int64 {
	if l.rec == nil {
		return 0
	}
	const op = 1 << 10
	return (&journal.Record{Events: l.events}).Size() + int64(ops)*op
}

// land carries out in memory what has been logged.
func (l *turnLog) land(x *change, g *graph) {
	c, t := l.tc.c, &l.tc.w.turn
	for i := range l.letters {
		l.letters[i].count(x.e)
		if l.rec == nil {
			g.keepLetter(l.letters[i].DeadLetterRow)
		}
	}
	c.counters.Denied += uint64(l.denied)
	for _, m := range l.posts {
		ch := x.e.channels[m.channel]
		ch.head = m.seq
		if m.sender == c.id && m.kind != abi.KindResult {
			c.counters.Sent++
		}
		g.publish(ch, m, &x.wake, nil)
		m.release()
	}
	for _, row := range l.timers {
		x.e.disarm(nil, c, row.Name)
		if row.Due != 0 {
			x.e.arm(c, row)
		}
	}
	if q := l.settled; q != nil {
		asker := x.e.creatures[q.row.Creature]
		x.e.timers.stop(q.timer)
		delete(asker.questions, q.key)
	}
	for _, row := range l.asks {
		x.e.noteRequest(nil, c, row)
	}
	if t.kind == abi.KindRequest && l.tc.d.msg.sender == "" {
		x.e.answerCaller(g, l.tc.d.msg.id, l.answer())
	}
}
