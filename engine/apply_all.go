package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/regrow"
	"github.com/seed47132306/terrarium/engine/internal/species"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
)

// Apply applies a deployment: all of it or, on an error, nothing. If a saved session has the
// deployment, its graphs are resumed first, and creatures and channels with the same address keep
// their state, cursors and waiting deliveries. The deployment alone determines the shape, unless
// [deploy.Deployment.Last] says otherwise: creatures that were spawned and channels that were made
// while it ran are removed, and listed in [Applied.Removed]. A session that [Engine.Restore] has
// restored keeps its workers, the edges that lead to them, and their waiting deliveries.
//
// If the deployment is already applied, Apply makes only the changes since then. Creatures whose
// declaration is unchanged continue undisturbed. If the module or settings of a creature have
// changed, Apply waits until its current turn has ended. The creature then continues on another
// instance, and keeps its state and its waiting deliveries; its quarantine ends. Everything that
// the recipe no longer declares is removed. Workers, channels, edges and wires that were added
// while the deployment ran stay. A creature that was stopped, started, made privileged or demoted
// stays as it is, unless the recipe has changed the corresponding setting. A recipe of the same
// name from another path is refused with already_exists.
func (e *Engine) Apply(ctx context.Context, d *deploy.Deployment) (*Applied, error) {
	applied, err := e.ApplyAll(ctx, d)
	if err != nil {
		return nil, err
	}
	return applied[0], nil
}

// ApplyAll is [Engine.Apply] for deployments that share saved graphs. Each determines its
// own members, in the order given. Nothing runs before all of them are applied. If one
// fails, neither it nor later ones are applied; earlier ones stay applied. [Engine.Plan]
// fails where ApplyAll would.
func (e *Engine) ApplyAll(ctx context.Context, deployments ...*deploy.Deployment) ([]*Applied, error) {
	j := &joint{e: e, of: map[string]*application{}}
	if err := j.prepare(ctx, deployments); err != nil {
		j.discard(ctx)
		return nil, err
	}
	if err := e.takeTurn(ctx); err != nil {
		j.discard(ctx)
		return nil, err
	}
	defer e.passTurn()
	defer j.update.finishUpdate(ctx, &e.core)
	err := errors.Join(e.core.storage.Pace(ctx), j.hold(ctx))
	if err == nil {
		l := e.core.lock()
		defer l.unlock()
		err = j.run(ctx, l)
	}
	j.discard(ctx)
	if err != nil {
		return nil, err
	}
	var out []*Applied
	for _, a := range j.applications {
		out = append(out, &a.result)
	}
	return out, nil
}

