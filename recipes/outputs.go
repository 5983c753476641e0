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
	"github.com/zclconf/go-cty/cty"
)

// wireTarget is the target of an output wire, for checks that need the root.
type wireTarget struct {
	in        *evaluator
	scope     scope
	expr      hcl.Expression
	from      string // address of the creature
	to        string
	allowSelf bool
}

func (dec *decoder) outputs(s scope, d *declaration, address string) []deploy.OutputSpec {
	var out []deploy.OutputSpec
	blocks := dec.blocks(s, d)
	s = withRoot(s)
	for _, b := range blocks {
		if b.Type != "wire" {
			continue
		}
		if len(out) == journal.MaxWires {
			dec.report(s, b.DefRange, Diagnostic{Summary: "Too many output wires",
				Detail: fmt.Sprintf("A creature can have at most %d output wires.", journal.MaxWires), Remedy: "Use a channel instead: any number of creatures can listen on it."})
			break
		}
		if spec, ok := dec.output(s, d, b, address); ok {
			out = append(out, spec)
		}
	}
	return out
}

// withRoot returns the scope for wires, which can refer to root.
func withRoot(s scope) scope {
	s.extra = maps.Clone(s.extra)
	if s.extra == nil {
		s.extra = map[string]cty.Value{}
	}
	s.extra["root"] = rootTarget
	return s
}

var rootTarget = reference("root", "root", string(journal.ToRoot))

func (dec *decoder) output(s scope, d *declaration, b *hcl.Block, address string) (deploy.OutputSpec, bool) {
	c := dec.blockContent(d.title, b)
	spec := deploy.OutputSpec{Name: b.Labels[0], WithContent: true, Where: dec.where(b.DefRange)}
	if !validKey(spec.Name) {
		dec.report(s, b.LabelRanges[0], Diagnostic{Summary: "Invalid name", Detail: fmt.Sprintf("%q cannot be the name of an output wire.", spec.Name),
			Remedy: nameRule})
	}
	if v, _, ok := dec.plain(s, c, "with_content"); ok {
		spec.WithContent = v.True()
	}
	spec.AllowSelf = dec.boolAttr(s, c, "allow_self")
	dec.declareBesides(s, c, address+".wire."+spec.Name)
	dec.prompt(s, c, &spec)
	spec.When = dec.when(s, c)
	a := c.attr("to")
	if a == nil {
		return spec, false // which has been reported
	}
	var ok bool
	if spec.To, ok = dec.target(s, a.Expr); ok {
		dec.targets = append(dec.targets, wireTarget{dec.evaluator, s, a.Expr, address, spec.To, spec.AllowSelf})
	}
	return spec, ok
}

func (dec *decoder) target(s scope, expr hcl.Expression) (string, bool) {
	v, ok := dec.eval(s, expr)
	if !ok {
		return "", false
	}
	if address, ok := refAddress(v, "root"); ok {
		return address, true
	}
	address, ok := refAddress(v, "creature")
	if !ok {
		dec.wrongReference(s, expr, v, "creature")
	}
	return address, ok
}

func (dec *decoder) prompt(s scope, c blockBody, spec *deploy.OutputSpec) {
	text, ok := dec.stringAttr(s, c, "prompt")
	if !ok {
		return
	}
	spec.Prompt = text
	expr := c.attr("prompt").Expr
	if len(text) > journal.MaxPrompt {
		dec.fault(s, expr, "Prompt too long", fmt.Sprintf("A prompt has at most %d bytes; this one has %d.", journal.MaxPrompt, len(text)), "")
		return
	}
	var bad *abi.Error
	if errors.As(deploy.CheckPrompt(text, spec.WithContent), &bad) {
		dec.fault(s, expr, "Invalid prompt", sentence(bad.Message), sentence(bad.Remedy))
	}
}

func (dec *decoder) when(s scope, c blockBody) string {
	a := c.attr("when")
	if a == nil {
		return ""
	}
	v, ok := dec.eval(s, a.Expr)
	if !ok || v.IsNull() {
		return ""
	}
	if _, ok := refAddress(v, "predicate"); !ok {
		dec.wrongReference(s, a.Expr, v, "predicate")
		return ""
	}
	v, _ = v.UnmarkDeep()
	return v.GetAttr("name").AsString()
}

// prepareOutputs looks up the references in the wires of a creature that has no instances,
// so that mistakes in them are reported.
func (dec *decoder) prepareOutputs(s scope, d *declaration) {
	s = withRoot(s)
	for _, b := range d.content.Blocks {
		if b.Type != "wire" {
			continue
		}
		c := dec.blockContent(d.title, b)
		for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
			dec.prepare(s, c.Attributes[name].Expr)
		}
	}
}

// homes groups creatures into graphs: each address leads to another address of the same
// graph, or to itself.
type homes map[string]string

func (h homes) of(address string) string {
	for h[address] != "" && h[address] != address {
		address = h[address]
	}
	return address
}

// homesOf groups creatures by their channels. A root listens on all channels, and all
// other creatures can report to it.
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
