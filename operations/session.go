package operations

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ApplyArgs are the arguments of apply.
type ApplyArgs struct {
	Recipe   string            `json:"recipe" op:"required" doc:"path of a file or directory"`
	Vars     map[string]string `json:"vars,omitempty" doc:"values of variables, as on the command line"`
	PlanOnly bool              `json:"plan_only,omitempty" doc:"only return the plan: what would change"`
	Saved    json.RawMessage   `json:"saved,omitempty" doc:"a plan that save returned: apply exactly this plan or, if something has changed since, fail with the code conflict"`
	Save     bool              `json:"save,omitempty" doc:"with plan_only: also return the plan for a later apply"`
}

// ApplyResult is the result of apply.
type ApplyResult struct {
	Creatures map[string]terrarium.CreatureID `json:"creatures"`          // by address
	Channels  map[string]terrarium.ChannelID  `json:"channels"`           // by address
	Resumed   []string                        `json:"resumed"`            // addresses that existed before and continue
	Changed   []string                        `json:"changed,omitempty"`  // resumed creatures that were running and got a new instance
	Created   []string                        `json:"created"`            // addresses that did not exist before
	Removed   []RemovedRecord                 `json:"removed"`            // what was removed, because the recipe no longer declares it
	Problems  []*ErrorRecord                  `json:"problems,omitempty"` // stores that were set aside
	Plan      *PlanRecord                     `json:"plan,omitempty"`     // with plan_only
	Saved     *terrarium.SavedPlan            `json:"saved,omitempty"`    // with save: the plan for a later apply
}

// RemovedRecord is a creature or channel that was removed, because the recipe no longer declares it.
type RemovedRecord struct {
	Address string `json:"address"` // address that it had in the recipe
	Pending uint64 `json:"pending"` // deliveries that waited for it, and are dead letters now
}

// SubscribeArgs are the arguments of subscribe.
type SubscribeArgs struct {
	Kinds     []string `json:"kinds,omitempty" doc:"only events of these kinds"`
	Creatures []string `json:"creatures,omitempty" doc:"only events about these creatures"`
	Graphs    []string `json:"graphs,omitempty" doc:"only events of these graphs, each by any id it has had"`
	Channels  []string `json:"channels,omitempty" doc:"only events of these channels"`
	After     string   `json:"after,omitempty" doc:"cursor of an event, to first send the logged events after it; start means from the beginning"`
	Buffer    int      `json:"buffer,omitempty" doc:"number of events held for a slow subscriber; a lagged event counts those dropped beyond it"`
}

// SubscriptionResult names a subscription.
type SubscriptionResult struct {
	Subscription string `json:"subscription"` // name of the subscription, which its events repeat
}

// UnsubscribeArgs are the arguments of unsubscribe.
type UnsubscribeArgs struct {
	Subscription string `json:"subscription" op:"required" doc:"the name that subscribe returned"`
}

// ShutdownArgs are the arguments of shutdown.
type ShutdownArgs struct{}

// Empty is the result of operations without a result.
type Empty struct{}

func sessionOperations() []Operation {
	return []Operation{
		read("apply", "Applies a recipe, all or nothing.", apply).needs(Admin),
		ofConnection(read("subscribe", "Starts a subscription, which sends events as lines of the form {\"subscription\": …, \"event\": {…}}.", subscribe)),
		ofConnection(read("unsubscribe", "Ends a subscription.", unsubscribe)),
		ofConnection(read("shutdown", "Ends the connection after all answers have been written. In exec, this also ends the engine.", shutdown)),
	}
}

func apply(ctx context.Context, s *client, a *ApplyArgs) (*ApplyResult, error) {
	o := terrarium.RecipeOptions{Vars: a.Vars}
	var applied *terrarium.Applied
	var err error
	switch {
	case a.PlanOnly && len(a.Saved) > 0:
		return nil, invalid("apply", "plan_only and saved exclude each other", "leave out one of them")
	case a.Save && !a.PlanOnly:
		return nil, invalid("apply", "save is only for plan_only", "add plan_only, or leave out save")
	case a.PlanOnly:
		return planApply(ctx, s, a, o)
	case len(a.Saved) > 0:
		applied, err = applySaved(ctx, s, a, o)
	default:
		applied, err = s.t.Apply(ctx, a.Recipe, o)
	}
	if err != nil {
		return nil, err
	}
	return NewApplyResult(applied), nil
}

// planApply plans, and changes nothing.
func planApply(ctx context.Context, s *client, a *ApplyArgs, o terrarium.RecipeOptions) (*ApplyResult, error) {
	out := NewApplyResult(&terrarium.Applied{Creatures: map[string]terrarium.CreatureID{}, Channels: map[string]terrarium.ChannelID{}})
	var plan *diff.Plan
	var err error
	if a.Save {
		plan, out.Saved, err = s.t.SavePlan(ctx, a.Recipe, o)
	} else {
		plan, err = s.t.PlanApply(ctx, a.Recipe, o)
	}
	if err != nil {
		return nil, err
	}
	out.Plan = NewPlanRecord(plan)
	return out, nil
}