// takeTurn waits until no other call applies deployments or restores graphs. Until a
// deployment is applied, all of its running creatures must be held.
func (e *Engine) takeTurn(ctx context.Context) error {
	select {
	case e.applying <- struct{}{}:
		return nil
	case <-e.core.closing:
		return errtext.Closed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) passTurn() { <-e.applying }

// joint is one call of ApplyAll in progress.
type joint struct {
	e            *Engine
	applications []*application
	of           map[string]*application // by deployment
	update       update
}

// prepare loads every module and starts every first instance, so that if one
// deployment cannot start, all are refused.
func (j *joint) prepare(ctx context.Context, deployments []*deploy.Deployment) (err error) {
	for _, d := range deployments {
		if j.of[d.Name] != nil {
			return errtext.Invalid("apply", "two recipes are called "+d.Name, "give one of them another name in its terrarium block")
		}
		a := &application{d: d, prepared: map[string]*creature{}, adopted: map[string]abi.Module{}, drift: reconcile.DriftFrom(d.Last.MovedBy(d))}
		j.applications = append(j.applications, a)
		j.of[d.Name] = a
		if err := d.CheckNames(); err != nil {
			return err
		}
		if a.species, err = j.e.loadSpecies(ctx, d); err != nil {
			return err
		}
		if err := a.prepareAll(ctx, &j.e.core); err != nil {
			return err
		}
	}
	return nil
}

func (a *application) prepareAll(ctx context.Context, e *core) error {
	live := map[string]*creature{} // by the address that it has now
	l := e.rlock()
	for _, c := range l.creatures {
		if c.deployment == a.d.Name && c.spec.Address != "" {
			live[a.d.NowAt(c.spec.Address)] = c
		}
	}
	l.runlock()
	goesOn := func(c *creature) bool { // the running one, whose module and configuration work
		l := e.rlock()
		defer l.runlock()
		running := live[c.spec.Address]
		return running != nil && running.starts.Load() && !c.restarts(running)
	}
	for i := range a.d.Creatures {
		spec := a.d.Creatures[i]
		spec.Privileged = spec.Privileged || (a.d.Root != "" && spec.Address == a.d.Root)
		c, err := prepare(ctx, e, adding, spec, goesOn)
		if err != nil {
			return &deploy.StartError{Deployment: a.d.Name, Address: spec.Address, Where: spec.Where, Err: err}
		}
		c.deployment = a.d.Name
		a.prepared[spec.Address] = c
	}
	return nil
}

// run resumes what the deployments have saved, and applies them.
func (j *joint) run(ctx context.Context, e locked) error {
	if e.closed || e.isClosing() {
		return errtext.Closed
	}
	for _, a := range j.applications {
		a.e = e
		saved := regrow.Rows(e.saved.With(a.d.Name))
		if err := cmp.Or(a.may(saved), j.checkRenamed(e, a.d), reconcile.CheckMoves(a.d, e, saved)); err != nil {
			return err
		}
		a.declared = a.declaredBefore(saved)
	}
	e.reportProblems()
	waking := &waking{e: e}
	for _, a := range j.applications {
		for _, g := range e.saved.With(a.d.Name) {
			if err := waking.bringBack(ctx, g, j.specOf); err != nil {
				waking.rollBack(ctx)
				return err
			}
		}
	}
	for i, a := range j.applications {
		err := a.run(ctx, j.update.holding)
		if err != nil && i == 0 {
			waking.rollBack(ctx)
			return err
		}
		if err != nil {
			waking.commit()
			return err
		}
		a.species = e.replaceTemplates(a.d.Name, a.species) // to be closed
		a.keepAdopted(&j.update)
	}
	waking.commit()
	return nil
}

// discard releases what was prepared and is not used.
func (j *joint) discard(ctx context.Context) {
	for _, a := range j.applications {
		species.Close(ctx, j.e.core.log, a.species)
		a.species = nil
		for _, c := range a.prepared {
			if c.home.load() == nil {
				j.e.core.discardPrepared(ctx, c)
			}
		}
	}
}

// specOf returns what a saved creature becomes. If its deployment is applied and still
// has its address, the recipe decides; if the address has been removed, it becomes a
// husk. A creature of another deployment stays what it was, and so does one that
// was added while the recipe ran and is kept.
func (j *joint) specOf(ctx context.Context, row journal.CreatureRow) (*creature, error) {
	a := j.of[row.Deployment]
	if a != nil && row.Address != "" {
		if c := a.prepared[a.d.NowAt(row.Address)]; c != nil {
			return c, nil
		}
	}
	switch {
	case a != nil && a.drift == nil, a == nil && draft.Undeclared(row.Deployment) && !slices.ContainsFunc(j.applications, func(a *application) bool { return a.drift != nil }):
		return newHusk(row), nil
	case a != nil && a.drift.Declared(a.d.NowAt(row.Address)):
		return newHusk(row), nil
	}
	if a == nil {
		return j.e.revive(ctx, row, nil)
	}
	return j.e.revive(ctx, row, a.d)
}

// checkRenamed is [storemeta.CheckRenamed], unless the deployment is known.
func (j *joint) checkRenamed(e locked, d *deploy.Deployment) error {
	if e.deployments[d.Name] != nil || len(e.saved.With(d.Name)) > 0 {
		return nil
	}
	return storemeta.CheckRenamed(d, regrow.Rows(e.saved.Sorted()), func(name string) bool { return j.of[name] != nil || e.deployments[name] != nil })
}

// regrant prepares the spawned creatures of the deployment that were restored without their
// secrets, under their ids instead of an address. One that cannot start stays as it is.
func (a *application) regrant(ctx context.Context, e *Engine) error {
	lacking := map[journal.CreatureID]deploy.CreatureSpec{}
	l := e.core.rlock()
	for id, c := range l.creatures {
		if c.deployment == a.d.Name {
			lacking[id] = specs.Stopped(c.spec, c.storedStopped())
		}
	}
	l.runlock()
	whole, err := specs.RegrantAll(lacking, a.d)
	for id, spec := range whole {
		if c, err := prepare(ctx, &e.core, adding, spec, nil); err == nil {
			a.prepared[string(id)] = c
		} else if e.core.log.Warn("a creature stays without its secrets", "creature", id, "name", spec.Name, "error", err); ctx.Err() != nil {
			return err
		}
	}
	return err
}

// hold holds the creatures that will change. The caller has its turn to apply.
func (j *joint) hold(ctx context.Context) (err error) {
	creatures := map[*creature]claim{}
	for _, a := range j.applications {
		if err := a.regrant(ctx, j.e); err != nil {
			return err
		}
	}
	l := j.e.core.rlock()
	for _, a := range j.applications {
		for _, c := range l.creatures {
			wanted := a.prepared[cmp.Or(a.d.NowAt(c.spec.Address), string(c.id))]
			if c.deployment == a.d.Name && wanted != nil && !wanted.saysWhatIs(c) {
				creatures[c] = wanted.claims(c)
			}
		}
	}
	l.runlock()
	if len(creatures) > 0 {
		j.update.holding, err = j.e.holdAll(ctx, creatures)
	}
	return err
}
