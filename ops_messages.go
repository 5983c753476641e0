package terrarium

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
	Durable  bool              `json:"durable,omitempty" doc:"answer once it is as durable as the graph promises"`
	Producer string            `json:"producer,omitempty" doc:"with offset: take nothing in twice"`
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
	Durable  bool              `json:"durable,omitempty" doc:"answer once it is as durable as the graph promises"`
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
	// A durable send is not among those that wait aside: a later message of the
	// same producer must not overtake it, or it would be taken for a duplicate.
	send := read("send", "Publishes a message on a channel.", send)
	sendTo := read("send_to", "Sends a message directly to a creature.", sendTo)
	wait := read("wait_idle", "Waits until no delivery is runnable, no turn is running and none waits to be tried again.", waitIdle)
	wait.waits = func(any) bool { return true }
	return []Operation{send, sendTo, wait}
}

func send(ctx context.Context, s *session, a *SendArgs) (*SendResult, error) {
	ch, err := findChannelArg(s.t, &ChannelArgs{Channel: a.Channel, Graph: a.Graph})
	if err != nil {
		return nil, err
	}
	sent, err := s.t.Send(ctx, ch, engine.Outgoing{
		Payload: a.Payload, Headers: a.Headers, Durable: a.Durable, Producer: a.Producer, Offset: a.Offset,
	})
	if err != nil {
		return nil, err
	}
	if sent.Duplicate {
		return &SendResult{Seq: sent.Seq, Duplicate: true}, nil
	}
	return &SendResult{Message: sent.Message.String(), Seq: sent.Seq}, nil
}

func sendTo(ctx context.Context, s *session, a *SendToArgs) (*SendResult, error) {
	c, err := s.t.FindCreature("", a.Creature)
	if err != nil {
		return nil, err
	}
	sent, err := s.t.SendTo(ctx, c, engine.Outgoing{Payload: a.Payload, Headers: a.Headers, Durable: a.Durable})
	if err != nil {
		return nil, err
	}
	return &SendResult{Message: sent.Message.String(), Seq: sent.Seq}, nil
}

func waitIdle(ctx context.Context, s *session, a *WaitIdleArgs) (*WaitIdleResult, error) {
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
}
