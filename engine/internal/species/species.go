// Package species keeps the species of the applied deployments, with the modules that
// creatures of a species share, and counts how many creatures of each are alive.
package species

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
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

// Template is a species that may be spawned, with its module.
type Template struct {
	*deploy.SpeciesSpec
	Kind   draft.Kind
	Module *modules.Shared
}

// Load checks the species of a deployment, and compiles and tries those that may be
// spawned, so that a deployment with one that cannot be loaded is refused as a whole. If
// it returns an error, the caller still has to close the templates.
func Load(d *deploy.Deployment, compile func(*deploy.CreatureSpec) (abi.Module, error), try func(*Template) error) (templates []*Template, err error) {
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
		m, err := compile(&s.Spec)
		if err != nil {
			return templates, s.Wrap(err)
		}
		t := &Template{s, draft.Kind{Deployment: d.Name, Species: s.Name}, &modules.Shared{Module: m}}
		templates = append(templates, t)
		if err := try(t); err != nil {
			return templates, s.Wrap(err)
		}
	}
	return templates, nil
}

// Close closes the modules of templates. Creatures of the species keep theirs.
func Close(ctx context.Context, log *slog.Logger, templates []*Template) {
	for _, t := range templates {
		if err := t.Module.Close(ctx); err != nil {
			log.Debug("closing a module", "species", t.Name, "error", err)
		}
	}
}

// Aware describes templates in awareness documents.
func Aware(templates []*Template) []outlook.AwareSpecies {
	var list []outlook.AwareSpecies
	for _, t := range templates {
		list = append(list, outlook.AwareSpecies{Species: t.Name, Description: errtext.Cut(t.Description, outlook.MaxDescription), Limit: t.Spawnable})
	}
	return list
}

// Table holds the species of the applied deployments. It must not be used by several
// goroutines at once.
type Table struct {
	templates map[draft.Kind]*Template
	alive     map[draft.Kind]int
}

// NewTable makes an empty table.
func NewTable() *Table {
	return &Table{templates: map[draft.Kind]*Template{}, alive: map[draft.Kind]int{}}
}

// Replace replaces the species of a deployment, and returns the former ones.
func (t *Table) Replace(deployment string, templates []*Template) (former []*Template) {
	for k, template := range t.templates {
		if k.Deployment == deployment {
			former = append(former, template)
			delete(t.templates, k)
		}
	}
	for _, template := range templates {
		t.templates[template.Kind] = template
	}
	return former
}

// All returns all templates, in no order.
func (t *Table) All() []*Template { return slices.Collect(maps.Values(t.templates)) }

// Spec returns a species that may be spawned, or nil.
func (t *Table) Spec(k draft.Kind) *deploy.SpeciesSpec {
	if template := t.templates[k]; template != nil {
		return template.SpeciesSpec
	}
	return nil
}

// Of returns the species of a deployment that may be spawned, in no order.
func (t *Table) Of(deployment string) []*deploy.SpeciesSpec {
	var out []*deploy.SpeciesSpec
	for k, template := range t.templates {
		if k.Deployment == deployment {
			out = append(out, template.SpeciesSpec)
		}
	}
	return out
}

// Count adds to the number of living creatures of a species, if the creature is a spawned
// one.
func (t *Table) Count(deployment string, spec *deploy.CreatureSpec, by int) {
	k, ok := draft.KindOf(deployment, spec)
	if !ok {
		return
	}
	if t.alive[k] += by; t.alive[k] == 0 {
		delete(t.alive, k)
	}
}

// Alive is how many spawned creatures of a species are alive.
func (t *Table) Alive(k draft.Kind) int { return t.alive[k] }

// find returns a species of a deployment or, without a deployment, of the only one that
// has such a species.
func (t *Table) find(deployment, species string, applied map[string]*deploy.Deployment) (*Template, error) {
	if deployment != "" && applied[deployment] == nil {
		return nil, errtext.NotApplied(deployment, slices.Sorted(maps.Keys(applied)))
	}
	var found []*Template
	for k, template := range t.templates {
		if k.Species == species && (deployment == "" || k.Deployment == deployment) {
			found = append(found, template)
		}
	}
	switch len(found) {
	case 0:
		return nil, t.NotSpawnable(deployment, species)
	case 1:
		return found[0], nil
	}
	return nil, &abi.Error{
		Code: abi.Ambiguous, Op: "spawn", Message: fmt.Sprintf("%d deployments have a species %s", len(found), errtext.Clip(species)),
		Remedy: "name the deployment", IDs: map[string]string{"species": errtext.Clip(species)},
	}
}

// NotSpawnable is the error that lists the species that can be spawned.
func (t *Table) NotSpawnable(deployment, species string) error {
	var names []string
	for k := range t.templates {
		if deployment == "" || k.Deployment == deployment {
			names = append(names, k.Species)
		}
	}
	slices.Sort(names)
	return errtext.NotSpawnable(deployment, species, slices.Compact(names))
}

// Complete completes a specification that names a species instead of a module, and
// returns a reference to the species' module, which the caller must close. How many are
// alive is checked when the creature is added (see [draft.Draft.MaySpawn]), because
// another spawn may come between.
func (t *Table) Complete(spec deploy.CreatureSpec, applied map[string]*deploy.Deployment) (deploy.CreatureSpec, abi.Module, error) {
	switch {
	case spec.Address != "":
		return spec, nil, errtext.Invalid("spawn", "a creature that is spawned has no address", "leave the address out")
	case spec.Limits != (abi.Limits{}) || spec.Restart != (deploy.RestartPolicy{}) || spec.Grants != (journal.Grants{}) || spec.Overflow != 0:
		return spec, nil, errtext.Invalid("spawn", "limits, restart, mailbox and grants are those of the species", "leave them out, or name a module instead")
	}
	template, err := t.find(spec.Deployment, spec.Species, applied)
	if err != nil {
		return spec, nil, err
	}
	config, err := specs.Overlay(spec.Name, template.Spec.Config, spec.Config)
	if err != nil {
		return spec, nil, err
	}
	own := template.Spec
	own.Species, own.Deployment = template.Kind.Species, template.Kind.Deployment
	own.Secret = specs.WithValue(slices.Concat(own.Secret, spec.Secret), config) // null is no secret
	own.Given = specs.Given(own.Secret, spec.Config)
	own.Config, own.Wasm, own.Address, own.Where = config, nil, "", ""
	own.Name, own.Privileged, own.Stopped = spec.Name, spec.Privileged, spec.Stopped
	own.Listen, own.Send, own.Join, own.Parent = spec.Listen, spec.Send, spec.Join, spec.Parent
	own.Description = cmp.Or(spec.Description, template.Description)
	own.Workers = cmp.Or(spec.Workers, own.Workers)
	return own, template.Module.Retain(), nil
}
