package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Run adds a module as a creature with the limits of one of its ends, sends it
// a message if it starts, removes it, and reports. The error is about the
// stage or ctx, not about the module.
func (s *Stage) Run(ctx context.Context, m *Module, end *End) (*Report, error) {
	if m.Config != "" {
		if err := s.keepScripts(ctx); err != nil {
			return nil, err
		}
	}
	traffic, err := startTraffic(ctx, s)
	if err != nil {
		return nil, err
	}
	resetPeak()
	collector := s.startCollector()
	r, err := s.attack(ctx, "hostile", m, end, traffic, max(m.Lasts, aftermath))
	r.Collection = collector.stop()
	r.Before, r.Peak = s.resting, peak()
	seen, terr := traffic.stop()
	r.Neighbours = seen
	if err = errors.Join(err, terr); err != nil {
		return r, err
	}
	if err := s.words.take(); err != nil && r.Code == abi.OK {
		r.fail(err) // its creature_stop
	}
	r.Broken = s.checkAlive(ctx)
	r.After, err = s.rest(ctx)
	return r, err
}

// RunAll runs modules like [Stage.Run], but all at the same time, each under
// the first of its ends. The reports are in the order of the modules; they
// contain neither memory use nor a failing creature_stop.
func (s *Stage) RunAll(ctx context.Context, modules []Module) ([]*Report, error) {
	traffic, err := startTraffic(ctx, s)
	if err != nil {
		return nil, err
	}
	reports, errs := make([]*Report, len(modules)), make([]error, len(modules))
	var all sync.WaitGroup
	for i := range modules {
		all.Go(func() {
			m := &modules[i]
			reports[i], errs[i] = s.attack(ctx, "hostile-"+m.Name, m, &m.Ends[0], traffic, 1)
		})
	}
	all.Wait()
	seen, err := traffic.stop()
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	s.words.take()
	broken := s.checkAlive(ctx)
	for _, r := range reports {
		r.Neighbours, r.Broken = seen, broken
	}
	return reports, nil
}

// attack provokes a hostile creature, leaves it alone for some rounds of the
// neighbours, removes it and returns how it ended.
func (s *Stage) attack(ctx context.Context, name string, m *Module, end *End, t *traffic, rounds int) (*Report, error) {
	r := &Report{In: abi.ExportHandle}
	spec := s.specOf(name, m, end)
	began := time.Now()
	added, err := s.t.AddCreature(ctx, spec)
	if err != nil {
		r.Took = time.Since(began)
		r.fail(err)
		return r, ctx.Err()
	}
	if err := s.provoke(ctx, added.Creature, r); err != nil {
		return r, err
	}
	if err := t.more(ctx, rounds); err != nil {
		return r, err
	}
	if _, err := s.t.RemoveCreature(ctx, added.Creature); err != nil {
		return r, err
	}
	return r, s.t.WaitIdle(ctx)
}

// specOf returns the specification of a hostile creature beside the victim.
// Limits that an end does not set are so large that they do not decide the
// outcome, even on a slow machine.
func (s *Stage) specOf(name string, m *Module, end *End) deploy.CreatureSpec {
	spec := deploy.CreatureSpec{
		Name: name, Wasm: m.Build(), Limits: end.Limits, Join: s.graph,
		Privileged: m.Privileged, Config: json.RawMessage(m.Config),
		Restart:  deploy.RestartPolicy{Mode: deploy.RestartNever},
		Overflow: deploy.OverflowDeadLetter, // a storm must not block outside senders
	}
	if !m.Unwired {
		spec.Send = wires(loot)
	}
	if spec.Limits.Fuel == 0 {
		spec.Limits.Fuel = muchFuel
	}
	if spec.Limits.Deadline == 0 {
		spec.Limits.Deadline = muchTime
	}
	return spec
}

