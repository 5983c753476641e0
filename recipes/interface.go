package recipes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// output evaluates an output block: a value that the recipe around a sub-recipe can refer
// to, as recipe.NAME.OUTPUT.
func (l *loader) output(d *declaration) (cty.Value, bool) {
	s := scope{title: d.title, secret: true}
	if slices.Contains(memberKinds, d.name) {
		l.report(s, d.at, Diagnostic{Summary: "Reserved name", Detail: fmt.Sprintf("recipe.NAME.%s already stands for the things of that kind.", d.name), Remedy: "Use another name."})
		return cty.DynamicVal, false
	}
	a := d.attr("value")
	if a == nil {
		return cty.DynamicVal, false // which has been reported
	}
	v, ok := l.eval(s, a.Expr)
	if v, ok = l.light(d, v, ok); !ok {
		return v, false
	}
	sensitive := l.boolAttr(scope{title: d.title}, d, "sensitive")
	if v.ContainsMarked() && !sensitive {
		l.fault(s, a.Expr, "Sensitive value", "The value is sensitive, and the output is not.", "Add sensitive = true, or use nonsensitive where the value may be shown.")
		return cty.DynamicVal, false
	}
	if sensitive {
		v = v.Mark(sensitiveMark{})
	}
	return v, true
}

// outputs evaluates the outputs of the recipe, whether or not something refers to them.
func (vs *variables) outputs() {
	for _, d := range vs.ordered["output"] {
		vs.checkDescription(scope{title: d.title}, d)
		vs.value(node{"output", d.name})
	}
}

// addOutputs adds the outputs that a reference to a sub-recipe names to its value: one,
// or all if the reference does not name one. Only these are evaluated, so that
// sub-recipes can be given values of one another.
func (ev *evaluator) addOutputs(t hcl.Traversal, to map[string]cty.Value) bool {
	name := stepName(t[1])
	d, rest := ev.decls["recipe"][name], t[2:]
	if d.attr("for_each") == nil {
		v, ok := ev.subs[d.instances[0].address].withOutputs(to[name], rest)
		to[name] = v
		return ok
	}
	all := attributesOf(to[name])
	for _, i := range d.instances {
		if len(rest) > 0 && stepName(rest[0]) != i.key {
			continue
		}
		v, ok := ev.subs[i.address].withOutputs(all[i.key], rest[min(1, len(rest)):])
		if all[i.key] = v; !ok {
			return false
		}
	}
	to[name] = cty.ObjectVal(all)
	return true
}

// withOutputs returns the value of a sub-recipe with the outputs that the rest of a
// reference names.
func (ev *evaluator) withOutputs(v cty.Value, rest hcl.Traversal) (cty.Value, bool) {
	names := ev.declared("output")
	if len(rest) > 0 {
		names = []string{stepName(rest[0])}
		if ev.decls["output"][names[0]] == nil {
			return v, true // a thing in it
		}
	}
	if len(names) == 0 {
		return v, true
	}
	all := attributesOf(v)
	for _, name := range names {
		value, ok := ev.value(node{"output", name})
		if !ok {
			return v, false
		}
		all[name] = value
	}
	return cty.ObjectVal(all), true
}

// attributesOf returns a copy of the attributes of an object.
func attributesOf(v cty.Value) map[string]cty.Value {
	out := map[string]cty.Value{}
	if v, _ := v.Unmark(); v.Type().IsObjectType() && v.IsKnown() && !v.IsNull() {
		maps.Copy(out, v.AsValueMap())
	}
	return out
}
