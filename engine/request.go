package engine

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// DefaultRequestDeadline is how long [Engine.Request] waits unless it is told
// otherwise.
const DefaultRequestDeadline = 30 * time.Second

// callerAnswer is what a caller outside gets: the answer, and where it stands
// in which log.
type callerAnswer struct {
	answer
	store Store
	seq   uint64
}

// Request sends a direct message to a creature and waits for its reply, and
// until that is as durable as its graph promises. A deadline of zero means
// [DefaultRequestDeadline].
//
// The codes of the error: deadline when no reply came in time; unavailable when
// the creature handled the request without replying; what the creature failed
// with when the request became a dead letter.
func (e *Engine) Request(ctx context.Context, to CreatureID, out Outgoing, deadline time.Duration) ([]byte, error) {
	if deadline <= 0 {
		deadline = DefaultRequestDeadline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, &abi.Error{
		Code: abi.Deadline, Op: "request", Message: "no reply came in time",
		Remedy: "give it a longer deadline; status shows whether the creature runs", IDs: map[string]string{"creature": string(to)},
	})
	defer cancel()
	e.mu.RLock()
	ch := e.channels[InboxOf(to)]
	e.mu.RUnlock()
	if ch == nil {
		err := gone("creature", string(to))
		err.Op = "request"
		return nil, err
	}
	reply := make(chan callerAnswer, 1)
	out.kind, out.reply = abi.KindRequest, reply
	if out.Headers == nil {
		out.Headers = map[string]string{}
	}
	out.Headers[headerDeadline] = strconv.FormatInt(deadline.Milliseconds(), 10)
	sent, err := e.sendOn(ctx, ch, out)
	if err != nil {
		return nil, err
	}
	defer e.callers.Delete(sent.Message)
	select {
	case a := <-reply:
		return e.received(ctx, to, a)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.closing:
		return nil, errClosed
	}
}

// received turns an answer into what the caller gets, once it is durable.
func (e *Engine) received(ctx context.Context, to CreatureID, a callerAnswer) ([]byte, error) {
	if a.store != nil {
		if err := a.store.Wait(ctx, a.seq); err != nil {
			return nil, err
		}
	}
	if a.code != abi.OK {
		return nil, &abi.Error{Code: a.code, Op: "request", Message: a.text, IDs: map[string]string{"creature": string(to)}}
	}
	return a.payload, nil
}

// answerCaller gives an answer to a caller outside, if it still waits. It
// belongs to the critical section whose record holds the turn.
func (e *Engine) answerCaller(g *graph, request EventID, a answer) {
	c, ok := e.callers.LoadAndDelete(request)
	if !ok {
		return
	}
	a.payload = slices.Clone(a.payload)
	c.(chan callerAnswer) <- callerAnswer{a, g.store, g.seq} // has room for one
}
