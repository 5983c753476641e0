package recipes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed47132306/terrarium/engine/deploy"
)

// allSpecies evaluates the species and catalogs of all recipes.
func (a *assembly) allSpecies(ctx context.Context) {
	d := a.deployment
	for _, dec := range a.decoders {
		for _, decl := range dec.ordered["species"] {
			if ctx.Err() != nil {
				return
			}
			species := dec.oneSpecies(ctx, decl)
			a.species[dec.prefix+"species."+decl.name] = &ofSpecies{decl, dec, species.Name}
			d.Species = append(d.Species, species)
		}
	}
	spawnable := 0
	for i := range d.Species {
		if d.Species[i].Spawnable > 0 {
			spawnable++
		}
	}
	for _, dec := range a.decoders {
		for _, decl := range dec.ordered["catalog"] {
			if a.opts.ShapeOnly || ctx.Err() != nil {
				return
			}
			found := dec.catalog(ctx, decl, deploy.MaxSpecies-spawnable)
			spawnable += len(found)
			d.Species = append(d.Species, found...)
		}
	}
}

// oneSpecies evaluates a species by itself, for spawning.
func (dec *decoder) oneSpecies(ctx context.Context, d *declaration) deploy.SpeciesSpec {
	s := scope{title: d.title}
	out := dec.template(s, d)
	switch {
	case d.attr("module") != nil:
		if m := dec.modules.of(ctx, s, d); m != nil {
			out.Spec.Module, out.Spec.Wasm = m.ref, m.wasm
			out.Description = cmp.Or(out.Description, m.description())
			if m.info != nil && d.attr("spawnable") != nil {
				out.Spec.Address = d.title
				(&fitting{evaluator: dec.evaluator, scope: s, d: d, module: m, spec: &out.Spec, partial: true}).check()
				out.Spec.Address = ""
			}
		}
	case d.attr("spawnable") != nil:
		dec.report(s, d.attr("spawnable").NameRange, Diagnostic{Summary: "No module", Detail: "A spawnable species needs a module.",
			Remedy: `Add module = "FILE.wasm" or module = "builtin:NAME" to the species.`})
	}
	return out
}

// template evaluates the attributes that species and catalogs have in common.
func (dec *decoder) template(s scope, d *declaration) deploy.SpeciesSpec {
	out := deploy.SpeciesSpec{Name: dec.names + d.name, Where: dec.where(d.at)}
	out.Description = dec.description(s, d)
	config := map[string]json.RawMessage{}
	dec.traits(s, d, &out.Spec)
	dec.addConfig(s, d, config, &out.Spec)
	setConfig(&out.Spec, config)
	if n, ok := dec.countAttr(s, d, "spawnable"); ok {
		out.Spawnable = int(min(n, maxSpawnable))
		if n > maxSpawnable {
			dec.fault(s, d.attr("spawnable").Expr, "Number out of range", fmt.Sprintf("Spawnable can be at most %d.", maxSpawnable), "")
		}
	}
	return out
}

// maxSpawnable bounds how many creatures of a species may be alive, like maxInstances for
// the instances of a block.
const maxSpawnable = maxInstances
