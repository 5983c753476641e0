package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// judge lets predicates decide where the turn's output goes, and policies have
// their say on what the turn sends. They run outside of critical sections,
// before anything gets a number.
func (w *worker) judge(ctx context.Context) {
	t := &w.turn
	if t.hasOutput && t.wiring.outlets != nil {
		w.leadOut(ctx)
	}
	w.judgeSends(ctx)
}

// judgeSends asks the policies about everything that the turn sends on channels.
func (w *worker) judgeSends(ctx context.Context) {
	t := &w.turn
	for i := range t.sends {
		s := &t.sends[i]
		if s.ch == nil {
			continue
		}
		policy := s.ch.policy.Load()
		if policy == nil {
			continue
		}
		t.recalled.home = t.c.home.lock
		event := &deploy.SendEvent{
			Graph: graphID(&t.c.home), Time: t.now, Seed: t.policySeed(uint64(i)), Deployment: s.ch.deployment,
			ChannelName: s.alias, ChannelAddress: s.ch.address,
			SenderName: t.wiring.name, SenderAddress: t.c.spec.Address, SenderSpecies: t.c.spec.Species, SenderDeployment: t.wiring.deployment,
			Payload: t.bytes(s.payload), Headers: journal.DecodeHeaders(t.bytes(s.headers)),
			Surroundings: deploy.Surroundings{View: t.c.home.view(), Memory: t.recalled.of(s.ch.deployment)},
		}
		verdict := (*policy).Send(ctx, event)
		w.e.heard(&verdict.Words)
		w.apply(s, &verdict)
	}
}

// judgeAgain is judgeSends when what the policies recalled does not hold any more.
func (w *worker) judgeAgain(ctx context.Context) {
	t := &w.turn
	t.recalled.forget()
	t.verdicts = slices.DeleteFunc(t.verdicts, func(v policyVerdict) bool { return v.judged == journal.JudgeSend })
	for i := range t.sends {
		s := &t.sends[i]
		s.left, s.keep, s.mutated, s.mutatedPayload, s.mutatedHeaders = false, false, false, nil, nil
	}
	w.judgeSends(ctx)
}

// apply notes on a send what the policies decided.
func (w *worker) apply(s *sendEffect, d *deploy.SendDecision) {
	t := &w.turn
	if len(d.Denials) > 0 {
		s.left = true
	} else if d.Dropped != nil {
		s.left = true
		t.verdicts = append(t.verdicts, policyVerdict{effect: effectDropped, judged: journal.JudgeSend, channel: s.ch.id, Verdict: *d.Dropped})
	}
	t.verdicts = append(t.verdicts, wordsOf(&deploy.PolicyEvent{Kind: journal.JudgeSend, Channel: deploy.PolicyChannel{ID: s.ch.id}}, &d.Words)...)
	if d.Mutated && !s.left {
		headers, ok := journal.EncodeHeaders(d.Headers)
		if !ok {
			headers = nil
		}
		s.mutated, s.mutatedPayload, s.mutatedHeaders = true, d.Payload, headers
	}
	s.keep = d.Original
	t.judged = t.judged || s.left || s.mutated
}

