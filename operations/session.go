package operations

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ApplyArgs are the arguments of apply.
type ApplyArgs struct {
	Recipe   string            `json:"recipe" op:"required" doc:"path of a file or folder"`
	Vars     map[string]string `json:"vars,omitempty" doc:"values of variables, as on the command line"`
	PlanOnly bool              `json:"plan_only,omitempty" doc:"only say what would change"`
}

// ApplyResult is the result of apply.
type ApplyResult struct {
	Creatures map[string]terrarium.CreatureID `json:"creatures"` // by address
	Channels  map[string]terrarium.ChannelID  `json:"channels"`  // by address
	Resumed   []string                        `json:"resumed"`
	Changed   []string                        `json:"changed,omitempty"` // those of them that ran, and have another instance now
	Created   []string                        `json:"created"`
	Removed   []RemovedRecord                 `json:"removed"`
	Problems  []*ErrorRecord                  `json:"problems,omitempty"` // stores that were set aside
	Plan      *PlanRecord                     `json:"plan,omitempty"`     // if only that was asked for
}

// RemovedRecord is something that was there and the recipe does not have.
type RemovedRecord struct {
	Address string `json:"address"`
	Pending uint64 `json:"pending"`
}

// SubscribeArgs are the arguments of subscribe.
type SubscribeArgs struct {
	Kinds     []string `json:"kinds,omitempty" doc:"only events of these kinds"`
	Creatures []string `json:"creatures,omitempty" doc:"only events about these creatures"`
	Graphs    []string `json:"graphs,omitempty" doc:"only events of these graphs, by any id they have had"`
	Channels  []string `json:"channels,omitempty" doc:"only events of these channels"`
	After     string   `json:"after,omitempty" doc:"first what the session stores have behind this cursor, which every event has; start begins at the beginning"`
	Buffer    int      `json:"buffer,omitempty" doc:"events held for a slow subscriber; beyond it an event lagged counts what is left out"`
}

// SubscriptionResult names a subscription.
type SubscriptionResult struct {
	Subscription string `json:"subscription"`
}

// UnsubscribeArgs are the arguments of unsubscribe.
type UnsubscribeArgs struct {
	Subscription string `json:"subscription" op:"required" doc:"what subscribe answered"`
}

// ShutdownArgs are the arguments of shutdown.
type ShutdownArgs struct{}

// Empty is the result of operations that have none.
type Empty struct{}

func sessionOperations() []Operation {
	return []Operation{
		read("apply", "Makes a recipe exist: all of it or nothing.", apply),
		ofConnection(read("subscribe", "Starts sending events as lines of the form {\"subscription\": …, \"event\": {…}}.", subscribe)),
		ofConnection(read("unsubscribe", "Ends a subscription.", unsubscribe)),
		ofConnection(read("shutdown", "Ends the connection after its answers, and with the command exec the engine.", shutdown)),
	}
}

func apply(ctx context.Context, s *client, a *ApplyArgs) (*ApplyResult, error) {
	o := terrarium.RecipeOptions{Vars: a.Vars}
	if a.PlanOnly {
		plan, err := s.t.PlanApply(ctx, a.Recipe, o)
		if err != nil {
			return nil, err
		}
		out := newApplyResult(&terrarium.Applied{Creatures: map[string]terrarium.CreatureID{}, Channels: map[string]terrarium.ChannelID{}})
		out.Plan = NewPlanRecord(plan)
		return out, nil
	}
	applied, err := s.t.Apply(ctx, a.Recipe, o)
	if err != nil {
		return nil, err
	}
	return newApplyResult(applied), nil
}

func newApplyResult(applied *terrarium.Applied) *ApplyResult {
	out := &ApplyResult{
		Creatures: applied.Creatures, Channels: applied.Channels,
		Resumed: append([]string{}, applied.Resumed...), Changed: applied.Changed, Created: append([]string{}, applied.Created...), Removed: []RemovedRecord{},
	}
	for _, r := range applied.Removed {
		out.Removed = append(out.Removed, RemovedRecord(r))
	}
	out.Problems = errorRecords(applied.Problems)
	return out
}

// eventLine is one event of a subscription.
type eventLine struct {
	Subscription string      `json:"subscription"`
	Event        EventRecord `json:"event"`
}

const (
	// maxBuffer bounds what the subscriptions of a connection may hold together: some
	// hundred megabytes.
	maxBuffer = engine.MaxSubscriptionBuffer
	// maxSubscriptions bounds what every event of the engine costs.
	maxSubscriptions = 100
	// maxFiltered is how many creatures, graphs and channels one may name.
	maxFiltered = 1000
)

