package recipes

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// memberKinds are the kinds of thing in a sub-recipe that the recipe around it
// may refer to, as in recipe.alerts.channel.feed.
var memberKinds = []string{"channel", "creature", "predicate", "recipe", "species"}

// recipe loads a sub-recipe and returns what a reference to it means: an object
// of its members by kind and name, or with for_each an object of these.
func (l *loader) recipe(d *declaration) (cty.Value, bool) {
	if !l.instantiate(d) {
		d.failed = true
		return cty.DynamicVal, false
	}
	if d.attr("for_each") == nil {
		return d.instances[0].sub.members(), true
	}
	all := map[string]cty.Value{}
	for _, i := range d.instances {
		all[i.key] = i.sub.members()
	}
	return cty.ObjectVal(all), true
}

// members returns what can be referred to. What is in error is not known, which
// keeps silent whatever depends on it.
func (l *loader) members() cty.Value {
	kinds := map[string]cty.Value{}
	for _, kind := range memberKinds {
		things := map[string]cty.Value{}
		for _, name := range l.declared(kind) {
			things[name] = cty.DynamicVal
			if v, ok := l.value(node{kind, name}); ok {
				things[name] = v
			}
		}
		kinds[kind] = cty.ObjectVal(things)
	}
	return cty.ObjectVal(kinds)
}

// referMember checks how a reference goes on behind recipe.NAME, as far as it is
// written out.
func (l *loader) referMember(s scope, t hcl.Traversal) bool {
	d := l.decls["recipe"][stepName(t[1])]
	rest := t[2:]
	i := 0 // of the instance
	if d.attr("for_each") != nil && len(rest) > 0 {
		i = slices.IndexFunc(d.instances, func(i instance) bool { return i.key == stepName(rest[0]) })
		if i < 0 {
			l.unknownInstance(s, t, d)
			return false
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return true
	}
	return d.instances[i].sub.hasMember(l, s, t, rest)
}

// unknownInstance reports a reference to a sub-recipe with for_each that names
// no instance of it.
func (l *loader) unknownInstance(s scope, t hcl.Traversal, d *declaration) {
	var keys []string
	for _, i := range d.instances {
		keys = append(keys, i.key)
	}
	step := stepName(t[2])
	f := Diagnostic{Summary: "Which recipe?", Detail: fmt.Sprintf("recipe.%s stands for all instances of a for_each, and none has the key %q.", d.name, step),
		Suggestion: nearest(step, keys)}
	switch {
	case f.Suggestion != "":
	case len(keys) == 0:
		f.Remedy = "It has no instances."
	default:
		f.Remedy = fmt.Sprintf("Say which one, for example recipe.%s[%q].", d.name, keys[0])
	}
	l.add(l.at(s, t.SourceRange(), f))
}

// hasMember checks a reference of another loader to a member of this one.
func (l *loader) hasMember(from *loader, s scope, t, rest hcl.Traversal) bool {
	kind := stepName(rest[0])
	if !slices.Contains(memberKinds, kind) {
		from.add(from.at(s, t.SourceRange(), Diagnostic{Summary: "Unknown reference",
			Detail:     fmt.Sprintf("%q is nothing that can be referred to in a sub-recipe.", kind),
			Suggestion: nearest(kind, memberKinds), Remedy: fmt.Sprintf("There are %s; its variables are given values in its block.", enumerate(memberKinds))}))
		return false
	}
	if len(rest) == 1 {
		return true
	}
	name := stepName(rest[1])
	if l.decls[kind][name] != nil {
		return true
	}
	if l.broken {
		return false
	}
	names := l.declared(kind)
	f := Diagnostic{Summary: "Unknown " + kind, Detail: fmt.Sprintf("%s declares no %s named %q.", l.place, kind, name), Suggestion: nearest(name, names)}
	if f.Suggestion == "" && len(names) > 0 {
		f.Remedy = fmt.Sprintf("Declared: %s.", enumerate(names))
	}
	if kind == "channel" {
		l.used[f.Suggestion] = true
	}
	from.add(from.at(s, t.SourceRange(), f))
	return false
}

// mentionMember notes a channel of a sub-recipe that a reference in error may
// have meant.
func (l *loader) mentionMember(t hcl.Traversal) {
	d := l.decls["recipe"][stepName(t[1])]
	if d == nil {
		return
	}
	for i, step := range t[2:] {
		if stepName(step) != "channel" || i+3 >= len(t) {
			continue
		}
		for _, instance := range d.instances {
			if instance.sub != nil {
				instance.sub.used[stepName(t[i+3])] = true
			}
		}
	}
}
