package recipes

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes/policy"
	"github.com/zclconf/go-cty/cty"
)

// wireTarget is where an output wire leads, for the checks that need the root.
type wireTarget struct {
	in        *loader
	scope     scope
	expr      hcl.Expression
	from      string // address of the creature
	to        string
	allowSelf bool
}

// outputs reads the output wires of a creature.
func (l *loader) outputs(s scope, d *declaration, address string) []deploy.OutputSpec {
	var out []deploy.OutputSpec
	blocks := l.blocks(s, d)
	s = withRoot(s)
	for _, b := range blocks {
		if b.Type != "wire" {
			continue
		}
		if len(out) == journal.MaxWires {
			l.add(l.at(s, b.DefRange, Diagnostic{Summary: "Too many output wires",
				Detail: fmt.Sprintf("A creature has at most %d.", journal.MaxWires), Remedy: "Send on a channel, which any number of creatures can hear."}))
			break
		}
		if spec, ok := l.output(s, d, b, address); ok {
			out = append(out, spec)
		}
	}
	return out
}

// withRoot is the scope of wires, in which root has a meaning.
func withRoot(s scope) scope {
	s.extra = maps.Clone(s.extra)
	if s.extra == nil {
		s.extra = map[string]cty.Value{}
	}
	s.extra["root"] = rootTarget
	return s
}

var rootTarget = reference("root", "root", string(journal.ToRoot))

func (l *loader) output(s scope, d *declaration, b *hcl.Block, address string) (deploy.OutputSpec, bool) {
	c := l.blockContent(d.title, b)
	spec := deploy.OutputSpec{Name: b.Labels[0], WithContent: true, Where: l.where(b.DefRange)}
	if !validKey(spec.Name) {
		l.add(l.at(s, b.LabelRanges[0], Diagnostic{Summary: "Invalid name", Detail: fmt.Sprintf("%q cannot be the name of an output wire.", spec.Name),
			Remedy: fmt.Sprintf("Names are printable texts without spaces at the ends, of 1 to %d bytes.", maxKeyBytes)}))
	}
	if v, _, ok := l.plain(s, c, "with_content"); ok {
		spec.WithContent = v.True()
	}
	spec.AllowSelf = l.boolAttr(s, c, "allow_self")
	l.declareDescription(s, c, address+".wire."+spec.Name)
	l.prompt(s, c, &spec)
	spec.When = l.when(s, c)
	a := c.attr("to")
	if a == nil {
		return spec, false // which has been reported
	}
	var ok bool
	if spec.To, ok = l.target(s, a.Expr); ok {
		l.targets = append(l.targets, wireTarget{l, s, a.Expr, address, spec.To, spec.AllowSelf})
	}
	return spec, ok
}

// target evaluates where a wire leads.
func (l *loader) target(s scope, expr hcl.Expression) (string, bool) {
	v, ok := l.eval(s, expr)
	if !ok {
		return "", false
	}
	if address, ok := refAddress(v, "root"); ok {
		return address, true
	}
	address, ok := refAddress(v, "creature")
	if !ok {
		l.wrongReference(s, expr, v, "creature")
	}
	return address, ok
}

func (l *loader) prompt(s scope, c blockBody, spec *deploy.OutputSpec) {
	text, ok := l.stringAttr(s, c, "prompt")
	if !ok {
		return
	}
	spec.Prompt = text
	expr := c.attr("prompt").Expr
	if len(text) > journal.MaxPrompt {
		l.fault(s, expr, "Prompt too long", fmt.Sprintf("A prompt has at most %d bytes; this one has %d.", journal.MaxPrompt, len(text)), "")
		return
	}
	var bad *abi.Error
	if errors.As(deploy.CheckPrompt(text, spec.WithContent), &bad) {
		l.fault(s, expr, "Mistake in a prompt", sentence(bad.Message), sentence(bad.Remedy))
	}
}

