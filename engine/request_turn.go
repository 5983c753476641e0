package engine

import (
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Request implements [abi.Turn].
func (t *turn) Request(to, payload []byte, deadline time.Duration, tag int64) abi.Code {
	if code := t.Effect(); code != abi.OK {
		return code
	}
	if id, ok := strings.CutPrefix(string(to), ReachPrefix); ok {
		return t.reach(id, capability.Request{Body: payload}, tag)
	}
	if deadline <= 0 {
		return t.Fail(abi.InvalidArgument, "say in milliseconds how long to wait", "a request needs a deadline")
	}
	target := t.peer(to)
	if target == nil {
		return t.Fail(abi.NotFound, "name a creature of this graph, by its id or name", "there is no creature %s in this graph", errtext.Quoted(to))
	}
	if t.openRequests() >= t.c.limits.Requests {
		return t.OverLimit("requests", int64(t.c.limits.Requests))
	}
	if code := t.Room(1, payload, nil); code != abi.OK {
		return code
	}
	t.asked++
	t.sends = append(t.sends, sendEffect{to: target, payload: t.Keep(payload), ask: &ask{deadline, tag}})
	return abi.OK
}

// openRequests counts the requests that the creature waits for, including the turn's own.
func (t *turn) openRequests() int {
	n := t.asked
	if g := t.c.home.enter(); !g.none() {
		n += len(t.c.questions)
		g.leave()
	}
	return n
}

// Reply implements [abi.Turn].
func (t *turn) Reply(payload []byte) abi.Code {
	if code := t.Effect(); code != abi.OK {
		return code
	}
	switch {
	case t.kind != abi.KindRequest:
		return t.Fail(abi.Denied, "reply while a delivery of the kind request is handled", "there is no request to reply to")
	case t.replied:
		return t.Fail(abi.AlreadyExists, "reply once", "the request has a reply already")
	case int64(len(payload)) > t.c.limits.Message:
		return t.Fail(abi.TooLarge, "send a smaller reply, or raise the limit", "the reply has %d bytes; the limit message is %d", len(payload), t.c.limits.Message)
	}
	t.replied = true
	if x := t.caller; x != nil && x.apart && x.request == t.d.msg.ID {
		// The only copy goes where the caller wants the reply. After an error, what is there is of
		// no use, as with [io.Reader].
		if t.replyHere, x.into = true, append(x.into[:0], payload...); x.into == nil {
			x.into = []byte{}
		}
		return abi.OK
	}
	t.reply = t.Keep(payload)
	return abi.OK
}

// givenReply is the reply of the turn.
func (t *turn) givenReply() []byte {
	if t.replyHere {
		return t.caller.into
	}
	return t.Bytes(t.reply)
}

// notWaiting is the error of the dead letter of a reply whose request no longer has a
// waiting sender, and notWaitingBefore is its text in sessions of earlier versions.
const (
	notWaiting       = "the sender of the request no longer waits in this graph"
	notWaitingBefore = "who asked is not waiting in this graph any more"
)

// NotWaiting reports whether the error of a dead letter says that it is a reply whose
// request no longer has a waiting sender.
func NotWaiting(text string) bool { return text == notWaiting || text == notWaitingBefore }

// noteRequest remembers a request that was just sent.
func (g section) noteRequest(c *creature, q *question) {
	if c.questions == nil {
		c.questions = map[journal.EventID]*question{}
	}
	c.questions[q.key] = q
	g.await(c, q)
}

// await makes sure that a request is answered.
func (g section) await(c *creature, q *question) {
	if q.out != nil {
		g.launch(c, q)
		return
	}
	e := g.engine
	q.timer = e.timers.At(time.Unix(0, q.row.Deadline), func() { e.expire(c, q) })
}

// expire answers a request whose deadline has passed.
func (e *core) expire(c *creature, q *question) {
	wall := e.wallClock()
	g := c.home.enterAt(wall)
	if g.none() {
		return
	}
	var w waker
	if !e.isClosing() && c.questions[q.key] == q {
		rec := g.newRecord()
		g.answerOpenRequest(rec, &w, c, q.key, answer{code: abi.Deadline, text: "no reply came in time"}, journal.EventID{}, journal.EventID{})
		g.append(rec)
	}
	g.leave()
	w.flush(e)
}

// answerOpenRequest delivers the answer to a request, if it is still open, and reports
// whether it was. request is the id that it was sent with.
func (g section) answerOpenRequest(rec *journal.Record, w *waker, c *creature, request journal.EventID, a answer, turn, cause journal.EventID) bool {
	q := c.questions[request]
	if q == nil {
		return false
	}
	g.engine.timers.Stop(q.timer)
	delete(c.questions, request)
	if rec != nil {
		rec.Drop.Requests = append(rec.Drop.Requests, q.row.ID)
	}
	m := resultOf(&q.row, a)
	g.post(rec, w, c, m, turn, cause)
	return true
}

// resultOf is the delivery that answers a request.
func resultOf(row *journal.RequestRow, a answer) *message.Message {
	m := message.Result(row, a.code, a.text, a.payload, a.headers)
	if a.from != nil {
		m.Sender, m.SenderName = a.from.id, a.from.name
	}
	return m
}

// answerFailed answers a request whose turn has failed for good, if its sender still waits.
func (w *turnWorker) answerFailed(g section, rec *journal.Record, m *message.Message, a answer) {
	if m.Kind != abi.KindRequest {
		return
	}
	if m.Sender == "" {
		w.turn.answerCaller(g, m.ID, a)
	} else if asker := g.creatures[m.Sender]; asker != nil {
		g.answerOpenRequest(rec, &w.wake, asker, m.ID, a, journal.EventID{}, m.LogID())
	}
}
