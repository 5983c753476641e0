package replay

import (
	"context"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// actor is a creature whose turns are run again. What it holds is added up from the
// log.
type actor struct {
	stage   *stage
	id      journal.CreatureID
	r       *engine.Rehearsal
	setting *journal.Setting // nil: not told yet
	aliases map[journal.ChannelID]string

	// Whether all of what it holds is known. Of what is not, told has the keys and
	// timers that the log has told of.
	allKeys, allTimers bool
	told               map[string]bool

	module   abi.Module // of instance
	instance abi.Instance
}

func newActor(s *stage, id journal.CreatureID) *actor {
	return &actor{stage: s, id: id, r: engine.NewRehearsal(id), aliases: map[journal.ChannelID]string{}, told: map[string]bool{}}
}

// gap says why a turn cannot be judged.
type gap struct {
	reason Reason
	detail string
}

// learn follows an event between the turns of the creature.
func (a *actor) learn(ev *journal.Event) {
	switch ev.Kind {
	case journal.EventState:
		a.write(ev)
	case journal.EventTimer:
		name := journal.DecodeHeaders(ev.Headers)["terrarium-timer"]
		a.r.Rang(name)
	case journal.EventResult:
		if id, err := journal.ParseEventID(journal.DecodeHeaders(ev.Headers)["terrarium-request"]); err == nil {
			a.r.Answered(id)
		}
	}
}

func (a *actor) write(ev *journal.Event) {
	key, value, deleted := journal.DecodeStateEvent(ev.Payload)
	a.r.Write(key, value, deleted)
	if !a.allKeys {
		a.told[keyTold+key] = true
	}
}

// The prefixes in actor.told.
const (
	keyTold   = "key "
	timerTold = "timer "
)

// enter makes the creature what it was in a turn.
//
// What the log tells of what a creature holds is true, but may not be all if its
// beginning is missing. If the numbers are those that were noted, it is.
func (a *actor) enter(t *recorded) error {
	if alias := t.notes.Alias; alias != "" {
		a.aliases[t.event.Channel] = alias
	}
	s := t.notes.Setting
	if s == nil {
		return nil
	}
	if err := a.r.Become(s); err != nil {
		return err
	}
	a.setting = s
	a.allKeys, a.allTimers = a.r.Keys() == s.Keys, a.r.Timers() == s.Timers
	return nil
}

// applyTurn does what the turn did to what the creature holds.
func (a *actor) applyTurn(t *recorded) {
	if t.failed() {
		return
	}
	for _, x := range t.notes.Timers {
		a.r.SetTimer(x)
		a.told[timerTold+x.Name] = true
	}
	for i := range t.effects {
		switch ev := &t.effects[i]; ev.Kind {
		case journal.EventState:
			a.write(ev)
		case journal.EventRequest:
			a.r.Asked(ev.ID)
		}
	}
}

func (a *actor) labels() *labels {
	if a.setting == nil {
		return &labels{&journal.Setting{}, a.stage.cast}
	}
	return &labels{a.setting, a.stage.cast}
}

// rehearse runs a turn again and answers what it would do, or why that cannot be told.
func (a *actor) rehearse(ctx context.Context, t *recorded) ([]Effect, *gap, error) {
	switch {
	case a.setting == nil:
		return nil, &gap{reason: NoSetting}, nil
	case t.message == nil && !t.cause().IsZero():
		return nil, &gap{reason: NoMessage}, nil
	case t.code == abi.Deadline.String():
		return nil, &gap{reason: ByDeadline}, nil
	}
	module, err := a.stage.module(ctx, a.setting)
	if err != nil {
		return nil, &gap{NoModule, err.Error()}, ctx.Err()
	}
	w := newWitness(a, t)
	failed := a.run(ctx, w, module)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if failed != nil || w.gap != nil || a.stage.o.Fresh {
		a.discard(ctx)
	}
	if w.gap != nil {
		return nil, w.gap, nil
	}
	effects := a.r.Effects()
	if failed != nil {
		return append(said(&effects), failure(abi.CodeOf(failed).String(), failed.Error())), nil, nil
	}
	return would(&effects, w.calls, a.labels()), nil, nil
}

// patience is how many times its deadline a turn may take: the clock says nothing of
// what a guest does, and what it may cost is bounded by its fuel.
const patience = 20

// run hands the delivery to the creature's instance, or to a new one.
func (a *actor) run(ctx context.Context, w *witness, module abi.Module) error {
	if a.module != module {
		a.discard(ctx)
	}
	if a.instance == nil {
		limits := a.r.Limits()
		limits.Deadline = max(patience*limits.Deadline, patience*time.Second)
		w.Turn = a.r.Starting()
		instance, err := module.Instantiate(ctx, &limits, w)
		if err != nil {
			return err
		}
		a.instance, a.module = instance, module
	}
	w.handDelivery()
	return a.instance.Handle(ctx, w, w.delivery.Kind, len(w.delivery.Payload))
}

func (a *actor) discard(ctx context.Context) {
	if a.instance != nil {
		_ = a.instance.Close(ctx) // there is nothing in it that counts
		a.instance, a.module = nil, nil
	}
}

// delivery describes what a turn handled.
func (a *actor) delivery(t *recorded) Delivery {
	d := Delivery{Kind: journal.KindOfDelivery(t.kind), Message: t.cause(), Channel: t.event.Channel, Alias: a.aliases[t.event.Channel], Seq: t.event.Seq}
	if m := t.message; m != nil {
		d.Payload = slices.Clone(Text(m.Payload))
		if m.Creature != "" {
			d.Sender = a.labels().creature(m.Creature)
		}
	}
	return d
}