// commit applies a successful turn: it gets its place in the log, its effects
// become visible, and its cursor advances, in one critical section. It returns
// with that section entered, or nil if the creature is gone.
func (w *worker) commit(ctx context.Context, c *creature) *graph {
	t := &w.turn
	wall := w.wallClock()
	g := c.home.lock()
	for g != nil && !t.recalled.current(g) {
		g.mu.Unlock()
		w.judgeAgain(ctx)
		if err := ctx.Err(); err != nil {
			return w.postpone(ctx, c, t.d, err)
		}
		g = c.home.lock()
	}
	if g == nil || c.removed {
		t.d.msg.release()
		t.reset()
		return g
	}
	if t.tools != nil && !t.tools.recalled.current(g) {
		g.mu.Unlock()
		return w.conflicted(ctx, c, t.d)
	}
	g.wall = wall
	c.current = delivery{}
	rec := g.newRecord()
	turnID := g.nextID()
	w.advance(g, rec, c, t.d)
	if t.kind == abi.KindStart {
		c.started = true
		putCreature(rec, c)
	}
	g.logTurn(rec, turnID, t)
	for i := range t.sends {
		w.deliver(g, rec, turnID, c, &t.sends[i])
	}
	for i := range t.wired {
		w.deliverOutput(g, rec, turnID, c, &t.wired[i])
	}
	t.recalled.keep(g, rec)
	if t.tools != nil {
		t.tools.recalled.keep(g, rec)
	}
	w.applyState(g, rec, turnID, c)
	w.applyTimers(g, rec, c)
	if t.kind == abi.KindRequest {
		a := answer{code: abi.Unavailable, text: c.name + " did not reply", from: c}
		if t.replied {
			a = answer{payload: t.bytes(t.reply), from: c}
		}
		w.answerRequest(g, rec, c, t.d, a, turnID)
	}
	c.succeed(t, rec)
	c.charge(g, rec.Size())
	g.append(rec)
	t.d.msg.release()
	t.reset()
	return g
}

// succeed notes on the creature that a turn is committed. The caller holds mu, and is
// filling rec.
func (c *creature) succeed(t *turn, rec *journal.Record) {
	c.waits, c.attempt, c.conflicts = 0, 0, 0
	c.counters.Turns++
	c.counters.burn(t.fuel)
	c.noteTold(rec, t.kind)
}

// remember has the creature's state be as the turn leaves it. The caller holds mu.
func (c *creature) remember(t *turn) {
	for _, write := range t.writes {
		if write.deleted {
			c.state.Delete(write.key)
		} else {
			c.state.Set(write.key, write.value)
		}
	}
	if len(t.writes) > 0 {
		c.stateSize = t.stateSize
	}
}

// advance moves the cursor behind a delivery that has been dealt with.
func (w *worker) advance(g *graph, rec *journal.Record, c *creature, d delivery) {
	s := d.src
	if s == nil {
		return
	}
	s.cursor = max(s.cursor, d.msg.seq)
	done := c.mb.settle(s)
	putCursor(rec, c.reader(), s)
	if done {
		c.mb.forget(s)
	}
}

// deliver carries out one send.
func (w *worker) deliver(g *graph, rec *journal.Record, turnID journal.EventID, c *creature, s *sendEffect) {
	t := &w.turn
	if s.left {
		c.counters.Denied++
		return
	}
	payload, headers := t.bytes(s.payload), t.bytes(s.headers)
	if s.mutated {
		payload, headers = s.mutatedPayload, s.mutatedHeaders
	}
	ch := w.target(g, c, s)
	if s.ask != nil {
		w.sendRequest(g, rec, turnID, c, s, ch)
		return
	}
	if ch == nil {
		g.deadLetter(rec, s.unsent(c, turnID, slices.Clone(payload), slices.Clone(headers)))
		return
	}
	m := g.newMessage(rec, payload, headers)
	m.kind, m.sender, m.senderName = abi.KindMessage, c.id, c.name
	g.sequence(ch, m)
	c.counters.Sent++
	if rec != nil || g.engine.observedAny() {
		g.logMessage(rec, ch, m, turnID, t.d.msg.logID())
	}
	g.publish(ch, m, &w.wake, rec)
	m.release()
}

// sendRequest carries out one request. One that reaches nobody is answered at
// once.
func (w *worker) sendRequest(g *graph, rec *journal.Record, turnID journal.EventID, c *creature, s *sendEffect, ch *channel) {
	t := &w.turn
	row := journal.RequestRow{Creature: c.id, Tag: s.ask.tag, Deadline: g.wall + int64(s.ask.deadline)}
	if ch == nil {
		row.ID = turnID // it never gets an id of its own
		w.e.noteRequest(nil, c, row)
		g.settle(rec, &w.wake, c, row.ID, answer{code: abi.NotConnected, text: "who was asked is not in this graph any more"}, turnID, t.d.msg.logID())
		return
	}
	headers, _ := journal.EncodeHeaders(map[string]string{headerDeadline: strconv.FormatInt(s.ask.deadline.Milliseconds(), 10)})
	m := newMessage(slices.Clone(t.bytes(s.payload)), headers)
	m.kind, m.sender, m.senderName = abi.KindRequest, c.id, c.name
	g.sequence(ch, m)
	row.ID = m.id
	w.e.noteRequest(rec, c, row)
	c.counters.Sent++
	g.logMessage(rec, ch, m, turnID, t.d.msg.logID())
	g.publish(ch, m, &w.wake, rec)
	m.release()
}

