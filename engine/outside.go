package engine

import (
	"context"
	"math"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/outbound"
	"github.com/seed47132306/terrarium/engine/internal/spending"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A request to a capability is an open request of its creature, like a request to another
// creature, but its content is an event instead of a message. Package outbound executes it
// once the event is durable. The record that delivers the result also closes the request, so
// the result is handled once. An open request of a resumed session is executed again.

// ReachPrefix is [abi.ReachPrefix].
const ReachPrefix = abi.ReachPrefix

// reach is a request to a capability.
type reach struct {
	id     string           // of the capability that grants it
	access *outbound.Access // nil in a rehearsal
	denial answer           // if policies deny it, or cannot judge it
}

// HTTP implements [abi.Turn].
func (t *turn) HTTP(request, body []byte, tag int64) abi.Code {
	return t.reach(string(deploy.HTTPCapability), capability.Request{Head: request, Body: body}, tag)
}

// reach checks and collects a request to a capability.
func (t *turn) reach(id string, r capability.Request, tag int64) abi.Code {
	if code := t.mayReach(); code != abi.OK {
		return code
	}
	a, err := outbound.Find(t.c.outside, id, r)
	if err != nil {
		// Refused calls count too: the turn keeps a note of each.
		t.asked++
		t.reached = append(t.reached, journal.ReachNote{Code: err.Code.String(), Error: err.Error()})
		return t.Fail(err.Code, err.Remedy, "%s", err.Message)
	}
	t.reached = append(t.reached, journal.ReachNote{Capability: a.ID()})
	return t.collect(reach{id: a.ID(), access: a}, r, tag)
}

func (t *turn) mayReach() abi.Code {
	if code := t.Effect(); code != abi.OK {
		return code
	}
	if t.openRequests() >= t.c.limits.Requests {
		return t.OverLimit("requests", int64(t.c.limits.Requests))
	}
	return abi.OK
}

func (t *turn) collect(to reach, r capability.Request, tag int64) abi.Code {
	if code := t.Room(1, r.Body, nil); code != abi.OK {
		return code
	}
	t.asked++
	t.sends = append(t.sends, sendEffect{payload: t.Keep(r.Body), headers: t.Keep(r.Head), ask: &ask{tag: tag}, reach: &to})
	return abi.OK
}

// request returns the request to a capability, with the changes that policies made.
func (s *sendEffect) request(t *turn) capability.Request {
	if s.mutated {
		return capability.Request{Head: s.mutatedHeaders, Body: s.mutatedPayload}
	}
	return capability.Request{Head: t.Bytes(s.headers), Body: t.Bytes(s.payload)}
}

// judgeReach lets the policies judge a request to a capability.
func (w *turnWorker) judgeReach(ctx context.Context, s *sendEffect, seed uint64) {
	t := &w.turn
	p := w.e.policyOf(t.c.deployment, journal.JudgeCapability)
	if p == nil {
		return
	}
	view, err := s.reach.access.View(s.request(t))
	if err != nil {
		t.notJudged(s, err)
		return
	}
	t.recalled.Home = t.c.home.memories
	ev := deploy.PolicyEvent{
		Kind: journal.JudgeCapability, Call: string(s.reach.access.Kind), Caller: t.c.party(),
		Graph: graphID(&t.c.home), Deployment: t.c.deployment, Time: t.d.msg.Time, Seed: t.policySeed(seed), Called: deploy.Called{Capability: s.reach.access.Kind, Grant: s.reach.access.Name, Request: view},
		Surroundings: deploy.Surroundings{View: t.c.home.view(), Memory: t.recalled.Of(t.c.deployment)},
	}
	d := p.Judge(ctx, &ev)
	w.e.failed.Heard(&d.Words)
	if d.Request != nil && len(d.Denials) == 0 {
		if r, err := s.reach.access.Judged(s.request(t), &d); err == nil {
			s.mutated, s.mutatedHeaders, s.mutatedPayload = true, r.Head, r.Body
		}
		if view, err := s.reach.access.View(s.request(t)); err == nil {
			ev.Request = view // for the record of what the policies said
		} else {
			t.notJudged(s, err)
		}
	}
	t.answerCall(&ev, &d.Words)
	t.verdicts = append(t.verdicts, draft.WordsOf(&ev, &d.Words)...)
	if len(d.Denials) > 0 {
		s.left, s.reach.denial = true, answer{code: abi.Denied, text: d.Denials[0].String()}
	}
	t.judged = t.judged || s.left || s.mutated
}

// notJudged refuses a request because the capability cannot show it to policies.
func (t *turn) notJudged(s *sendEffect, err error) {
	s.left, s.reach.denial, t.judged = true, answer{code: abi.CodeOf(err), text: errtext.Clip(err.Error())}, true
}

// reach writes one request to a capability. A request that policies deny gets its result at once.
func (l *turnLog) reach(s *sendEffect) {
	c := l.t.c
	row := journal.RequestRow{Creature: c.id, Tag: s.ask.tag, Deadline: math.MaxInt64}
	if s.left {
		l.denied++
		row.ID = l.id // it never gets an id of its own
		l.post(l.inbox(c), resultOf(&row, s.reach.denial))
		return
	}
	row.ID = l.next()
	r := s.request(l.t)
	out := journal.OutboundRequest{Capability: s.reach.id, Tag: row.Tag, Head: slices.Clone(r.Head), Body: slices.Clone(r.Body), Key: row.ID.String()}
	if l.wants(journal.EventOutboundRequest) {
		ev := out.Event(row.ID, c.id)
		ev.Turn, ev.Cause = l.id, l.cause
		l.log(ev)
	}
	l.sent++
	l.asks = append(l.asks, &question{key: row.ID, row: row, out: &out})
	if l.rec != nil {
		l.rec.Requests = append(l.rec.Requests, row)
	}
}

// restoreReaches determines which of the saved requests are to capabilities.
func restoreReaches(ctx context.Context, x *change, store journal.Store) error {
	found, err := outbound.Load(ctx, store, x.saved.Requests)
	for _, row := range x.saved.Requests {
		if out, ok := found[row.ID]; ok && x.creatures[row.Creature] != nil {
			x.creatures[row.Creature].questions[row.ID].out = &out
		}
	}
	return err
}

// launch executes an open request to a capability. If secret settings of the capability or
// the module of the creature are missing, the request waits until a recipe is applied.
func (g section) launch(c *creature, q *question) {
	e := g.engine
	access, granted := c.outside[q.out.Capability]
	q.call.KeepIf(granted)
	if q.call != nil || e.paused || c.husk || granted && access.Lacking {
		return
	}
	e.idle.Add(1)
	q.call = &outbound.Call{
		Call:  capability.Call{Request: capability.Request{Head: q.out.Head, Body: q.out.Body}, Key: q.out.Key, Creature: c.name},
		Begin: func(ctx context.Context) *outbound.Access { return e.beginReach(ctx, c, q) },
		End:   func(ctx context.Context, r capability.Result, dead bool) { e.endReach(ctx, c, q, r, dead) },
		Drop:  func() { e.dropReach(c, q) },
		Spend: func(ctx context.Context, s outbound.Spending) error { return e.spend(ctx, c, q, s) },
	}
	if !granted {
		e.outbound.Refuse(q.call, abi.Denied, "the recipe no longer grants the capability "+q.out.Capability)
		return
	}
	access.Start(q.call)
}

// launchHeld executes the requests of a creature that waited for its settings.
func (g section) launchHeld(c *creature) {
	for _, q := range c.questions {
		if q.out != nil {
			g.launch(c, q)
		}
	}
}

// beginReach waits until a request is as durable as its graph promises, and returns the access
// that now grants it; nil if no result is awaited any longer, or it cannot be executed now.
func (e *core) beginReach(ctx context.Context, c *creature, q *question) *outbound.Access {
	for {
		g := c.home.enter()
		if g.none() {
			return nil
		}
		access, store, id := outbound.Usable(c.outside, q.out.Capability, c.questions[q.key] == q), g.store, q.row.ID
		g.leave()
		// After a cut, all that the parents had logged is durable.
		if access == nil || store == nil || id.Origin != store.Origin() {
			return access
		}
		if store.Wait(ctx, id.Seq) == nil {
			return access
		}
		if ctx.Err() != nil || !outbound.Pause(ctx) {
			return nil
		}
	}
}

// spend changes what a creature has used and, with budgets, waits until that is durable.
func (e *core) spend(ctx context.Context, c *creature, q *question, s outbound.Spending) error {
	g := c.home.enter()
	if g.none() {
		return errtext.Closed // with the graph, its budget has ended
	}
	g.wall = e.wallClock()
	rec := g.newRecord()
	ev, err := g.spent.Change(rec, spending.Key{Capability: s.Capability, Creature: c.id}, q.row.ID, s.Budgets, s.Change)
	if err == nil {
		g.log(rec, ev)
		g.append(rec)
	}
	store, seq := g.store, g.seq
	g.leave()
	if err != nil || store == nil || len(s.Budgets) == 0 {
		return err
	}
	return store.Wait(ctx, seq)
}

// endReach delivers the result of a request if the request is still open.
func (e *core) endReach(ctx context.Context, c *creature, q *question, r capability.Result, dead bool) {
	defer e.idle.Add(-1)
	g := c.home.enter()
	if g.none() {
		return
	}
	inbox := g.channels[journal.InboxOf(c.id)]
	g.leave()
	if inbox == nil {
		return
	}
	g, err := e.awaitRoom(ctx, inbox)
	if err != nil {
		return // closed or removed
	}
	g.wall = e.wallClock()
	var w waker
	if c.questions[q.key] == q && !e.isClosing() {
		rec := g.newRecord()
		r, headers := outbound.Deliverable(r, c.limits.Message)
		a := answer{code: r.Code, text: r.Text, payload: r.Payload, headers: headers}
		if dead && a.code != abi.OK {
			g.buryReach(rec, c, q, a)
		} else {
			g.answerOpenRequest(rec, &w, c, q.key, a, journal.EventID{}, q.row.ID)
		}
		c.charge(g, rec.Size())
		g.append(rec)
	}
	g.leave()
	w.flush(e)
}

// buryReach makes the result of a request a dead letter.
func (g section) buryReach(rec *journal.Record, c *creature, q *question, a answer) {
	delete(c.questions, q.key)
	if rec != nil {
		rec.Drop.Requests = append(rec.Drop.Requests, q.row.ID)
	}
	m := resultOf(&q.row, a)
	g.deadLetter(rec, letter{from: c, DeadLetterRow: journal.DeadLetterRow{
		Reason: journal.DeadReason(a.code.String()), Creature: c.id, Kind: journal.EventResult, Error: errtext.Clip(a.text), Headers: m.Headers, Payload: m.Payload,
	}})
}

// dropReach leaves a request open. If it was dropped because its settings have changed, it
// is launched again.
func (e *core) dropReach(c *creature, q *question) {
	if g := c.home.enter(); !g.none() {
		if q.call = nil; c.questions[q.key] == q && !e.isClosing() {
			g.launch(c, q)
		}
		g.leave()
	}
	e.idle.Add(-1)
}
