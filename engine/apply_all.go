package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
)

// Apply makes a deployment exist: all of it, or on an error nothing. Where a
// saved session has the deployment, its graphs are brought back first, and
// creatures and channels of the same address go on with their state, cursors
// and waiting deliveries; the deployment alone decides about the shape, unless
// [Deployment.Last] says otherwise: creatures that were spawned, and channels that
// were made, while it ran, go, and are among [Applied.Removed]. A session that
// [Engine.Restore] has brought back keeps its workers, what leads to them, and what
// waits for them.
//
// A deployment that is applied already is led from what there is to what it is now.
// Creatures that the recipe says the same of go on as if nothing had happened. Those
// whose module or settings are others end the turn that they are in, which Apply
// waits for, and go on with another instance, with all they have and what waits for
// them; one that was quarantined is not any more. What the recipe declared before
// and does not now, goes; workers, channels, edges and wires that came while it ran
// stay, and who was stopped or started, made privileged or demoted, as long as the
// recipe says what it said then. A recipe from another path under the same name is
// refused with already_exists.
func (e *Engine) Apply(ctx context.Context, d *deploy.Deployment) (*Applied, error) {
	applied, err := e.ApplyAll(ctx, d)
	if err != nil {
		return nil, err
	}
	return applied[0], nil
}

// ApplyAll is [Engine.Apply] for deployments that share saved graphs: each
// decides about its own members, in the order given. Nothing runs before all of
// them are applied. If one fails, nothing is applied, unless others before it
// have been: these stay. [Engine.Plan] fails where this would.
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
	err := j.hold(ctx)
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

// takeTurn waits until nobody else applies deployments or brings graphs back: what is
// held of a deployment has to be all that runs of it until it is applied.
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

// joint is one call of ApplyAll under way.
type joint struct {
	e            *Engine
	applications []*application
	of           map[string]*application // by deployment
	update       update
}

// prepare loads every module and starts every first instance, so that
// deployments that cannot start are refused as a whole.
func (j *joint) prepare(ctx context.Context, deployments []*deploy.Deployment) (err error) {
	for _, d := range deployments {
		if j.of[d.Name] != nil {
			return errtext.Invalid("apply", "two recipes are called "+d.Name, "give one of them another name in its terrarium block")
		}
		a := &application{d: d, prepared: map[string]*creature{}, drift: reconcile.DriftFrom(d.Last)}
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
	for i := range a.d.Creatures {
		spec := a.d.Creatures[i]
		spec.Privileged = spec.Privileged || (a.d.Root != "" && spec.Address == a.d.Root)
		c, err := prepare(ctx, e, spec)
		if err != nil {
			return &deploy.StartError{Deployment: a.d.Name, Address: spec.Address, Where: spec.Where, Err: err}
		}
		c.deployment = a.d.Name
		a.prepared[spec.Address] = c
	}
	return nil
}

// run brings back what the deployments have saved, and applies them.
func (j *joint) run(ctx context.Context, e locked) error {
	if e.closed || e.isClosing() {
		return errtext.Closed
	}
	for _, a := range j.applications {
		a.e = e
		if err := a.may(); err != nil {
			return err
		}
		if err := j.checkRenamed(e, a.d); err != nil {
			return err
		}
	}
	e.tellProblems()
	waking := &waking{e: e}
	for _, a := range j.applications {
		for _, g := range e.savedWith(a.d.Name) {
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

// discard gives up what was prepared and is not used.
func (j *joint) discard(ctx context.Context) {
	for _, a := range j.applications {
		j.e.core.closeTemplates(ctx, a.species)
		a.species = nil
		if now, _ := j.e.core.policies.Load(a.d.Name); !samePolicy(now, a.d.Policy) { // it is not in use
			j.e.core.closePolicy(a.d.Policy)
		}
		for _, c := range a.prepared {
			if c.home.load() == nil {
				j.e.core.discardPrepared(ctx, c)
			}
		}
	}
}

// specOf says what to make of a saved creature: the recipe's if its deployment is
// applied and still has its address, nothing if it is gone, and what it was if it
// is of another deployment, or came while the recipe ran and stays.
func (j *joint) specOf(ctx context.Context, row journal.CreatureRow) (*creature, error) {
	a := j.of[row.Deployment]
	if a != nil && row.Address != "" {
		if c := a.prepared[row.Address]; c != nil {
			return c, nil
		}
	}
	switch {
	case a != nil && a.drift == nil, a == nil && draft.Undeclared(row.Deployment) && !j.drifts():
		return newHusk(row), nil
	case a != nil && a.drift.Declared(row.Address):
		return newHusk(row), nil
	}
	return j.e.revive(ctx, row)
}

// drifts reports whether what came while the recipes ran stays.
func (j *joint) drifts() bool {
	for _, a := range j.applications {
		if a.drift != nil {
			return true
		}
	}
	return false
}
