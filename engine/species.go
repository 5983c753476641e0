package engine

import (
	"context"
	"errors"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/species"
)

// countSpawned updates the number of spawned creatures that are alive.
func (e locked) countSpawned(c *creature, by int) { e.species.Count(c.deployment, &c.spec, by) }

// loadSpecies checks the species of a deployment. It compiles the modules of those that
// may be spawned and starts each once.
func (e *Engine) loadSpecies(ctx context.Context, d *deploy.Deployment) ([]*species.Template, error) {
	compile := func(spec *deploy.CreatureSpec) (abi.Module, error) { return e.core.compile(ctx, adding, spec) }
	templates, err := species.Load(d, compile, func(t *species.Template) error { return e.tryStart(ctx, t) })
	if err != nil {
		species.Close(ctx, e.core.log, templates)
		return nil, err
	}
	return templates, nil
}

// tryStart starts an instance of a species and closes it. A module that does not fit the limits of
// its species, or ends before it has read its configuration, would never start. An error from
// creature_init may be due to the configuration, which a spawn may replace, so it does not count.
func (e *Engine) tryStart(ctx context.Context, t *species.Template) error {
	spec := t.Spec
	spec.Name, spec.Stopped = t.Name, false
	c, err := startFirst(ctx, &e.core, adding, spec, t.Module.Retain(), nil)
	if err == nil {
		e.core.discardPrepared(ctx, c)
		return nil
	}
	var fault *abi.Error
	if errors.As(err, &fault) && fault.Op == abi.ExportInit {
		e.core.log.Warn("a species does not start with its configuration", "species", t.Name, "deployment", t.Kind.Deployment, "error", err)
		return nil
	}
	return err
}

// replaceTemplates replaces the species of a deployment, and returns the former ones.
func (e locked) replaceTemplates(deployment string, templates []*species.Template) (former []*species.Template) {
	if len(templates) > 0 {
		e.spawnable.Store(deployment, species.Aware(templates))
	} else {
		e.spawnable.Delete(deployment)
	}
	return e.species.Replace(deployment, templates)
}

// ofSpecies completes a specification that names a species instead of a module, and
// returns a reference to the species' module, which the caller must close.
func (e locked) ofSpecies(spec deploy.CreatureSpec) (deploy.CreatureSpec, abi.Module, error) {
	return e.species.Complete(spec, e.deployments)
}
