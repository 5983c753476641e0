package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

// What is particular to a delivery that the engine makes travels in its
// headers, which the log keeps.
const (
	headerTimer    = "terrarium-timer"    // name of the timer
	headerTag      = "terrarium-tag"      // of a request, in its result
	headerCode     = "terrarium-code"     // of a result: ok or the name of an error
	headerRequest  = "terrarium-request"  // id of the request that a result answers
	headerDeadline = "terrarium-deadline" // of a request, in milliseconds
)

// ask is what a send has in addition when it is a request.
type ask struct {
	deadline time.Duration
	tag      int64
}

// timerEffect is a timer that the turn sets or cancels.
type timerEffect struct {
	name    string
	delay   time.Duration
	period  time.Duration
	payload span
	cancel  bool
}

// Request implements [abi.Turn].
func (t *turn) Request(to, payload []byte, deadline time.Duration, tag int64) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	if deadline <= 0 {
		return t.fail(abi.InvalidArgument, "say in milliseconds how long to wait", "a request needs a deadline")
	}
	target := t.peer(string(to))
	if target == nil {
		return t.fail(abi.NotFound, "name a creature of the own graph, by id or name", "there is no creature %q in this graph", to)
	}
	if code := t.room(1, payload, nil); code != abi.OK {
		return code
	}
	t.sends = append(t.sends, sendEffect{to: target, payload: t.keep(payload), ask: &ask{deadline, tag}})
	return abi.OK
}

// Reply implements [abi.Turn].
func (t *turn) Reply(payload []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	switch {
	case t.kind != abi.KindRequest:
		return t.fail(abi.Denied, "reply while a delivery of the kind request is handled", "there is no request to reply to")
	case t.replied:
		return t.fail(abi.AlreadyExists, "reply once", "the request has a reply already")
	case int64(len(payload)) > t.c.limits.Message:
		return t.fail(abi.TooLarge, "send a smaller reply, or raise the limit", "the reply has %d bytes; the limit message is %d", len(payload), t.c.limits.Message)
	}
	t.replied, t.reply = true, t.keep(payload)
	return abi.OK
}

// TimerSet implements [abi.Turn].
func (t *turn) TimerSet(name []byte, delay, period time.Duration, payload []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	limits := &t.c.limits
	switch {
	case len(name) == 0 || !utf8.Valid(name) || slices.Contains(name, 0) || int64(len(name)) > limits.StateKey:
		return t.fail(abi.InvalidArgument, "use another name", "the name of a timer is UTF-8 without NUL, of 1 to %d bytes", limits.StateKey)
	case delay < 0 || period < 0:
		return t.fail(abi.InvalidArgument, "use 0 or more", "a timer's delay and period are not negative")
	case int64(len(payload)) > limits.Message:
		return t.fail(abi.TooLarge, "keep it in the state", "the payload has %d bytes; the limit message is %d", len(payload), limits.Message)
	}
	if names := t.timerNames(); !names[string(name)] && len(names) >= limits.Timers {
		return t.overLimit("timers", int64(limits.Timers))
	}
	t.timers = append(t.timers, timerEffect{name: string(name), delay: delay, period: period, payload: t.keep(payload)})
	return abi.OK
}

// TimerCancel implements [abi.Turn].
func (t *turn) TimerCancel(name []byte) (existed bool, code abi.Code) {
	if code := t.effect(); code != abi.OK {
		return false, code
	}
	if !t.timerNames()[string(name)] {
		return false, abi.OK
	}
	t.timers = append(t.timers, timerEffect{name: string(name), cancel: true})
	return true, abi.OK
}

// timerNames are the timers that are set, as the turn sees it.
func (t *turn) timerNames() map[string]bool {
	names := map[string]bool{}
	if g := t.c.home.lock(); g != nil {
		for name := range t.c.timers {
			names[name] = true
		}
		g.mu.Unlock()
	}
	for _, x := range t.timers {
		if x.cancel {
			delete(names, x.name)
		} else {
			names[x.name] = true
		}
	}
	return names
}

// alarm is a timer that a creature has set. The graph's mu guards it.
type alarm struct {
	row   TimerRow
	timer *timer
}