// CloseDuring adds a module that does not return, with limits that would let
// it run for an hour, sends it a message, and closes the engine without
// waiting as soon as its turn has begun. It returns how long closing took. The
// stage cannot be used afterwards.
func (s *Stage) CloseDuring(ctx context.Context, m *Module) (time.Duration, error) {
	spec := s.specOf("hostile", m, &End{Limits: abi.Limits{Deadline: time.Hour}})
	added, err := s.t.AddCreature(ctx, spec)
	if err != nil {
		return 0, errors.Join(err, s.Close(ctx))
	}
	sub := s.t.Subscribe(engine.Filter{
		Kinds: []journal.EventKind{journal.EventTurnStarted}, Creatures: []journal.CreatureID{added.Creature},
	}, 0)
	defer sub.Close()
	sent, err := s.t.SendTo(ctx, added.Creature, engine.Outgoing{})
	for err == nil {
		var ob engine.Observed
		if ob, err = sub.Next(ctx); ob.Event.Cause == sent.Message {
			break
		}
	}
	if err != nil {
		return 0, errors.Join(err, s.Close(ctx))
	}
	atOnce, cancel := context.WithCancel(ctx)
	cancel()
	began := time.Now()
	err = s.Close(atOnce)
	return time.Since(began), err
}

// aftermath is how many more rounds the neighbours make before a surviving
// creature is removed: storms continue meanwhile.
const aftermath = 50

// provoke sends the creature a message and waits for the end of its turn.
func (s *Stage) provoke(ctx context.Context, hostile journal.CreatureID, r *Report) error {
	sub := s.t.Subscribe(engine.Filter{
		Kinds:     []journal.EventKind{journal.EventTurnStarted, journal.EventTurnEnded, journal.EventTurnFailed},
		Creatures: []journal.CreatureID{hostile},
	}, 64)
	defer sub.Close()
	sent, err := s.t.SendTo(ctx, hostile, engine.Outgoing{})
	if err != nil {
		return err
	}
	var began int64
	for {
		ob, err := sub.Next(ctx)
		if err != nil {
			return fmt.Errorf("the turn does not end: %w", err)
		}
		ev := &ob.Event
		if ev.Cause != sent.Message {
			continue // the turn of its start
		}
		if ev.Kind == journal.EventTurnStarted {
			began = ev.Time
			continue
		}
		r.Took = max(0, time.Duration(ev.Time-began))
		if ev.Kind == journal.EventTurnFailed {
			return r.failedTurn(ev)
		}
		return nil
	}
}

// checkAlive returns an error if the engine no longer works.
func (s *Stage) checkAlive(ctx context.Context) error {
	added, err := s.t.AddCreature(ctx, deploy.CreatureSpec{Name: "newcomer", Module: "builtin:echo"})
	if err != nil {
		return fmt.Errorf("adding a creature afterwards: %w", err)
	}
	for _, id := range []journal.CreatureID{s.victim, added.Creature} {
		before, err := s.turns(ctx, id)
		if err != nil {
			return err
		}
		if _, err := s.t.SendTo(ctx, id, engine.Outgoing{Payload: []byte("still there?")}); err != nil {
			return fmt.Errorf("sending to a creature afterwards: %w", err)
		}
		if err := s.t.WaitIdle(ctx); err != nil {
			return err
		}
		after, err := s.turns(ctx, id)
		if err != nil {
			return err
		}
		if after == before {
			return fmt.Errorf("the creature %s no longer handles messages", id)
		}
	}
	if _, err := s.t.RemoveCreature(ctx, added.Creature); err != nil {
		return fmt.Errorf("removing a creature afterwards: %w", err)
	}
	return nil
}

// turns returns how many turns a creature has completed.
func (s *Stage) turns(ctx context.Context, id journal.CreatureID) (uint64, error) {
	graph, err := s.t.FindGraph(ctx, string(id))
	if err != nil {
		return 0, err
	}
	graphs, err := s.t.Status(graph)
	if err != nil {
		return 0, err
	}
	for _, c := range graphs[0].Creatures {
		if c.ID == id {
			return c.Counters.Turns, nil
		}
	}
	return 0, fmt.Errorf("the creature %s is not in its graph", id)
}
