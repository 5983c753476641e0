package recipes

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// memberKinds are the kinds of thing in a sub-recipe that the enclosing recipe can refer
// to, as in recipe.alerts.channel.feed.
var memberKinds = []string{"channel", "creature", "predicate", "recipe", "species"}

// members returns the value of a reference to the recipe. A member with an error has an
// unknown value, so that nothing is reported about references to it.
func (ev *evaluator) members() cty.Value {
	kinds := map[string]cty.Value{}
	for _, kind := range memberKinds {
		things := map[string]cty.Value{}
		for _, name := range ev.declared(kind) {
			things[name] = cty.DynamicVal
			if v, ok := ev.value(node{kind, name}); ok {
				things[name] = v
			}
		}
		kinds[kind] = cty.ObjectVal(things)
	}
	return cty.ObjectVal(kinds)
}

// referMember checks the literal steps of a reference after recipe.NAME.
func (ev *evaluator) referMember(s scope, t hcl.Traversal) bool {
	d := ev.decls["recipe"][stepName(t[1])]
	rest := t[2:]
	i := 0 // of the instance
	if d.attr("for_each") != nil && len(rest) > 0 {
		i = slices.IndexFunc(d.instances, func(i instance) bool { return i.key == stepName(rest[0]) })
		if i < 0 {
			ev.unknownInstance(s, t, d)
			return false
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return true
	}
	return ev.subs[d.instances[i].address].hasMember(ev, s, t, rest)
}

// unknownInstance reports a reference to a sub-recipe with for_each that selects no
// instance of it.
func (ev *evaluator) unknownInstance(s scope, t hcl.Traversal, d *declaration) {
	var keys []string
	for _, i := range d.instances {
		keys = append(keys, i.key)
	}
	step := stepName(t[2])
	f := Diagnostic{Summary: "Which recipe?", Detail: fmt.Sprintf("recipe.%s has for_each, and no instance has the key %q.", d.name, step),
		Suggestion: nearest(step, keys)}
	switch {
	case f.Suggestion != "":
	case len(keys) == 0:
		f.Remedy = "It has no instances."
	default:
		f.Remedy = fmt.Sprintf("Select an instance, for example recipe.%s[%q].", d.name, keys[0])
	}
	ev.report(s, t.SourceRange(), f)
}

// hasMember checks a reference from another recipe to a member of this one.
func (ev *evaluator) hasMember(from *evaluator, s scope, t, rest hcl.Traversal) bool {
	kind := stepName(rest[0])
	if ev.decls["output"][kind] != nil {
		return true
	}
	if !slices.Contains(memberKinds, kind) {
		from.report(s, t.SourceRange(), Diagnostic{Summary: "Unknown reference",
			Detail:     fmt.Sprintf("%q is neither an output of this sub-recipe nor a kind of thing in it.", kind),
			Suggestion: nearest(kind, append(ev.declared("output"), memberKinds...)), Remedy: fmt.Sprintf("The kinds are %s. Variables get their values in the block of the sub-recipe.", enumerate(memberKinds))})
		return false
	}
	if len(rest) == 1 {
		return true
	}
	name := stepName(rest[1])
	if ev.decls[kind][name] != nil {
		return true
	}
	if ev.broken {
		return false
	}
	names := ev.declared(kind)
	f := Diagnostic{Summary: "Unknown " + kind, Detail: fmt.Sprintf("%s declares no %s named %q.", ev.place, kind, name), Suggestion: nearest(name, names)}
	if f.Suggestion == "" && len(names) > 0 {
		f.Remedy = fmt.Sprintf("Declared: %s.", enumerate(names))
	}
	if kind == "channel" {
		ev.used[f.Suggestion] = true
	}
	from.report(s, t.SourceRange(), f)
	return false
}

// mentionMember records a channel of a sub-recipe that a faulty reference may have meant.
func (ev *evaluator) mentionMember(t hcl.Traversal) {
	d := ev.decls["recipe"][stepName(t[1])]
	if d == nil {
		return
	}
	for i, step := range t[2:] {
		if stepName(step) != "channel" || i+3 >= len(t) {
			continue
		}
		for _, instance := range d.instances {
			if sub := ev.subs[instance.address]; sub != nil {
				sub.used[stepName(t[i+3])] = true
			}
		}
	}
}