// applyTimers carries out what a turn does to its creature's timers. Delays
// count from the commit: a creature that works off an old backlog sets timers
// in its present, not in its past.
func (w *worker) applyTimers(g *graph, rec *Record, c *creature) {
	t := &w.turn
	for i := range t.timers {
		x := &t.timers[i]
		w.e.disarm(rec, c, x.name)
		if x.cancel {
			continue
		}
		row := TimerRow{
			Creature: c.id, Name: x.name, Due: g.wall + int64(x.delay), Period: int64(x.period),
			Payload: slices.Clone(t.bytes(x.payload)),
		}
		w.e.arm(c, row)
		if rec != nil {
			rec.Timers = append(rec.Timers, row)
		}
	}
}

// arm sets a timer. The caller holds mu.
func (e *Engine) arm(c *creature, row TimerRow) {
	a := &alarm{row: row}
	if c.timers == nil {
		c.timers = map[string]*alarm{}
	}
	c.timers[row.Name] = a
	a.timer = e.timers.at(time.Unix(0, row.Due), func() { e.ring(c, a) })
}

// disarm takes a timer away. The caller holds mu.
func (e *Engine) disarm(rec *Record, c *creature, name string) {
	a := c.timers[name]
	if a == nil {
		return
	}
	e.timers.stop(a.timer)
	delete(c.timers, name)
	if rec != nil {
		rec.Drop.Timers = append(rec.Drop.Timers, TimerRow{Creature: c.id, Name: name})
	}
}

// ring delivers a timer that is due. A repeating one that was due several
// times meanwhile is delivered once.
func (e *Engine) ring(c *creature, a *alarm) {
	wall := e.wallClock()
	g := c.home.lock()
	if g == nil {
		return
	}
	if e.isClosing() || c.timers[a.row.Name] != a {
		g.mu.Unlock()
		return
	}
	g.wall = wall
	rec := g.newRecord()
	e.disarm(rec, c, a.row.Name)
	if p := a.row.Period; p > 0 {
		next := a.row
		next.Due += p * max(1, (wall-a.row.Due)/p+1)
		e.arm(c, next)
		if rec != nil {
			rec.Timers = append(rec.Timers, next)
		}
	}
	headers, _ := EncodeHeaders(map[string]string{headerTimer: a.row.Name})
	m := newMessage(a.row.Payload, headers)
	m.kind = abi.KindTimer
	var w waker
	g.post(rec, &w, c, m, EventID{}, EventID{})
	g.append(rec)
	g.mu.Unlock()
	w.flush(e.queue)
}

// post puts a message into a creature's inbox. The caller holds mu, and gives
// up its reference.
func (g *graph) post(rec *Record, w *waker, to *creature, m *message, turn, cause EventID) {
	ch := g.channels[InboxOf(to.id)]
	g.sequence(ch, m)
	g.logMessage(rec, ch, m, turn, cause)
	g.publish(ch, m, w, rec)
	m.release()
}

// question is a request of a creature that has not been answered. The graph's
// mu guards it.
type question struct {
	row   RequestRow
	timer *timer
}

// noteRequest remembers a request that was just sent.
func (e *Engine) noteRequest(rec *Record, c *creature, row RequestRow) {
	q := &question{row: row}
	if c.questions == nil {
		c.questions = map[EventID]*question{}
	}
	c.questions[row.ID] = q
	q.timer = e.timers.at(time.Unix(0, row.Deadline), func() { e.expire(c, q) })
	if rec != nil {
		rec.Requests = append(rec.Requests, row)
	}
}

// expire answers a request whose deadline has passed.
func (e *Engine) expire(c *creature, q *question) {
	wall := e.wallClock()
	g := c.home.lock()
	if g == nil {
		return
	}
	var w waker
	if !e.isClosing() && c.questions[q.row.ID] == q {
		g.wall = wall
		rec := g.newRecord()
		g.settle(rec, &w, c, q.row.ID, answer{code: abi.Deadline, text: "no reply came in time"}, EventID{}, EventID{})
		g.append(rec)
	}
	g.mu.Unlock()
	w.flush(e.queue)
}

// answer is what a request gets.
type answer struct {
	code    abi.Code
	text    string // of an error
	payload []byte // of a reply; copied
	from    *creature
}