// when evaluates which predicate a wire asks.
func (l *loader) when(s scope, c blockBody) string {
	a := c.attr("when")
	if a == nil {
		return ""
	}
	v, ok := l.eval(s, a.Expr)
	if !ok || v.IsNull() {
		return ""
	}
	if _, ok := refAddress(v, "predicate"); !ok {
		l.wrongReference(s, a.Expr, v, "predicate")
		return ""
	}
	v, _ = v.UnmarkDeep()
	return v.GetAttr("name").AsString()
}

// prepareOutputs looks up the references of wires of a creature without
// instances.
func (l *loader) prepareOutputs(s scope, d *declaration) {
	s = withRoot(s)
	for _, b := range d.content.Blocks {
		if b.Type != "wire" {
			continue
		}
		c := l.blockContent(d.title, b)
		for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
			l.prepare(s, c.Attributes[name].Expr)
		}
	}
}

// checkTargets reports wires to a root that there is none of, and wires back to
// their source.
func (l *loader) checkTargets(d *deploy.Deployment) {
	// What is wrong otherwise may be why channels are missing.
	homes, broken := homesOf(d), l.diags.HasErrors()
	for _, t := range l.targets {
		to := t.to
		if to == string(journal.ToRoot) {
			if to = d.Root; l.root == nil {
				t.in.fault(t.scope, t.expr, "No root", "The wire leads to the root, and the recipe has none.", "Declare it: root = creature.NAME.")
			}
		}
		if apart := !l.opts.ShapeOnly && !broken && to != string(journal.ToRoot); apart && homes.of(t.from) != homes.of(to) {
			t.in.fault(t.scope, t.expr, "Wire between graphs", fmt.Sprintf("%s and %s are not joined by any channel, and an output wire joins no graphs.", t.from, to),
				"Have both listen or send on a channel that leads, perhaps over others, from one to the other.")
		}
		if to == t.from && !t.allowSelf {
			t.in.fault(t.scope, t.expr, "Wire back to its source", fmt.Sprintf("The output of %s would come back to it.", t.from), "Write allow_self = true if that is meant.")
		}
	}
}

// homes tells which creatures are in one graph: each address leads to another one of
// the same graph, or to itself.
type homes map[string]string

func (h homes) of(address string) string {
	for h[address] != "" && h[address] != address {
		address = h[address]
	}
	return address
}

// homesOf joins creatures by their channels. A root listens on all of them, and all
// others can report to it.
func homesOf(d *deploy.Deployment) homes {
	h := homes{}
	join := func(a, b string) {
		if a, b = h.of(a), h.of(b); a != b {
			h[a] = b
		}
	}
	for i := range d.Creatures {
		c := &d.Creatures[i]
		if d.Root != "" {
			join(c.Address, d.Root)
		}
		for _, w := range slices.Concat(c.Listen, c.Send) {
			join(c.Address, w.Channel)
		}
	}
	return h
}

// predicates compiles the predicates of all recipes and hands them to the
// deployment.
func (l *loader) predicates(all []*loader, d *deploy.Deployment) {
	var sources []policy.PredicateSource
	scripts := map[string]*script{}
	for _, l := range all {
		for _, decl := range l.ordered["predicate"] {
			s := scope{title: decl.title}
			timeout := l.timeout(s, decl, "an output")
			l.checkDescription(s, decl)
			source, ok := l.script(s, decl)
			if !ok {
				continue
			}
			scripts[l.names+decl.name] = source
			sources = append(sources, policy.PredicateSource{Name: l.names + decl.name, Source: source.text, File: source.name, Line: source.line, Timeout: timeout})
		}
	}
	if len(sources) == 0 {
		return
	}
	made, faults := policy.NewPredicates(sources)
	for _, f := range faults {
		scripts[f.Policy].in.scriptFault(scripts[f.Policy], f)
	}
	d.Predicates = made
}
