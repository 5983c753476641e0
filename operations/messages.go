package operations

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// SendArgs are the arguments of send.
type SendArgs struct {
	Channel  string            `json:"channel" op:"required" doc:"id, or a name that is unique"`
	Graph    string            `json:"graph,omitempty" doc:"graph in which to look up the name"`
	Payload  Payload           `json:"payload" op:"required" doc:"bytes of the message"`
	Headers  map[string]string `json:"headers,omitempty" doc:"headers; names and values must not contain NUL"`
	Durable  bool              `json:"durable,omitempty" doc:"answer when the message is as durable as the graph promises; unknown_outcome means that it was accepted but may be lost in a crash"`
	Producer string            `json:"producer,omitempty" doc:"name of the producer, together with offset: each offset of a producer is accepted once, so that a message with an unknown outcome can be sent again without duplicating it"`
	Offset   uint64            `json:"offset,omitempty" doc:"number of the message, from 1 and increasing for each producer"`
}

// SendResult is the result of send.
type SendResult struct {
	Message   string `json:"message,omitempty"`   // absent for a duplicate
	Seq       uint64 `json:"seq"`                 // number of the message in its channel or inbox
	Duplicate bool   `json:"duplicate,omitempty"` // whether the producer had sent it before
}

// SendToArgs are the arguments of send_to.
type SendToArgs struct {
	Creature string            `json:"creature" op:"required" doc:"id, or a name that is unique"`
	Payload  Payload           `json:"payload" op:"required" doc:"bytes of the message"`
	Headers  map[string]string `json:"headers,omitempty" doc:"headers; names and values must not contain NUL"`
	Durable  bool              `json:"durable,omitempty" doc:"answer when the message is as durable as the graph promises; unknown_outcome means that it was accepted but may be lost in a crash"`
	Producer string            `json:"producer,omitempty" doc:"name of the producer, together with offset: each offset of a producer is accepted once, so that a message with an unknown outcome can be sent again without duplicating it"`
	Offset   uint64            `json:"offset,omitempty" doc:"number of the message, from 1 and increasing for each producer"`
}

// WaitIdleArgs are the arguments of wait_idle.
type WaitIdleArgs struct {
	Timeout Duration `json:"timeout,omitempty" doc:"longest time to wait; if left out, there is no limit"`
}

// WaitIdleResult is the result of wait_idle.
type WaitIdleResult struct {
	Idle        bool  `json:"idle"`         // false if the timeout passed first
	DeadLetters int64 `json:"dead_letters"` // number of dead letters since the engine started
}

func messageOperations() []Operation {
	return []Operation{
		wait("send", "Sends a message on a channel.", send),
		wait("send_to", "Sends a message directly to a creature.", sendTo),
		wait("wait_idle", "Waits until no turn is running, no delivery can run, and none waits for a retry.", waitIdle).needs(Read),
	}
}

func send(ctx context.Context, s *client, a *SendArgs) (*SendResult, func(context.Context) (*SendResult, error), error) {
	ch, err := findChannelArg(s.graphs(ctx), s.t.FindChannel, &ChannelArgs{Channel: a.Channel, Graph: a.Graph})
	if err != nil {
		return nil, nil, err
	}
	sent, err := s.t.Send(ctx, ch, engine.Outgoing{Payload: a.Payload, Headers: a.Headers, Producer: a.Producer, Offset: a.Offset})
	return sending(sent, err, a.Durable)
}

func sendTo(ctx context.Context, s *client, a *SendToArgs) (*SendResult, func(context.Context) (*SendResult, error), error) {
	c, err := s.t.FindCreature("", a.Creature)
	if err != nil {
		return nil, nil, err
	}
	sent, err := s.t.SendTo(ctx, c, engine.Outgoing{Payload: a.Payload, Headers: a.Headers, Producer: a.Producer, Offset: a.Offset})
	return sending(sent, err, a.Durable)
}

// sending is the second half of a send: it waits for the disk if the request is
// durable. The message already has its place, so the messages of a producer stay in
// order.
func sending(sent engine.Sent, err error, durable bool) (*SendResult, func(context.Context) (*SendResult, error), error) {
	if err != nil {
		return nil, nil, err
	}
	result := &SendResult{Message: sent.Message.String(), Seq: sent.Seq, Duplicate: sent.Duplicate}
	if !durable {
		return result, nil, nil
	}
	return nil, func(ctx context.Context) (*SendResult, error) { return result, sent.Wait(ctx) }, nil
}

func waitIdle(_ context.Context, s *client, a *WaitIdleArgs) (*WaitIdleResult, func(context.Context) (*WaitIdleResult, error), error) {
	return nil, func(ctx context.Context) (*WaitIdleResult, error) {
		if a.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(a.Timeout))
			defer cancel()
		}
		err := s.t.WaitIdle(ctx)
		if err != nil && abi.CodeOf(err) != abi.Deadline {
			return nil, err
		}
		return &WaitIdleResult{Idle: err == nil, DeadLetters: s.t.DeadLetterCount()}, nil
	}, nil
}
