package recipes

import (
	"context"
	"fmt"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// assembly is the deployment that the decoders of a recipe and of its sub-recipes put
// together.
type assembly struct {
	opts         *settings
	deployment   *deploy.Deployment
	decoders     []*decoder // of the recipe, then of its sub-recipes
	modules      map[string]*module
	wired        map[string]bool        // addresses of channels with an edge
	channelNames map[string]string      // by address
	species      map[string]*ofSpecies  // by address
	targets      []wireTarget           // of output wires, to be checked once the root is known
	described    []deploy.Declaration   // of creatures and output wires
	places       map[string]*Diagnostic // of creatures by address: where they are declared
	secrets      map[string][]byte      // values of sensitive variables as JSON, by address and name
	needed       map[string]string      // addresses of connectors, by what they need exclusively
	files        []usedFile             // of connectors
}

// decoder decodes the channels, species and creatures of one recipe.
type decoder struct {
	*evaluator
	*assembly
	modules   *moduleReader
	reachable map[string]*deploy.Capability // capabilities of this recipe, by kind and name; nil after an error
	granted   map[string]bool               // those of them that something is granted
}

func newAssembly(o *settings, d *deploy.Deployment) *assembly {
	return &assembly{
		opts: o, deployment: d, modules: map[string]*module{}, wired: map[string]bool{}, channelNames: map[string]string{},
		species: map[string]*ofSpecies{}, places: map[string]*Diagnostic{}, secrets: map[string][]byte{}, needed: map[string]string{},
	}
}

// add takes in a recipe whose variables are known.
func (a *assembly) add(ev *evaluator) {
	a.decoders = append(a.decoders, &decoder{evaluator: ev, assembly: a, modules: &moduleReader{ev, a.opts, a.modules}, granted: map[string]bool{}})
}

// decode decodes all recipes kind by kind, so that things are decoded before references
// to them.
func (a *assembly) decode(ctx context.Context) {
	for _, dec := range a.decoders {
		dec.channels()
		dec.capabilities()
	}
	a.allSpecies(ctx)
	for _, dec := range a.decoders {
		dec.creatures(ctx)
		dec.connectors()
	}
	for _, dec := range a.decoders {
		dec.checkEdges()
		dec.checkGranted()
	}
	outermost := a.decoders[0]
	outermost.rootCreature()
	outermost.checkTargets()
	a.checkNames()
	a.moves()
	a.checks()
}

// scripts returns the decoders of policies and predicates, one for each recipe.
func (a *assembly) scripts() []*scripts {
	species := map[string]string{}
	for address, s := range a.species {
		species[address] = s.name
	}
	var out []*scripts
	for _, dec := range a.decoders {
		out = append(out, &scripts{dec.evaluator, a.opts, species})
	}
	return out
}

func (dec *decoder) rootCreature() {
	if dec.root == nil {
		return
	}
	s := scope{title: "root"}
	v, ok := dec.eval(s, dec.root.Expr)
	if !ok {
		return
	}
	address, ok := refAddress(v, "creature")
	if !ok {
		dec.wrongReference(s, dec.root.Expr, v, "creature")
		return
	}
	dec.deployment.Root = address
}

// checkTargets reports wires to a missing root, wires between graphs and wires back to
// their source.
func (dec *decoder) checkTargets() {
	// Other mistakes may be the reason for missing channels.
	homes, broken := homesOf(dec.deployment), dec.diags.HasErrors()
	for _, t := range dec.targets {
		to := t.to
		if to == string(journal.ToRoot) {
			if to = dec.deployment.Root; dec.root == nil {
				t.in.fault(t.scope, t.expr, "No root", "The wire leads to the root, but the recipe has no root.", "Declare it: root = creature.NAME.")
			}
		}
		if apart := !dec.opts.ShapeOnly && !broken && to != string(journal.ToRoot); apart && homes.of(t.from) != homes.of(to) {
			t.in.fault(t.scope, t.expr, "Wire between graphs", fmt.Sprintf("No channel joins %s and %s, and an output wire does not join graphs.", t.from, to),
				"Let both listen or send on the same channel, or on channels that other creatures join.")
		}
		if to == t.from && !t.allowSelf {
			t.in.fault(t.scope, t.expr, "Wire back to its source", fmt.Sprintf("%s would receive its own output.", t.from), "Write allow_self = true if that is intended.")
		}
	}
}

// checkNames reports names that two things of the deployment share.
func (a *assembly) checkNames() {
	for _, kind := range []string{"channel", "creature", "species"} {
		names := map[string]string{}
		for _, dec := range a.decoders {
			for _, d := range dec.ordered[kind] {
				for _, name := range dec.namesOf(d) {
					if first, twice := names[name]; twice {
						dec.usedTwice(d, name, first)
					}
					names[name] = dec.where(d.at)
				}
			}
		}
	}
}

func (dec *decoder) namesOf(d *declaration) []string {
	if d.kind == "species" {
		return []string{dec.names + d.name}
	}
	var names []string
	for _, i := range d.instances {
		names = append(names, i.name)
	}
	return names
}

func (dec *decoder) usedTwice(d *declaration, name, first string) {
	at := d.at
	if a := d.attr("name"); a != nil {
		at = a.Expr.Range()
	}
	dec.report(scope{title: d.title}, at, Diagnostic{Summary: "Name used twice",
		Detail: fmt.Sprintf("Another %s already has the name %q; see %s.", d.kind, name, first),
		Remedy: "Names must be unique in a recipe. With for_each, include each.key in the name."})
}
