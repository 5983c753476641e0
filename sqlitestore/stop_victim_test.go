package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// stopping is the order for a victim whose recipe stops after a number of turns, each of which
// splits or merges its graph.
type stopping struct {
	Cache string // of compiled modules
	Limit int64  // the recipe stops after this many turns
	Goal  uint64 // after this many orders in all, the life ends
	Armed uint64 // the life can end at its point from this order on
}

// cutters are a creature that takes orders, and one that each order splits from its graph or
// merges into it again.
func (s *stopping) cutters() *deploy.Deployment {
	durability := journal.Normal
	limits := abi.Limits{Deadline: time.Minute} // nothing here may depend on how busy the machine is
	on := func(name string) []deploy.WireSpec {
		return []deploy.WireSpec{{Channel: "channel." + name, Alias: name}}
	}
	return &deploy.Deployment{
		Name: "cutters", Session: deploy.SessionSettings{AllowMerge: true, Durability: &durability},
		StopWhen: []deploy.StopWhen{{Name: "enough", Turns: s.Limit}},
		Channels: []deploy.ChannelSpec{{Address: "channel.orders", Name: "orders"}, {Address: "channel.answers", Name: "answers"}},
		Creatures: []deploy.CreatureSpec{
			{Address: "creature.lead", Name: "lead", Module: "operator", Limits: limits, Privileged: true, Listen: on("orders"), Send: on("answers")},
			{Address: "creature.ann", Name: "ann", Module: "relay", Limits: limits, Send: on("orders")},
		},
	}
}

// cutting returns the order with a number: odd orders split the graph, even ones merge the two
// graphs.
func cutting(n uint64, a *engine.Applied) []byte {
	args := callArgs{Action: "unwire", Creature: string(a.Creatures["creature.ann"]), Channel: string(a.Channels["channel.orders"]), Direction: "send"}
	if n%2 == 0 {
		args.Action, args.Merge = "wire", true
	}
	b, _ := json.Marshal(map[string]any{"id": n, "calls": []toolCall{{"group_channel", args}}})
	return b
}

// run continues with the directory, and sends each order when the one before has been handled.
func (s *stopping) run(ctx context.Context, dir string, options Options) error {
	var armed atomic.Bool
	die := options.hooks.Reached
	options.hooks.Reached = func(p failpoint.Point, path string) error {
		if !armed.Load() {
			return nil
		}
		return die(p, path)
	}
	d, err := Open(ctx, dir, options)
	if err != nil {
		return err
	}
	h, err := host.New(ctx, host.Options{CacheDir: s.Cache, CacheKey: s.Cache + ".key"})
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, engine.Options{
		Host: h, Storage: d, Durability: journal.Normal, FreshInstances: fresh.Instances(), Workers: 2,
		Load: func(_ context.Context, module string) ([]byte, error) { return plugins.Get(module) },
	})
	if err != nil {
		return err
	}
	now := s.cutters()
	now.Last = s.cutters() // so that the graphs stay as the orders have left them
	applied, err := e.Apply(ctx, now)
	if err != nil {
		return err
	}
	_, problems, err := e.Restore(ctx)
	if err := errors.Join(append(problems, err, e.WaitIdle(ctx))...); err != nil {
		return err
	}
	known, err := e.Producers(applied.Channels["channel.orders"])
	if err != nil {
		return err
	}
	for n := known["test"] + 1; n <= s.Goal; n++ {
		if n >= s.Armed {
			armed.Store(true)
		}
		if _, err := e.Send(ctx, applied.Channels["channel.orders"], engine.Outgoing{Payload: cutting(n, applied), Producer: "test", Offset: n, Durable: true}); err != nil {
			return err
		}
		if err := e.WaitIdle(ctx); err != nil {
			return err
		}
	}
	return errors.Join(d.Settle(ctx), e.Close(ctx), d.Close(), h.Close(ctx))
}
