package engine

import (
	"context"
	"reflect"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Replacement is a module that takes the place of a creature's module.
type Replacement struct {
	// Module is the name of the module. The session keeps the name, and a later run loads
	// the module by its name.
	Module string
	// Wasm is the module; if nil, [Options.Load] loads Module.
	Wasm []byte
}

// Replaced reports what [Engine.ReplaceModule] did.
type Replaced struct {
	Creature journal.CreatureID
	Graph    journal.GraphID
	journal.ModuleReplaced
	change *change
}

// Wait waits until the replacement is as durable as the creature's graph promises; see
// [Batch.Wait].
func (r *Replaced) Wait(ctx context.Context) error { return r.change.wait(ctx) }

// ReplaceModule makes a running creature continue with another module. The creature keeps its
// state, cursors, timers, requests and waiting deliveries, and its configuration and limits; other
// creatures notice nothing. The module is compiled and started once before anything changes, so a
// module that does not start is refused. Then ReplaceModule waits until the current turn of the
// creature has ended, and the next turn runs on an instance of the new module. The replacement
// ends a quarantine; a stopped creature stays stopped, unless only its module was missing.
// Policies on the event replace may deny the replacement.
//
// Replacing the module by the former one undoes the replacement. If a recipe declares the
// creature, applying the recipe again returns it to the module of the recipe.
func (e *Engine) ReplaceModule(ctx context.Context, id journal.CreatureID, r Replacement) (Replaced, error) {
	if err := context.Cause(ctx); err != nil {
		return Replaced{}, err
	}
	live, before, err := e.core.current(id)
	if err != nil {
		return Replaced{}, err
	}
	spec := before.spec
	spec.Module, spec.Wasm, spec.Stopped = r.Module, r.Wasm, false
	prepared, err := prepare(ctx, &e.core, "replace_module", spec, nil)
	if err != nil {
		return Replaced{}, err
	}
	prepared.spec.Stopped = before.spec.Stopped
	return e.replace(ctx, live, prepared, before)
}

// current returns a creature with its settings.
func (e *core) current(id journal.CreatureID) (*creature, settings, error) {
	l := e.rlock()
	defer l.runlock()
	c := l.creatures[id]
	if c == nil {
		return nil, settings{}, errtext.Gone("creature", string(id))
	}
	return c, c.settings, nil
}

// replace gives a creature the module of a prepared creature. If it fails, it closes the
// prepared one.
func (e *Engine) replace(ctx context.Context, live, prepared *creature, before settings) (out Replaced, err error) {
	unused := true
	defer func() {
		if unused {
			e.core.discardPrepared(ctx, prepared)
		}
	}()
	if err := e.takeTurn(ctx); err != nil {
		return out, err
	}
	defer e.passTurn()
	var u update
	defer func() { u.finishUpdate(ctx, &e.core) }()
	if u.holding, err = e.holdAll(ctx, map[*creature]claim{live: prepared.claims(live)}); err != nil {
		return out, err
	}
	l := e.core.lock()
	defer l.unlock()
	if err := l.mayReplace(live, before); err != nil {
		return out, err
	}
	x := newChange(l, "replace_module", draft.Options{})
	err = x.JudgeReplace(ctx, live.id, deploy.PolicyEvent{
		Module: prepared.spec.Module, SHA256: prepared.module.Info().SHA256, Former: before.spec.Module,
	})
	if err != nil {
		x.Undo()
		x.logRefusals()
		return out, err
	}
	lacked, restarted := live.husk && !live.savedStopped, x.become(ctx, live, prepared)
	x.recipe.resumed = append(x.recipe.resumed, live)
	if lacked { // staging cannot fail, because the creature exists
		_ = x.Stage(topology.SetStopped{ID: live.id})
	}
	if err := x.carryOut(ctx); err != nil {
		return out, err
	}
	if restarted {
		unused = false
		u.modules = append(u.modules, before.module)
	}
	return Replaced{live.id, live.home.load().id, x.recast[0].replacement(), x}, nil
}

// mayReplace refuses if the engine is closing, or the creature has changed since its
// settings were read.
func (e locked) mayReplace(live *creature, before settings) error {
	switch {
	case e.closed || e.isClosing():
		return errtext.Closed
	case e.creatures[live.id] != live:
		return errtext.Gone("creature", string(live.id))
	case live.module != before.module || !reflect.DeepEqual(live.spec, before.spec):
		return errtext.ChangedMeanwhile(live.id)
	}
	return nil
}