// settle delivers the answer to a request, if it is still open. It reports
// whether it was. The caller holds mu.
func (g *graph) settle(rec *Record, w *waker, c *creature, request EventID, a answer, turn, cause EventID) bool {
	q := c.questions[request]
	if q == nil {
		return false
	}
	g.engine.timers.stop(q.timer)
	delete(c.questions, request)
	if rec != nil {
		rec.Drop.Requests = append(rec.Drop.Requests, request)
	}
	headers, _ := EncodeHeaders(map[string]string{
		headerTag: strconv.FormatInt(q.row.Tag, 10), headerCode: a.code.String(), headerRequest: request.String(),
	})
	payload := slices.Clone(a.payload)
	if a.code != abi.OK {
		payload = []byte(a.text)
	}
	m := newMessage(payload, headers)
	m.kind = abi.KindResult
	if a.from != nil {
		m.sender, m.senderName = a.from.id, a.from.name
	}
	g.post(rec, w, c, m, turn, cause)
	return true
}

// answerRequest answers the request that c has handled, whether with a reply or
// because there is none. It belongs to the commit of the turn.
func (w *worker) answerRequest(g *graph, rec *Record, c *creature, d delivery, a answer, turnID EventID) {
	if d.msg.kind != abi.KindRequest {
		return
	}
	if d.msg.sender == "" {
		w.e.answerCaller(g, d.msg.id, a)
		return
	}
	asker := g.creatures[d.msg.sender]
	if asker == nil || !g.settle(rec, &w.wake, asker, d.msg.id, a, turnID, d.msg.id) {
		if a.code == abi.OK {
			g.deadLetter(rec, letter{turn: turnID, DeadLetterRow: DeadLetterRow{
				Reason: abi.NotConnected.String(), Creature: d.msg.sender, Sender: c.id, Kind: EventResult,
				Error: "who asked is not waiting in this graph any more", Payload: slices.Clone(a.payload),
			}})
		}
	}
}

// silence gives up the timers and requests of a creature that is removed. The
// caller holds mu.
func (e *Engine) silence(c *creature) {
	for _, a := range c.timers {
		e.timers.stop(a.timer)
	}
	for _, q := range c.questions {
		e.timers.stop(q.timer)
	}
	c.timers, c.questions = nil, nil
}

// putAsks adds the rows of a creature's timers and open requests. The caller
// holds mu.
func (r *Record) putAsks(c *creature) {
	for _, name := range slices.Sorted(maps.Keys(c.timers)) {
		r.Timers = append(r.Timers, c.timers[name].row)
	}
	for _, q := range c.questions {
		r.Requests = append(r.Requests, q.row)
	}
	slices.SortFunc(r.Requests, func(a, b RequestRow) int { return strings.Compare(a.ID.String(), b.ID.String()) })
}

// restoreAsks gives creatures that are brought back their timers and requests.
// They are not set yet, but a cut that comes before takes them along.
func (x *change) restoreAsks() {
	for _, row := range x.saved.Timers {
		if c := x.creatures[row.Creature]; c != nil {
			if c.timers == nil {
				c.timers = map[string]*alarm{}
			}
			c.timers[row.Name] = &alarm{row: row}
		}
	}
	for _, row := range x.saved.Requests {
		if c := x.creatures[row.Creature]; c != nil {
			if c.questions == nil {
				c.questions = map[EventID]*question{}
			}
			c.questions[row.ID] = &question{row: row}
		}
	}
}

// resumeAsks sets what restoreAsks has brought back. What was due meanwhile is
// due now. The caller holds the mutation lock.
func (x *change) resumeAsks() {
	for _, c := range x.creatures {
		g := c.home.lock()
		if g == nil {
			continue
		}
		for _, a := range c.timers {
			if a.timer == nil {
				a.timer = x.e.timers.at(time.Unix(0, a.row.Due), func() { x.e.ring(c, a) })
			}
		}
		for _, q := range c.questions {
			if q.timer == nil {
				q.timer = x.e.timers.at(time.Unix(0, q.row.Deadline), func() { x.e.expire(c, q) })
			}
		}
		g.mu.Unlock()
	}
}

// Timers returns the timers that a creature has set, by name.
func (e *Engine) Timers(creature CreatureID) ([]TimerRow, error) {
	e.mu.RLock()
	c := e.creatures[creature]
	e.mu.RUnlock()
	if c == nil {
		return nil, gone("creature", string(creature))
	}
	g := c.home.lock()
	if g == nil {
		return nil, gone("creature", string(creature))
	}
	defer g.mu.Unlock()
	rec := &Record{}
	rec.putAsks(c)
	return rec.Timers, nil
}
