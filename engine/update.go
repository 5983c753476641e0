package engine

import (
	"bytes"
	"context"
	"reflect"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/journal"
)

// update is what applying a deployment does to existing creatures.
type update struct {
	holding *holding
	// modules are the former modules of creatures. They are closed when the deployments
	// are applied and the mutation lock is released.
	modules []abi.Module
}

// claims returns how to hold a running creature so that it can become what was prepared. The same
// module at another path needs no other instance, but the session finds the module by its path, so
// the creature must get the new one. The next application finds the creature by its address.
func (c *creature) claims(live *creature) claim {
	closes := c.restarts(live)
	reaches := !reflect.DeepEqual(c.spec.Capabilities, live.spec.Capabilities) // which turns read
	return claim{waits: closes || reaches || c.spec.Module != live.spec.Module || c.spec.Address != live.spec.Address, closes: closes}
}

// saysWhatIs reports whether a creature already equals what was prepared, including its
// place in the recipe.
func (c *creature) saysWhatIs(live *creature) bool {
	return !c.restarts(live) && reflect.DeepEqual(c.declared(live), live.declared(live))
}

// declared is the specification without the parts that a recipe does not set.
func (c *creature) declared(live *creature) deploy.CreatureSpec {
	s := c.spec
	s.Wasm, s.Join, s.Parent, s.Name, s.Deployment = nil, "", "", live.spec.Name, ""
	s.Config = nil // see restarts
	return s
}

// restarts reports whether a running creature needs another instance to become what was prepared.
func (c *creature) restarts(live *creature) bool {
	return live.husk || live.module.Info().SHA256 != c.module.Info().SHA256 || !bytes.Equal(live.config(), c.config()) ||
		!slices.Equal(live.spec.Secret, c.spec.Secret) ||
		!specs.RunAlike(&live.spec, &c.spec)
}

// become gives a running creature the settings of a prepared one. Its state and its
// places in logs stay. It reports whether that takes another instance. Undoing the change
// undoes this too. The caller holds the creature.
func (x *change) become(ctx context.Context, live, prepared *creature) (restarted bool) {
	before := role{live.settings, live.husk, live.huskReason, live.stopped}
	after := before
	restarted = prepared.restarts(live)
	if restarted {
		x.e.forgetInstance(ctx, prepared)
		live.starts.Store(false)
		t, _ := x.e.topo.Creature(live.id)
		after = role{settings: prepared.settings, stopped: t.Stopped}
		x.Start(live.id) // which ends a quarantine
	}
	after.spec, after.outside = prepared.spec, prepared.outside
	after.spec.Name, after.spec.Parent = live.spec.Name, live.spec.Parent
	x.cast(live, after)
	x.OnUndo(func() { x.cast(live, before) })
	x.recast = append(x.recast, recasting{live, before.settings})
	return restarted
}

// recasting is a creature that has got other settings, with its former ones.
type recasting struct {
	c      *creature
	former settings
}

// replacement is what happened to the module of the creature.
func (r *recasting) replacement() journal.ModuleReplaced {
	return journal.ModuleReplaced{
		Name: r.c.name, Module: r.c.spec.Module, SHA256: r.c.module.Info().SHA256,
		Former: r.former.spec.Module, FormerSHA256: r.former.module.Info().SHA256,
	}
}

// noteReplaced logs which modules have been replaced.
func (x *change) noteReplaced() {
	for i := range x.recast {
		r := &x.recast[i]
		p := r.replacement()
		if g := x.home(r.c); !g.none() && p.SHA256 != p.FormerSHA256 {
			x.log(g, x.record(g), journal.Event{Kind: journal.EventModuleReplaced, Creature: r.c.id, Payload: journal.JSON(p)})
		}
	}
}

// role is what the recipe says about a creature, and whether that makes it run.
type role struct {
	settings
	husk       bool
	huskReason error
	stopped    bool
}

// cast assigns a role to a creature that is held.
func (x *change) cast(c *creature, r role) {
	graph := c.home.load()
	g, entered := x.paused[graph]
	if !entered {
		g = graph.enter()
		defer g.leave()
	}
	c.settings, c.husk, c.huskReason, c.stopped = r.settings, r.husk, r.huskReason, r.stopped
	c.reads = c.reads || c.watches
	c.mb.bound = c.limits.Mailbox
	c.portrait.wiring = nil
	c.unpark(g.engine) // the new module may not ask
	g.launchHeld(c)
}

// keepAdopted makes the work of become final.
func (a *application) keepAdopted(u *update) {
	for address, former := range a.adopted {
		u.modules = append(u.modules, former)
		delete(a.prepared, address)
	}
}

// finishUpdate releases the creatures and closes what is no longer in use.
func (u *update) finishUpdate(ctx context.Context, e *core) {
	u.holding.release(ctx)
	for _, m := range u.modules {
		e.releaseModule(ctx, m)
	}
}

// putPolicy replaces the policy of a deployment, possibly with none, and returns the
// former one. Turns that look it up at the same time get either policy.
func (e locked) putPolicy(deployment string, p deploy.Policy) deploy.Policy {
	former, _ := e.policies.Swap(deployment, p)
	for _, ch := range e.channels {
		if ch.deployment == deployment {
			e.setPolicy(ch)
		}
	}
	was, _ := former.(deploy.Policy)
	return was
}

// setPolicy makes the policy of a channel's deployment judge what is sent on it.
func (e locked) setPolicy(ch *channel) {
	found, _ := e.policies.Load(ch.deployment)
	if p, _ := found.(deploy.Policy); p != nil && p.JudgesSend(ch.place().address) {
		ch.policy.Store(&p)
	} else {
		ch.policy.Store(nil)
	}
}