// target finds the channel of a send as things are now.
func (w *worker) target(g *graph, c *creature, s *sendEffect) *channel {
	if s.to != nil {
		if s.to.home.load() != g || s.to.removed {
			return nil
		}
		return g.channels[journal.InboxOf(s.to.id)]
	}
	if now := c.wiring.Load(); now != w.turn.wiring {
		return now.byAlias[s.alias]
	}
	return s.ch
}

// applyState carries out the turn's state writes.
func (w *worker) applyState(g *graph, rec *journal.Record, turnID journal.EventID, c *creature) {
	c.remember(&w.turn)
	for _, write := range w.turn.writes {
		g.logState(rec, turnID, c, write)
	}
}

// newRecord returns a record to be filled, or nil where there is no log.
func (g *graph) newRecord() *journal.Record {
	if g.store == nil {
		return nil
	}
	return &journal.Record{}
}

// append hands a record to the store. It belongs to the critical section in
// which the record's events got their ids.
func (g *graph) append(rec *journal.Record) {
	if rec != nil {
		g.store.Append(rec)
	}
}

// newMessage makes a message of bytes that the turn is going to use again.
func (g *graph) newMessage(rec *journal.Record, payload, headers []byte) *message {
	if rec == nil {
		return newPooledMessage(payload, headers)
	}
	own := make([]byte, 0, len(payload)+len(headers))
	own = append(append(own, payload...), headers...)
	return newMessage(own[:len(payload):len(payload)], own[len(payload):])
}

// log completes an event, adds it to the record and shows it to observers. An
// event with an id keeps it.
func (g *graph) log(rec *journal.Record, ev journal.Event) {
	if rec == nil && !g.engine.observed(ev.Kind) {
		return
	}
	ev.Graph = g.id
	if ev.ID.IsZero() {
		ev.ID = g.nextID()
	}
	if ev.Time == 0 {
		ev.Time = g.tick()
	}
	if rec != nil {
		rec.Events = append(rec.Events, ev)
	}
	g.engine.publish(&ev, g.keeper(rec))
}

// keeper is the log that keeps what is added to a record.
func (g *graph) keeper(rec *journal.Record) logSource {
	if rec == nil {
		return logSource{}
	}
	return g.source
}

func (g *graph) logMessage(rec *journal.Record, ch *channel, m *message, turn, cause journal.EventID) {
	if rec == nil && !g.engine.observed(journal.EventChannelMessage) && !g.engine.observed(journal.EventDirectMessage) {
		return
	}
	ev := m.event(g.id)
	ev.Turn, ev.Cause = turn, cause
	if rec == nil {
		// The message goes back to the pool; what observers get stays.
		ev.Payload, ev.Headers = slices.Clone(ev.Payload), slices.Clone(ev.Headers)
	} else {
		rec.Events = append(rec.Events, ev)
		putHead(rec, ch)
	}
	g.engine.publish(&ev, g.keeper(rec))
}

// summary is what the turn_ended event says of the turn, whose delivery has the
// given id in the log.
func (t *turn) summary(cause journal.EventID, logged bool) journal.TurnEndedPayload {
	d := journal.TurnEndedPayload{Kind: t.kind.String(), Sends: len(t.sends), Writes: len(t.writes), Fuel: max(t.fuel, 0), Awareness: t.seen()}
	if t.tools != nil {
		d.Tools = len(t.tools.ops)
	}
	if t.kind == kindTool {
		d.Kind = "tool"
	}
	if logged {
		d.Notes = t.notes(cause)
	}
	return d
}