// applySaved applies a saved plan for the recipe that the request names.
func applySaved(ctx context.Context, s *client, a *ApplyArgs, o terrarium.RecipeOptions) (*terrarium.Applied, error) {
	p, err := terrarium.ReadPlan(bytes.NewReader(a.Saved))
	if err != nil {
		return nil, err
	}
	if !p.IsFor(a.Recipe) {
		return nil, invalid("apply", fmt.Sprintf("the saved plan is for %s, and not for %s", p.Recipe, a.Recipe), "name the recipe of the plan, or plan again")
	}
	return s.t.ApplyPlan(ctx, p, o)
}

// NewApplyResult returns the JSON form of what applying a recipe did.
func NewApplyResult(applied *terrarium.Applied) *ApplyResult {
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

// eventLine is an event of a subscription.
type eventLine struct {
	Subscription string      `json:"subscription"`
	Event        EventRecord `json:"event"`
}

const (
	// maxBuffer bounds the events that all subscriptions of a connection hold together:
	// some hundred megabytes.
	maxBuffer = engine.MaxSubscriptionBuffer
	// maxSubscriptions bounds the cost of every event in the engine.
	maxSubscriptions = 100
	// maxFiltered is the most creatures, graphs and channels that a subscription may name.
	maxFiltered = 1000
)

func subscribe(ctx context.Context, s *client, a *SubscribeArgs) (*SubscriptionResult, error) {
	buffer, err := s.bufferOf(a)
	if err != nil {
		return nil, err
	}
	sub, err := s.startSubscription(ctx, a, buffer)
	if err != nil {
		return nil, err
	}
	s.subMu.Lock()
	s.lastSub++
	name := fmt.Sprintf("s%d", s.lastSub)
	s.subs[name] = subscription{sub, buffer}
	s.subMu.Unlock()
	s.waiting.Go(func() {
		for ob := range sub.All(ctx) {
			s.write(eventLine{name, NewObservedRecord(sub, &ob)})
		}
	})
	return &SubscriptionResult{name}, nil
}

// subscription is a subscription of a connection.
type subscription struct {
	*engine.Subscription
	buffer int
}

// bufferOf returns the number of events that a subscription holds.
func (s *client) bufferOf(a *SubscribeArgs) (int, error) {
	buffer := cmp.Or(a.Buffer, engine.DefaultSubscriptionBuffer)
	return buffer, s.roomFor(buffer)
}

// roomFor returns an error if the connection may not have another subscription with
// a buffer of this size.
func (s *client) roomFor(buffer int) error {
	s.subMu.Lock()
	defer s.subMu.Unlock()
	if len(s.subs) >= maxSubscriptions {
		return &abi.Error{
			Code: abi.LimitExceeded, Op: "subscribe", Message: fmt.Sprintf("the connection has %d subscriptions already", maxSubscriptions),
			Remedy: "end one with unsubscribe, or widen an existing one: kinds, creatures, graphs and channels are lists",
		}
	}
	held := 0
	for _, sub := range s.subs {
		held += sub.buffer
	}
	if buffer > maxBuffer-held {
		return &abi.Error{
			Code: abi.LimitExceeded, Op: "subscribe",
			Message: fmt.Sprintf("the field \"buffer\" is %d, but all subscriptions of a connection together may hold %d events, and %d are already taken", buffer, maxBuffer, held),
			Remedy:  "use a smaller buffer, and catch up with history",
		}
	}
	return nil
}

// startSubscription starts a subscription that holds a number of events.
func (s *client) startSubscription(ctx context.Context, a *SubscribeArgs, buffer int) (*engine.Subscription, error) {
	if n := len(a.Creatures) + len(a.Graphs) + len(a.Channels); n > maxFiltered {
		return nil, invalid("subscribe", fmt.Sprintf("%d creatures, graphs and channels are more than the %d allowed", n, maxFiltered), "name fewer, or divide them among several subscriptions")
	}
	f, err := s.filter(ctx, a)
	if err != nil {
		return nil, err
	}
	if a.After == "" {
		return s.t.Subscribe(f, buffer), nil
	}
	return s.t.SubscribeAfter(ctx, f, journal.EventCursor(a.After), buffer)
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
		// The id of an ended graph is valid, because the graph may have merged.
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
		return nil, &abi.Error{Code: abi.NotFound, Op: "unsubscribe", Message: "there is no subscription " + a.Subscription, Remedy: "use a name that subscribe has returned"}
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
