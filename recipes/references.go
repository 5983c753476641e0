package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// kindOf maps the roots of references to kinds of declaration.
var kindOf = map[string]string{"var": "variable", "local": "local", "channel": "channel", "species": "species", "creature": "creature", "predicate": "predicate",
	"recipe": "recipe", "output": "output"}

// refer looks up one reference of an expression and adds its value to vars.
func (ev *evaluator) refer(s scope, p *prepared, t hcl.Traversal, vars map[string]map[string]cty.Value) bool {
	root := t.RootName()
	if _, ok := s.extra[root]; ok {
		return true
	}
	if s.pure {
		ev.report(s, t.SourceRange(), Diagnostic{Summary: "No references here", Detail: "A function can only refer to its parameters.",
			Suggestion: nearest(root, slices.Sorted(maps.Keys(s.extra))), Remedy: "Add a parameter for it."})
		return false
	}
	if s.static != "" {
		ev.report(s, t.SourceRange(), Diagnostic{Summary: "No references here",
			Detail: fmt.Sprintf("References cannot be used in %s, where nothing else is known yet.", s.static),
			Remedy: "Write the value itself."})
		return false
	}
	if root == "each" {
		p.usesEach = true
		return ev.referEach(s, t)
	}
	if vars[root] == nil {
		vars[root] = map[string]cty.Value{}
	}
	if root == "path" {
		return ev.referPath(s, t, vars[root])
	}
	if kindOf[root] == "" || root == "output" { // outputs are for the recipe around this one
		ev.unknownRoot(s, t)
		return false
	}
	if len(t) == 1 {
		return ev.referAll(root, vars[root])
	}
	return ev.referOne(s, t, vars[root]) && (root != "recipe" || ev.referMember(s, t) && ev.addOutputs(t, vars[root]))
}

func (ev *evaluator) referEach(s scope, t hcl.Traversal) bool {
	if !s.forEach {
		ev.report(s, t.SourceRange(), Diagnostic{Summary: "No for_each here",
			Detail: "each.key and each.value can only be used in a block with for_each.", Remedy: "Give the block a for_each, or write the value itself."})
		return false
	}
	return ev.fixedName(s, t, "each", "key", "value")
}

func (ev *evaluator) referPath(s scope, t hcl.Traversal, to map[string]cty.Value) bool {
	to["recipe"] = cty.StringVal(ev.folder.abs)
	return ev.fixedName(s, t, "path", "recipe")
}

// fixedName checks references to names that every recipe has.
func (ev *evaluator) fixedName(s scope, t hcl.Traversal, root string, names ...string) bool {
	if len(t) == 1 || slices.Contains(names, stepName(t[1])) {
		return true
	}
	ev.report(s, t.SourceRange(), Diagnostic{Summary: "Unknown reference",
		Detail:     fmt.Sprintf("There is no %s.%s; there is %s.%s.", root, stepName(t[1]), root, strings.Join(names, " and "+root+".")),
		Suggestion: nearest(stepName(t[1]), names)})
	return false
}

func (ev *evaluator) referAll(root string, to map[string]cty.Value) bool {
	ok := true
	for _, name := range ev.declared(kindOf[root]) { // sorted, so that a cycle is always reported at the same place
		v, found := ev.value(node{root, name})
		to[name] = v
		if ok = ok && found; ok && root == "recipe" {
			ok = ev.addOutputs(hcl.Traversal{hcl.TraverseRoot{Name: root}, hcl.TraverseAttr{Name: name}}, to)
		}
	}
	return ok
}

func (ev *evaluator) referOne(s scope, t hcl.Traversal, to map[string]cty.Value) bool {
	root, name := t.RootName(), stepName(t[1])
	if ev.decls[kindOf[root]][name] == nil {
		ev.unknownName(s, t, root, name)
		return false
	}
	v, ok := ev.value(node{root, name})
	if _, there := to[name]; !there { // else it may have outputs already
		to[name] = v
	}
	if root == "channel" && !ok {
		ev.used[name] = true
	}
	return ok
}

// unknownName reports a reference to something that is not declared, unless a file with
// errors may declare it.
func (ev *evaluator) unknownName(s scope, t hcl.Traversal, root, name string) {
	if ev.broken {
		return
	}
	names := ev.declared(kindOf[root])
	d := Diagnostic{Summary: "Unknown " + kindOf[root], Suggestion: nearest(name, names),
		Detail: fmt.Sprintf("No %s named %q is declared.", kindOf[root], name)}
	if root == "local" {
		d.Summary, d.Detail = "Unknown local value", fmt.Sprintf("No local value named %q is declared.", name)
	}
	switch {
	case d.Suggestion != "":
	case len(names) > 0:
		d.Remedy = fmt.Sprintf("Declared: %s.", enumerate(names))
	case root == "local":
		d.Remedy = fmt.Sprintf("Declare it: locals { %s = … }.", name)
	default:
		d.Remedy = fmt.Sprintf("Declare it: %s %q { … }.", kindOf[root], name)
	}
	if root == "channel" {
		ev.used[d.Suggestion] = true
	}
	ev.report(s, hcl.RangeBetween(t[0].SourceRange(), t[1].SourceRange()), d)
}

