package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/specs"
)

// adding is the operation that errors name when a creature is added, including by a recipe.
const adding = "add_creature"

// prepare loads a creature's module and starts its first instance. op is the operation for
// errors. If needless is given and is true for the creature, no instance is started.
func prepare(ctx context.Context, e *core, op string, spec deploy.CreatureSpec, needless func(*creature) bool) (*creature, error) {
	if err := specs.Check(&spec); err != nil {
		return nil, err
	}
	m, err := e.compile(ctx, op, &spec)
	if err != nil {
		return nil, err
	}
	return startFirst(ctx, e, op, spec, m, needless)
}

// prepareNew is prepare for a specification that may name a species instead of a module.
func (e *Engine) prepareNew(ctx context.Context, spec deploy.CreatureSpec) (*creature, error) {
	return prepareOf(ctx, &e.core, spec, func() (deploy.CreatureSpec, abi.Module, error) {
		l := e.core.rlock()
		defer l.runlock()
		return l.ofSpecies(spec)
	})
}

// prepareIn is prepareNew within the mutation lock.
func prepareIn(ctx context.Context, e locked, spec deploy.CreatureSpec) (*creature, error) {
	return prepareOf(ctx, e.core, spec, func() (deploy.CreatureSpec, abi.Module, error) { return e.ofSpecies(spec) })
}

func prepareOf(ctx context.Context, e *core, spec deploy.CreatureSpec, ofSpecies func() (deploy.CreatureSpec, abi.Module, error)) (*creature, error) {
	if spec.Species == "" || spec.Module != "" || spec.Wasm != nil {
		return prepare(ctx, e, adding, spec, nil)
	}
	if err := specs.Check(&spec); err != nil {
		return nil, err
	}
	spec, m, err := ofSpecies()
	if err != nil {
		return nil, err
	}
	c, err := startFirst(ctx, e, adding, spec, m, nil)
	if err != nil {
		return nil, err
	}
	c.deployment = spec.Deployment
	return c, nil
}

// compile loads and compiles the module of a specification.
func (e *core) compile(ctx context.Context, op string, spec *deploy.CreatureSpec) (abi.Module, error) {
	who := cmp.Or(spec.Name, spec.Module)
	wasm := spec.Wasm
	if wasm == nil {
		if e.load == nil {
			return nil, errtext.Invalid(op, "the module of "+who+" has no bytes, and the engine has no loader", "set CreatureSpec.Wasm or Options.Load")
		}
		var err error
		if wasm, err = e.load(ctx, spec.Module); err != nil {
			return nil, fmt.Errorf("%s: the module of %s: %w", op, who, err)
		}
	}
	m, err := e.host.Compile(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("%s: the module of %s: %w", op, who, err)
	}
	return m, nil
}

// startFirst makes a creature and starts its first instance; see prepare. The module is the
// creature's from here on.
func startFirst(ctx context.Context, e *core, op string, spec deploy.CreatureSpec, m abi.Module, needless func(*creature) bool) (*creature, error) {
	c, err := newCreature("", spec, m)
	if err == nil {
		c.outside, err = e.outbound.Open(spec.Name, spec.Capabilities)
	}
	if err == nil && !spec.Stopped && (needless == nil || !needless(c)) {
		c.wiring.Store(&wiring{name: spec.Name})
		t := &turn{e: e}
		if err = t.start(ctx, c); err != nil {
			if n := len(t.Logs); n > 0 {
				err = errtext.WithLog(err, t.Logs[n-1].Text)
			}
			err = fmt.Errorf("%s: starting %s: %w", op, spec.Name, err)
		}
	}
	if err != nil {
		e.releaseModule(ctx, m)
		return nil, err
	}
	return c, nil
}

// discardPrepared undoes prepare.
func (e *core) discardPrepared(ctx context.Context, c *creature) {
	e.discardInstance(ctx, c)
	e.releaseModule(ctx, c.module)
}
