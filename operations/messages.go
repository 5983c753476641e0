package operations

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// SendArgs are the arguments of send.
type SendArgs struct {
	Channel  string            `json:"channel" op:"required" doc:"id, or name where it is unique"`
	Graph    string            `json:"graph,omitempty" doc:"where the name is looked up"`
	Payload  Payload           `json:"payload" op:"required" doc:"the bytes"`
	Headers  map[string]string `json:"headers,omitempty" doc:"names and values without NUL"`
	Durable  bool              `json:"durable,omitempty" doc:"answer once it is as durable as the graph promises; unknown_outcome says that it was taken in, and not whether it lasts"`
	Producer string            `json:"producer,omitempty" doc:"with offset: take nothing in twice; so what had an unknown outcome is sent again without doubling it"`
	Offset   uint64            `json:"offset,omitempty" doc:"rising number of the producer, from 1"`
}

// SendResult is the result of send.
type SendResult struct {
	Message   string `json:"message,omitempty"` // none for a duplicate
	Seq       uint64 `json:"seq"`
	Duplicate bool   `json:"duplicate,omitempty"`
}

// SendToArgs are the arguments of send_to.
type SendToArgs struct {
	Creature string            `json:"creature" op:"required" doc:"id, or name where it is unique"`
	Payload  Payload           `json:"payload" op:"required" doc:"the bytes"`
	Headers  map[string]string `json:"headers,omitempty" doc:"names and values without NUL"`
	Durable  bool              `json:"durable,omitempty" doc:"answer once it is as durable as the graph promises; unknown_outcome says that it was taken in, and not whether it lasts"`
	Producer string            `json:"producer,omitempty" doc:"with offset: take nothing in twice; so what had an unknown outcome is sent again without doubling it"`
	Offset   uint64            `json:"offset,omitempty" doc:"rising number of the producer, from 1"`
}

// WaitIdleArgs are the arguments of wait_idle.
type WaitIdleArgs struct {
	Timeout Duration `json:"timeout,omitempty" doc:"how long to wait at most; without it, as long as it takes"`
}

// WaitIdleResult is the result of wait_idle.
type WaitIdleResult struct {
	Idle        bool  `json:"idle"`
	DeadLetters int64 `json:"dead_letters"`
}

func messageOperations() []Operation {
	return []Operation{
		wait("send", "Publishes a message on a channel.", send),
		wait("send_to", "Sends a message directly to a creature.", sendTo),
		wait("wait_idle", "Waits until no delivery is runnable, no turn is running and none waits to be tried again.", waitIdle),
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

// sending is the second half of a send: waiting for the disk, if that was asked
// for. The message has its place already, so none of a producer's messages
// overtakes another.
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