// scriptWords are names that only scripts know.
var scriptWords = []string{"event", "ctx", "output", "source"}

// unknownRoot reports a reference with an unknown first word.
func (ev *evaluator) unknownRoot(s scope, t hcl.Traversal) {
	word := t.RootName()
	d := Diagnostic{Summary: "Unknown reference", Detail: fmt.Sprintf("%q is not the start of a reference.", word),
		Remedy: "References start with var, local, channel, species, creature, predicate, recipe, each or path."}
	roots := []string{"var", "local", "channel", "species", "creature", "predicate", "recipe", "each", "path"}
	switch {
	case isOwn(word) || word == "capability":
		d.Remedy = `Capabilities are granted by name: grants { http = ["NAME"] }.`
	case slices.Contains(scriptWords, word):
		d.Remedy = "A script in quotes is a template. Write $${ where JavaScript needs ${, or use a heredoc, <<-JS, which needs no escaping."
	case len(t) == 1:
		for _, root := range roots[:7] {
			if ev.decls[kindOf[root]][word] != nil {
				d.Detail, d.Remedy = fmt.Sprintf("%q alone does not say which kind of thing is meant.", word), ""
				d.Suggestion = root + "." + word
				ev.used[word] = ev.used[word] || root == "channel"
				break
			}
		}
		if d.Suggestion == "" {
			d.Remedy += fmt.Sprintf(" Texts need quotes: %q.", word)
		}
	default:
		d.Suggestion = nearest(word, append(roots, "variable", "locals"))
		switch d.Suggestion {
		case "variable":
			d.Suggestion = "var"
		case "locals":
			d.Suggestion = "local"
		}
	}
	ev.report(s, t.SourceRange(), d)
}

func (ds *declarations) declared(kind string) []string {
	var out []string
	for name := range ds.decls[kind] {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// wrongReference reports a value that is not a reference of the expected kind.
func (ev *evaluator) wrongReference(s scope, expr hcl.Expression, v cty.Value, kind string) {
	ev.astray = ev.astray || kind == "channel" && v.Type() != cty.String
	v, _ = v.Unmark()
	switch ty := v.Type(); {
	case v.IsNull():
		ev.fault(s, expr, capital(kind)+" expected", "The value is null.", "")
	case ty == cty.String:
		ev.notQuoted(s, expr, v.AsString(), kind)
	case ty.IsMapType() && ty.ElementType().Equals(referenceType):
		keys := keysOf(v)
		remedy := "It has no instances."
		if vars := expr.Variables(); len(keys) > 0 && len(vars) == 1 {
			text := traversalText(vars[0])
			remedy = fmt.Sprintf("Select one, for example %s[%q].", text, keys[0])
			if kind == "channel" {
				remedy = fmt.Sprintf("Select one, for example %s[%q], or replace the list with values(%s) to use all of them.", text, keys[0], text)
			}
		}
		ev.fault(s, expr, "Which "+kind+"?", fmt.Sprintf("This refers to all instances of a for_each: %s.", describe(v)), remedy)
	default:
		ev.fault(s, expr, capital(kind)+" expected", fmt.Sprintf("A reference to a %s is expected here; this is %s.", kind, describe(v)), "")
	}
}

// notQuoted reports a text in place of a reference.
func (ev *evaluator) notQuoted(s scope, expr hcl.Expression, text, kind string) {
	name := text
	if len(name) > len(kind)+1 && name[:len(kind)+1] == kind+"." {
		name = name[len(kind)+1:]
	}
	d := Diagnostic{Summary: capital(kind) + " expected, found a text",
		Detail: fmt.Sprintf("References are written without quotes, so that they can be checked; this is the text %q.", text)}
	if ev.decls[kind][name] == nil {
		name = nearest(name, ev.declared(kind))
	}
	switch {
	case name == "":
		d.Remedy = fmt.Sprintf("Write %s.NAME without quotes.", kind)
	case isJSON(expr):
		d.Remedy = fmt.Sprintf(`Write "${%s.%s}".`, kind, name)
	default:
		d.Remedy = fmt.Sprintf("Write %s.%s without quotes.", kind, name)
	}
	if kind == "channel" {
		ev.used[name] = true
	}
	ev.report(s, expr.Range(), d)
}