// logTurn logs a turn that succeeded, with its output, log lines and what
// policies said of it.
func (g *graph) logTurn(rec *journal.Record, turnID journal.EventID, t *turn) {
	if rec == nil && !g.engine.observedAny() {
		return
	}
	attempt := t.c.attempt + 1
	about := journal.Event{Creature: t.c.id, Turn: turnID, Attempt: attempt, Cause: t.d.msg.logID()}
	if rec != nil || g.engine.observed(journal.EventTurnEnded) {
		ev := about
		ev.ID, ev.Kind, ev.Channel, ev.Seq = turnID, journal.EventTurnEnded, t.d.msg.channel, t.d.msg.seq
		ev.Payload = journal.JSON(t.summary(about.Cause, rec != nil))
		g.log(rec, ev)
	}
	g.logLines(rec, about, t.logs)
	if t.hasOutput && (rec != nil || g.engine.observed(journal.EventOutput)) {
		g.log(rec, t.outputEvent(about))
	}
	for _, v := range t.verdicts {
		g.logVerdict(rec, about, v)
	}
}

// logVerdict logs what a policy said.
func (g *graph) logVerdict(rec *journal.Record, about journal.Event, v policyVerdict) {
	if rec == nil && !g.engine.observed(journal.EventPolicyDenied) {
		return
	}
	g.log(rec, v.event(about))
}

// The events of what a turn leaves in the log besides what it does to others; about
// says whose turn it was.

func (t *turn) outputEvent(about journal.Event) journal.Event {
	about.Kind, about.Payload = journal.EventOutput, slices.Clone(t.output)
	return about
}

func (l logLine) event(about journal.Event) journal.Event {
	about.Kind, about.Payload = journal.EventLog, journal.JSON(journal.LogPayload{Level: l.level.String(), Text: l.text, Engine: l.engine})
	return about
}

// logLines logs what the guest logged during one attempt.
func (g *graph) logLines(rec *journal.Record, about journal.Event, lines []logLine) {
	if len(lines) == 0 || (rec == nil && !g.engine.observed(journal.EventLog)) {
		return
	}
	for _, line := range lines {
		g.log(rec, line.event(about))
	}
}

func (g *graph) logState(rec *journal.Record, turnID journal.EventID, c *creature, write stateWrite) {
	if rec == nil && !g.engine.observed(journal.EventState) {
		return
	}
	ev := journal.Event{Kind: journal.EventState, Creature: c.id, Turn: turnID, Payload: encodeStateWrite(write)}
	if rec != nil {
		rec.State = append(rec.State, journal.StateRow{Creature: c.id, Key: write.key, Value: write.value, Deleted: write.deleted})
	}
	g.log(rec, ev)
}

// encodeStateWrite writes the payload of a state event: the key, NUL, then
// "=" and the value, or "-" for a deletion.
func encodeStateWrite(w stateWrite) []byte {
	b := make([]byte, 0, len(w.key)+2+len(w.value))
	b = append(append(b, w.key...), 0)
	if w.deleted {
		return append(b, '-')
	}
	return append(append(b, '='), w.value...)
}

// reader is the creature as a reader of channels.
func (c *creature) reader() journal.ReaderID { return journal.ReaderID(c.id) }

func putCursor(r *journal.Record, reader journal.ReaderID, s *source) {
	if r == nil {
		return
	}
	row := journal.CursorRow{Reader: reader, Channel: s.id, Seq: s.cursor, Until: s.until}
	if s.ch == nil {
		if s.drained() {
			r.DropCursor(row)
			return
		}
		row.Alias = s.alias
	}
	r.Cursors = append(r.Cursors, row)
}

func putCreature(r *journal.Record, c *creature) {
	if r != nil {
		r.Creatures = append(r.Creatures, c.row())
	}
}

func putHead(r *journal.Record, ch *channel) {
	if r != nil {
		r.Heads = append(r.Heads, journal.HeadRow{Channel: ch.id, Seq: ch.head})
	}
}
