package engine

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// DefaultRequestDeadline is how long [Engine.Request] waits by default.
const DefaultRequestDeadline = 30 * time.Second

// Request sends a direct message to a creature and waits for its reply, and until the reply is as
// durable as its graph promises. A deadline of zero means [DefaultRequestDeadline].
//
// If the creature is idle and its graph has no store, the turn may run in the goroutine of
// the caller, whose context and deadline interrupt it; a worker then runs it again. The
// payload must not change before Request returns.
//
// Codes of the error: deadline, if no reply came in time. unknown_outcome, if ctx ended, the
// engine was closed or the store failed before a reply was durable: the request may or may not be
// handled. unavailable, if the creature handled it without a reply. not_connected, if the creature
// was removed before it handled the request. The code of the creature's failure, if the request
// became a dead letter. Any other code means that the request was refused.
func (e *Engine) Request(ctx context.Context, to journal.CreatureID, out Outgoing, deadline time.Duration) ([]byte, error) {
	if deadline <= 0 {
		deadline = DefaultRequestDeadline
	}
	here := Call{e: &e.core, to: to, deadline: deadline}
	if ctx.Err() == nil && e.requestHere(ctx, to, &out, &here) {
		return here.Reply(ctx)
	}
	call, err := e.Ask(ctx, to, out, deadline)
	if err != nil {
		return nil, err
	}
	return call.Reply(ctx)
}

// Call is a request that has been sent.
type Call struct {
	e        *core
	to       journal.CreatureID
	ch       *channel
	request  journal.EventID
	deadline time.Duration
	until    int64 // when the deadline is; 0: it counts from Reply on
	into     []byte
	reply    chan callerAnswer
	answered bool // with answer, before Reply
	answer   callerAnswer
}

// Ask is the first half of [Engine.Request]: it returns when the request has its place in
// the creature's inbox. The caller must call Reply once.
func (e *Engine) Ask(ctx context.Context, to journal.CreatureID, out Outgoing, deadline time.Duration) (*Call, error) {
	if err := ctx.Err(); err != nil {
		return nil, &abi.Error{Code: abi.Stopped, Op: "request", Message: "the caller has already stopped waiting", Err: err}
	}
	if deadline <= 0 {
		deadline = DefaultRequestDeadline
	}
	l := e.core.rlock()
	ch := l.channels[journal.InboxOf(to)]
	l.runlock()
	if ch == nil {
		err := errtext.Gone("creature", string(to))
		err.Op = "request"
		return nil, err
	}
	headers, err := message.RequestHeaders(nil, out.Headers, deadline)
	if err != nil {
		return nil, err
	}
	call := &Call{e: &e.core, to: to, ch: ch, deadline: deadline, into: out.Into, reply: make(chan callerAnswer, 1)}
	out.kind, out.reply = abi.KindRequest, call.reply
	out.Durable = false // Reply waits, for the answer as well
	sent, err := e.sendOn(ctx, ch, out, headers)
	call.request = sent.Message
	return call, err
}

// Reply waits for the reply, at most until the deadline.
func (c *Call) Reply(ctx context.Context) ([]byte, error) {
	if c.answered {
		return c.received(ctx, c.answer)
	}
	defer c.e.callers.Delete(c.request)
	wait := c.deadline
	if c.until != 0 {
		wait = max(0, time.Duration(c.until-c.e.wallClock()))
	}
	expired, stop := c.e.clock.Timer(wait)
	defer stop()
	select {
	case a := <-c.reply:
		return c.received(ctx, a)
	case <-expired:
		return nil, errtext.NoReply(c.to)
	case <-ctx.Done():
		return nil, c.unknown("the caller stopped waiting for the reply, and the request may still be handled", context.Cause(ctx))
	case <-c.e.closing:
	}
	select { // the answer may have come just before
	case a := <-c.reply:
		return c.received(ctx, a)
	default:
		return nil, c.unknown("the engine was closed before a reply came, and the request may still be handled", nil)
	}
}

func (c *Call) unknown(message string, cause error) error {
	return errtext.UnknownOutcome("request", message, "look for the request in the history before asking again", cause).
		With("creature", string(c.to)).With("message", c.request.String())
}

// received returns what the caller gets for an answer, once that is durable.
func (c *Call) received(ctx context.Context, a callerAnswer) ([]byte, error) {
	if err := (Sent{ch: c.ch, store: a.store, upTo: a.seq}).wait(ctx); err != nil {
		return nil, c.unknown("the request was answered, but the answer may be lost", err)
	}
	if a.code != abi.OK {
		return nil, &abi.Error{Code: a.code, Op: "request", Message: a.text, IDs: map[string]string{"creature": string(c.to)}}
	}
	if c.into != nil {
		return append(c.into[:0], a.payload...), nil
	}
	return a.payload, nil
}
