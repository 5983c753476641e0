package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/modules"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
)

// countSpawned updates the number of spawned creatures that are alive.
func (e locked) countSpawned(c *creature, by int) {
	k, ok := draft.KindOf(c.deployment, &c.spec)
	if !ok {
		return
	}
	if e.spawned[k] += by; e.spawned[k] == 0 {
		delete(e.spawned, k)
	}
}

// loadSpecies checks the species of a deployment. It compiles the modules of those that
// may be spawned and starts each once, so that a deployment with one that cannot be
// loaded is refused as a whole.
func (e *Engine) loadSpecies(ctx context.Context, d *deploy.Deployment) (templates []*template, err error) {
	defer func() {
		if err != nil {
			e.core.closeTemplates(ctx, templates)
			templates = nil
		}
	}()
	seen := map[string]bool{}
	for i := range d.Species {
		s := &d.Species[i]
		if err := specs.CheckSpecies(s, seen[s.Name]); err != nil {
			return templates, s.Wrap(err)
		}
		if seen[s.Name] = true; s.Spawnable == 0 {
			continue
		}
		if len(templates) == deploy.MaxSpecies {
			return templates, s.Wrap(&abi.Error{
				Code: abi.LimitExceeded, Op: "apply", Message: fmt.Sprintf("the deployment has more than %d species that may be spawned", deploy.MaxSpecies),
				Remedy: "remove the species that are not spawned", IDs: map[string]string{"limit": "species", "deployment": d.Name},
			})
		}
		m, err := e.core.compile(ctx, adding, &s.Spec)
		if err != nil {
			return templates, s.Wrap(err)
		}
		t := &template{s, draft.Kind{Deployment: d.Name, Species: s.Name}, &modules.Shared{Module: m}}
		templates = append(templates, t)
		if err := e.tryStart(ctx, t); err != nil {
			return templates, s.Wrap(err)
		}
	}
	return templates, nil
}

// tryStart starts an instance of a species and closes it. A module that does not fit the
// limits of its species, or ends before it has read its configuration, would never start.
// An error from creature_init may be due to the configuration, which a spawn may replace,
// so it does not count.
func (e *Engine) tryStart(ctx context.Context, t *template) error {
	spec := t.Spec
	spec.Name, spec.Stopped = t.Name, false
	c, err := startFirst(ctx, &e.core, adding, spec, t.module.Retain())
	if err == nil {
		e.core.discardPrepared(ctx, c)
		return nil
	}
	var fault *abi.Error
	if errors.As(err, &fault) && fault.Op == abi.ExportInit {
		e.core.log.Warn("a species does not start with its configuration", "species", t.Name, "deployment", t.kind.Deployment, "error", err)
		return nil
	}
	return err
}

// keepTemplates stores the species of a deployment.
func (e locked) keepTemplates(templates []*template) {
	if len(templates) == 0 {
		return
	}
	var list []outlook.AwareSpecies
	for _, t := range templates {
		e.templates[t.kind] = t
		list = append(list, outlook.AwareSpecies{Species: t.Name, Limit: t.Spawnable})
	}
	e.spawnable.Store(templates[0].kind.Deployment, list)
}

func (e *core) closeTemplates(ctx context.Context, templates []*template) {
	for _, t := range templates {
		if err := t.module.Close(ctx); err != nil {
			e.log.Debug("closing a module", "species", t.Name, "error", err)
		}
	}
}

// spawnTemplate returns the template for spawning a species of a deployment, and how many
// of that species are alive. Without a deployment it takes the only one that has such a
// species. The number is checked again when the creature is added (see
// [draft.Draft.MaySpawn]), because another spawn may come between.
func (e locked) spawnTemplate(deployment, species string) (*template, int, error) {
	if deployment != "" && e.deployments[deployment] == nil {
		return nil, 0, errtext.NotApplied(deployment, slices.Sorted(maps.Keys(e.deployments)))
	}
	var found []*template
	for k, t := range e.templates {
		if k.Species == species && (deployment == "" || k.Deployment == deployment) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return nil, 0, e.notSpawnable(deployment, species)
	case 1:
		return found[0], e.spawned[found[0].kind], nil
	}
	return nil, 0, &abi.Error{
		Code: abi.Ambiguous, Op: "spawn", Message: fmt.Sprintf("%d deployments have a species %s", len(found), errtext.Clip(species)),
		Remedy: "name the deployment", IDs: map[string]string{"species": errtext.Clip(species)},
	}
}

// notSpawnable is the error that lists the species that can be spawned.
func (e locked) notSpawnable(deployment, species string) error {
	var names []string
	for k := range e.templates {
		if deployment == "" || k.Deployment == deployment {
			names = append(names, k.Species)
		}
	}
	slices.Sort(names)
	return errtext.NotSpawnable(deployment, species, slices.Compact(names))
}

// ofSpecies completes a specification that names a species instead of a module, and
// returns a reference to the species' module, which the caller must close.
func (e locked) ofSpecies(spec deploy.CreatureSpec) (deploy.CreatureSpec, abi.Module, error) {
	switch {
	case spec.Address != "":
		return spec, nil, errtext.Invalid("spawn", "a creature that is spawned has no address", "leave the address out")
	case spec.Limits != (abi.Limits{}) || spec.Restart != (deploy.RestartPolicy{}) || spec.Grants != (journal.Grants{}) || spec.Overflow != 0:
		return spec, nil, errtext.Invalid("spawn", "limits, restart, mailbox and grants are those of the species", "leave them out, or name a module instead")
	}
	t, _, err := e.spawnTemplate(spec.Deployment, spec.Species)
	if err != nil {
		return spec, nil, err
	}
	config, err := specs.Overlay(spec.Name, t.Spec.Config, spec.Config)
	if err != nil {
		return spec, nil, err
	}
	own := t.Spec
	own.Species, own.Deployment = t.kind.Species, t.kind.Deployment
	own.Secret = append(slices.Clone(own.Secret), spec.Secret...)
	own.Config, own.Wasm, own.Address, own.Where = config, nil, "", ""
	own.Name, own.Privileged, own.Stopped = spec.Name, spec.Privileged, spec.Stopped
	own.Listen, own.Send, own.Join, own.Parent = spec.Listen, spec.Send, spec.Join, spec.Parent
	own.Workers = cmp.Or(spec.Workers, own.Workers)
	return own, t.module.Retain(), nil
}
