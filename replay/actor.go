package replay

import (
	"context"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// actor is a creature whose turns are run again. Its state, timers and requests are
// reconstructed from the log.
type actor struct {
	stage   *stage
	id      journal.CreatureID
	r       *engine.Rehearsal
	setting *journal.Setting // nil until the log has it
	aliases map[journal.ChannelID]string

	// Whether the state and the timers are completely known. If not, observed has the keys
	// and timers that the log has mentioned.
	allKeys, allTimers bool
	observed           map[string]bool

	module   abi.Module // of instance
	instance abi.Instance
}

func newActor(s *stage, id journal.CreatureID) *actor {
	return &actor{stage: s, id: id, r: engine.NewRehearsal(id), aliases: map[journal.ChannelID]string{}, observed: map[string]bool{}}
}

// gap is the reason why a turn cannot be compared.
type gap struct {
	reason Reason
	detail string
}

// learn applies an event between the turns of the creature.
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
		a.observed[observedKey+key] = true
	}
}

// The prefixes in actor.observed.
const (
	observedKey   = "key "
	observedTimer = "timer "
)

// enter restores the creature as it was in a turn.
//
// The reconstructed state is correct, but may be incomplete if the beginning of the log
// is missing. It is complete if its size matches the recorded numbers.
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

// applyTurn applies the effects of a turn to the creature.
func (a *actor) applyTurn(t *recorded) {
	if t.failed() {
		return
	}
	for _, x := range t.notes.Timers {
		a.r.SetTimer(x)
		a.observed[observedTimer+x.Name] = true
	}
	for i := range t.effects {
		switch ev := &t.effects[i]; ev.Kind {
		case journal.EventState:
			a.write(ev)
		case journal.EventRequest, journal.EventOutboundRequest:
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

// performance is a turn that was run again.
type performance struct {
	effects []Effect
	sha256  string // of the module
	fuel    int64  // that the guest used; -1 if that is not counted
	failed  error  // of the guest
	gap     *gap   // why the effects cannot be known; nil if they are
	cause   error  // of the gap
}

// rehearse runs a turn again.
func (a *actor) rehearse(ctx context.Context, t *recorded) (performance, error) {
	switch {
	case a.setting == nil:
		return performance{gap: &gap{reason: NoSetting}}, nil
	case t.message == nil && !t.cause().IsZero():
		return performance{gap: &gap{reason: NoMessage}}, nil
	case t.code == abi.Deadline.String() && a.stage.o.only.IsZero():
		return performance{gap: &gap{reason: ByDeadline}}, nil
	}
	module, err := a.stage.module(ctx, a.setting)
	if err != nil {
		return performance{gap: &gap{NoModule, err.Error()}, cause: err}, ctx.Err()
	}
	out := performance{sha256: module.Info().SHA256, fuel: -1}
	w := newWitness(a, t)
	out.failed = a.run(ctx, w, module)
	if ctx.Err() != nil {
		return performance{}, ctx.Err()
	}
	if a.instance != nil {
		out.fuel = a.instance.FuelUsed()
	}
	if out.failed != nil || w.gap != nil || a.stage.o.Fresh {
		a.discard(ctx)
	}
	if out.gap = w.gap; out.gap != nil {
		return out, nil
	}
	effects := a.r.Effects()
	if out.failed != nil {
		out.effects = append(said(&effects), failure(abi.CodeOf(out.failed).String(), out.failed.Error()))
		return out, nil
	}
	out.effects = would(&effects, w.calls, a.labels())
	return out, nil
}

// patience is the factor by which a turn may exceed its deadline. Fuel bounds the work of
// the guest, so the clock does not have to.
const patience = 20

// run passes the delivery to the creature's instance, or to a new one.
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
		_ = a.instance.Close(ctx) // nothing in it is needed
		a.instance, a.module = nil, nil
	}
}

// delivery describes the delivery of a turn.
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