func subscribe(ctx context.Context, s *client, a *SubscribeArgs) (*SubscriptionResult, error) {
	if s.out == nil {
		return nil, &abi.Error{Code: abi.Unsupported, Op: "subscribe", Message: "there is no connection to send events on", Remedy: "use Subscribe, or Serve"}
	}
	if n := len(a.Creatures) + len(a.Graphs) + len(a.Channels); n > maxFiltered {
		return nil, invalid("subscribe", fmt.Sprintf("%d creatures, graphs and channels are more than %d", n, maxFiltered), "name fewer, or leave out those that others do not need")
	}
	buffer := cmp.Or(a.Buffer, engine.DefaultSubscriptionBuffer)
	if err := s.roomFor(buffer); err != nil {
		return nil, err
	}
	f, err := s.filter(ctx, a)
	if err != nil {
		return nil, err
	}
	var sub *engine.Subscription
	if a.After == "" {
		sub = s.t.Subscribe(f, buffer)
	} else if sub, err = s.t.SubscribeAfter(ctx, f, journal.EventCursor(a.After), buffer); err != nil {
		return nil, err
	}
	s.subMu.Lock()
	s.lastSub++
	name := fmt.Sprintf("s%d", s.lastSub)
	s.subs[name] = subscription{sub, buffer}
	s.subMu.Unlock()
	s.waiting.Go(func() {
		for ob := range sub.All(ctx) {
			r := NewEventRecord(&ob.Event)
			r.Seq, r.ChannelSeq = ob.Seq, ob.Event.Seq
			if !ob.Event.ID.IsZero() {
				r.Cursor = sub.Cursor()
			}
			s.write(eventLine{name, r})
		}
	})
	return &SubscriptionResult{name}, nil
}

// subscription is one of a connection.
type subscription struct {
	*engine.Subscription
	buffer int
}

// roomFor answers an error if the connection may not have another subscription that
// holds so many events.
func (s *client) roomFor(buffer int) error {
	s.subMu.Lock()
	defer s.subMu.Unlock()
	if len(s.subs) >= maxSubscriptions {
		return &abi.Error{
			Code: abi.LimitExceeded, Op: "subscribe", Message: fmt.Sprintf("the connection has %d subscriptions already", maxSubscriptions),
			Remedy: "end one with unsubscribe, or have one tell more: kinds, creatures, graphs and channels are lists",
		}
	}
	held := 0
	for _, sub := range s.subs {
		held += sub.buffer
	}
	if buffer > maxBuffer-held {
		return &abi.Error{
			Code: abi.LimitExceeded, Op: "subscribe",
			Message: fmt.Sprintf("the field \"buffer\" is %d, and the subscriptions of a connection hold %d at most together, of which %d are taken", buffer, maxBuffer, held),
			Remedy:  "ask for less, and catch up with history",
		}
	}
	return nil
}

func (s *client) filter(ctx context.Context, a *SubscribeArgs) (f engine.Filter, err error) {
	if f.Kinds, err = ParseKinds("subscribe", a.Kinds); err != nil {
		return f, err
	}
	for _, name := range a.Creatures {
		id, err := s.t.FindCreature("", name)
		if err != nil {
			return f, err
		}
		f.Creatures = append(f.Creatures, id)
	}
	for _, name := range a.Graphs {
		// An id that is not live any more is fine: its graph may have merged.
		id, err := s.t.FindGraph(ctx, name)
		if err != nil {
			return f, err
		}
		f.Graphs = append(f.Graphs, id)
		if string(id) != name {
			f.Graphs = append(f.Graphs, terrarium.GraphID(name))
		}
	}
	for _, name := range a.Channels {
		id, err := s.t.FindChannel("", name)
		if err != nil {
			return f, err
		}
		f.Channels = append(f.Channels, id)
	}
	f.Graphs = slices.Compact(f.Graphs)
	return f, nil
}

func unsubscribe(_ context.Context, s *client, a *UnsubscribeArgs) (*Empty, error) {
	s.subMu.Lock()
	defer s.subMu.Unlock()
	sub, ok := s.subs[a.Subscription]
	if !ok {
		return nil, &abi.Error{Code: abi.NotFound, Op: "unsubscribe", Message: "there is no subscription " + a.Subscription, Remedy: "subscribe answers the names"}
	}
	delete(s.subs, a.Subscription)
	sub.Close()
	return &Empty{}, nil
}

func (s *client) endSubscriptions() {
	s.subMu.Lock()
	defer s.subMu.Unlock()
	for _, sub := range s.subs {
		sub.Close()
	}
	clear(s.subs)
}

func shutdown(_ context.Context, s *client, _ *ShutdownArgs) (*Empty, error) {
	s.over = true
	return &Empty{}, nil
}
