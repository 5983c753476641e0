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
	"recipe": "recipe"}

// refer looks up one reference of an expression and adds its value to vars.
func (l *loader) refer(s scope, p *prepared, t hcl.Traversal, vars map[string]map[string]cty.Value) bool {
	root := t.RootName()
	if _, ok := s.extra[root]; ok {
		return true
	}
	if s.pure {
		l.add(l.at(s, t.SourceRange(), Diagnostic{Summary: "No references here", Detail: "A function knows its parameters and nothing else.",
			Suggestion: nearest(root, slices.Sorted(maps.Keys(s.extra))), Remedy: "Add a parameter for it."}))
		return false
	}
	if s.static != "" {
		l.add(l.at(s, t.SourceRange(), Diagnostic{Summary: "No references here",
			Detail: fmt.Sprintf("References cannot be used in %s: it is read before anything else.", s.static),
			Remedy: "Write the value itself."}))
		return false
	}
	if root == "each" {
		p.usesEach = true
		return l.referEach(s, t)
	}
	if vars[root] == nil {
		vars[root] = map[string]cty.Value{}
	}
	if root == "path" {
		return l.referPath(s, t, vars[root])
	}
	if kindOf[root] == "" {
		l.unknownRoot(s, t)
		return false
	}
	if len(t) == 1 {
		return l.referAll(root, vars[root])
	}
	return l.referOne(s, t, vars[root]) && (root != "recipe" || l.referMember(s, t))
}

func (l *loader) referEach(s scope, t hcl.Traversal) bool {
	if !s.forEach {
		l.add(l.at(s, t.SourceRange(), Diagnostic{Summary: "No for_each here",
			Detail: "each.key and each.value have a meaning only in a block with for_each.", Remedy: "Give the block a for_each, or write the value itself."}))
		return false
	}
	return l.fixedName(s, t, "each", "key", "value")
}

func (l *loader) referPath(s scope, t hcl.Traversal, to map[string]cty.Value) bool {
	to["recipe"] = cty.StringVal(l.folder.abs)
	return l.fixedName(s, t, "path", "recipe")
}

// fixedName checks references to the names that every recipe has.
func (l *loader) fixedName(s scope, t hcl.Traversal, root string, names ...string) bool {
	if len(t) == 1 || slices.Contains(names, stepName(t[1])) {
		return true
	}
	l.add(l.at(s, t.SourceRange(), Diagnostic{Summary: "Unknown reference",
		Detail:     fmt.Sprintf("There is no %s.%s; there is %s.%s.", root, stepName(t[1]), root, strings.Join(names, " and "+root+".")),
		Suggestion: nearest(stepName(t[1]), names)}))
	return false
}

func (l *loader) referAll(root string, to map[string]cty.Value) bool {
	ok := true
	for _, name := range l.declared(kindOf[root]) { // in order: of a cycle, it decides who is told of it
		v, found := l.value(node{root, name})
		to[name] = v
		ok = ok && found
	}
	return ok
}

func (l *loader) referOne(s scope, t hcl.Traversal, to map[string]cty.Value) bool {
	root, name := t.RootName(), stepName(t[1])
	if l.decls[kindOf[root]][name] == nil {
		l.unknownName(s, t, root, name)
		return false
	}
	v, ok := l.value(node{root, name})
	to[name] = v
	if root == "channel" && !ok {
		l.used[name] = true
	}
	return ok
}

// unknownName reports a reference to something that is not declared. When a
// file could not be read to its end, it may well be declared there.
func (l *loader) unknownName(s scope, t hcl.Traversal, root, name string) {
	if l.broken {
		return
	}
	names := l.declared(kindOf[root])
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
		l.used[d.Suggestion] = true
	}
	l.add(l.at(s, hcl.RangeBetween(t[0].SourceRange(), t[1].SourceRange()), d))
}

// scriptWords are names that scripts know, and recipes do not.
var scriptWords = []string{"event", "ctx", "output", "source"}

// unknownRoot reports a reference whose first word means nothing.
func (l *loader) unknownRoot(s scope, t hcl.Traversal) {
	word := t.RootName()
	d := Diagnostic{Summary: "Unknown reference", Detail: fmt.Sprintf("%q does not begin a reference.", word),
		Remedy: "References begin with var, local, channel, species, creature, predicate, recipe, each or path."}
	roots := []string{"var", "local", "channel", "species", "creature", "predicate", "recipe", "each", "path"}
	switch {
	case later[word]:
		d.Summary, d.Remedy = "Not supported by this version", "Remove the reference, or use a later version."
		d.Detail = fmt.Sprintf("References to %q belong to the language, but this version of terrarium does not carry them out.", word)
	case slices.Contains(scriptWords, word):
		d.Remedy = "A script in quotes is a template: write $${ for what is JavaScript's, or the script in a heredoc, <<-JS, which needs no escaping."
	case len(t) == 1:
		for _, root := range roots[:7] {
			if l.decls[kindOf[root]][word] != nil {
				d.Detail, d.Remedy = fmt.Sprintf("%q alone does not say what kind of thing it is.", word), ""
				d.Suggestion = root + "." + word
				l.used[word] = l.used[word] || root == "channel"
				break
			}
		}
		if d.Suggestion == "" {
			d.Remedy += fmt.Sprintf(" A text stands in quotes: %q.", word)
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
	l.add(l.at(s, t.SourceRange(), d))
}

// declared returns the declared names of a kind, sorted.
func (l *loader) declared(kind string) []string {
	var out []string
	for name := range l.decls[kind] {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
