package recipes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed47132306/terrarium/engine/deploy"
)

// allSpecies evaluates the species of the recipes, and those of their catalogs.
func (l *loader) allSpecies(ctx context.Context, all []*loader, d *deploy.Deployment) {
	for _, l := range all {
		for _, decl := range l.ordered["species"] {
			if ctx.Err() != nil {
				return
			}
			species := l.oneSpecies(ctx, decl)
			l.species[l.prefix+"species."+decl.name] = &ofSpecies{decl, l, species.Name}
			d.Species = append(d.Species, species)
		}
	}
	spawnable := 0
	for i := range d.Species {
		if d.Species[i].Spawnable > 0 {
			spawnable++
		}
	}
	for _, l := range all {
		for _, decl := range l.ordered["catalog"] {
			if l.opts.ShapeOnly || ctx.Err() != nil {
				return
			}
			found := l.catalog(ctx, decl, deploy.MaxSpecies-spawnable)
			spawnable += len(found)
			d.Species = append(d.Species, found...)
		}
	}
}

// oneSpecies evaluates a species by itself: what creatures may be spawned from.
func (l *loader) oneSpecies(ctx context.Context, d *declaration) deploy.SpeciesSpec {
	s := scope{title: d.title}
	out := l.template(s, d)
	switch {
	case d.attr("module") != nil:
		if m := l.module(ctx, s, d); m != nil {
			out.Spec.Module, out.Spec.Wasm = m.ref, m.wasm
			if m.info != nil && d.attr("spawnable") != nil {
				out.Spec.Address = d.title
				(&fitting{loader: l, scope: s, d: d, module: m, spec: &out.Spec, partial: true}).check()
				out.Spec.Address = ""
			}
		}
	case d.attr("spawnable") != nil:
		l.add(l.at(s, d.attr("spawnable").NameRange, Diagnostic{Summary: "No module", Detail: "What may be spawned needs a module.",
			Remedy: `Add module = "FILE.wasm" or module = "builtin:NAME" to the species.`}))
	}
	return out
}

// template evaluates what a species and a catalog have in common.
func (l *loader) template(s scope, d *declaration) deploy.SpeciesSpec {
	out := deploy.SpeciesSpec{Name: l.names + d.name, Where: l.where(d.at)}
	out.Description, _ = l.stringAttr(s, d, "description")
	config := map[string]json.RawMessage{}
	l.traits(s, d, &out.Spec)
	l.addConfig(s, d, config, &out.Spec)
	setConfig(&out.Spec, config)
	if n, ok := l.countAttr(s, d, "spawnable"); ok {
		out.Spawnable = int(min(n, maxSpawnable))
		if n > maxSpawnable {
			l.fault(s, d.attr("spawnable").Expr, "Number out of range", fmt.Sprintf("Spawnable is at most %d.", maxSpawnable), "")
		}
	}
	return out
}

// maxSpawnable bounds how many creatures of a species may be alive, as
// maxInstances does how many a block makes.
const maxSpawnable = maxInstances
