package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// node is something that an expression can refer to by a traversal.
type node struct{ kind, name string }

func (n node) String() string { return n.kind + "." + n.name }

// result is the value of a node. It is not ok when the node is in error, which
// has been reported; what refers to it then stays silent.
type result struct {
	value   cty.Value
	ok      bool
	waiting bool
}

// maxWaiting bounds how many nodes may wait for one another, because each
// takes stack.
const maxWaiting = 512

// scope is where an expression stands.
type scope struct {
	title   string               // of the block
	forEach bool                 // the block has for_each, so each.* has a meaning
	each    *instance            // the instance at hand
	static  string               // not empty: references are not allowed, in what
	extra   map[string]cty.Value // further names that have a meaning here
}

// context returns what an expression is evaluated with.
func (s scope) context(p *prepared) *hcl.EvalContext {
	if s.each == nil || !p.usesEach {
		return p.ctx
	}
	ctx := p.ctx.NewChild()
	ctx.Variables = map[string]cty.Value{"each": s.each.object}
	return ctx
}

// prepared is an expression whose references have been looked up. An
// expression that stands in a block with for_each is prepared once.
type prepared struct {
	ok       bool
	usesEach bool
	ctx      *hcl.EvalContext
}

// eval evaluates an expression. It is not ok if that failed, which has then
// been reported.
func (l *loader) eval(s scope, expr hcl.Expression) (cty.Value, bool) {
	p := l.prepare(s, expr)
	if !p.ok || (p.usesEach && s.each == nil) {
		return cty.DynamicVal, false
	}
	v, diags := valueOf(expr, s.context(p))
	for _, d := range diags {
		l.hcl(s.title, d)
	}
	return v, !diags.HasErrors() && v.IsWhollyKnown()
}

// valueOf evaluates an expression. A defect of the evaluator becomes a finding
// at the expression that met it.
func valueOf(expr hcl.Expression, ctx *hcl.EvalContext) (v cty.Value, diags hcl.Diagnostics) {
	defer func() {
		if r := recover(); r != nil {
			v = cty.DynamicVal
			diags = hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Expression cannot be evaluated",
				Detail: fmt.Sprintf("The evaluator failed: %v.", r), Subject: expr.Range().Ptr()}}
		}
	}()
	return expr.Value(ctx)
}

func (l *loader) prepare(s scope, expr hcl.Expression) *prepared {
	if p := l.exprs[expr]; p != nil {
		return p
	}
	p := &prepared{ok: true}
	l.exprs[expr] = p
	vars := map[string]map[string]cty.Value{}
	for _, t := range expr.Variables() {
		if !l.refer(s, p, t, vars) {
			p.ok = false
		}
	}
	p.ctx = &hcl.EvalContext{Functions: l.functions, Variables: map[string]cty.Value{}}
	for root, names := range vars {
		p.ctx.Variables[root] = cty.ObjectVal(names)
	}
	for name, v := range s.extra {
		p.ctx.Variables[name] = v
	}
	return p
}

// kindOf maps the roots of references to kinds of declaration.
var kindOf = map[string]string{"var": "variable", "local": "local", "channel": "channel", "species": "species", "creature": "creature", "predicate": "predicate"}

// refer looks up one reference of an expression and adds its value to vars.
func (l *loader) refer(s scope, p *prepared, t hcl.Traversal, vars map[string]map[string]cty.Value) bool {
	root := t.RootName()
	if _, ok := s.extra[root]; ok {
		return true
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
	return l.referOne(s, t, vars[root])
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
	for name := range l.decls[kindOf[root]] {
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
	names := l.names(kindOf[root])
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

// unknownRoot reports a reference whose first word means nothing.
func (l *loader) unknownRoot(s scope, t hcl.Traversal) {
	word := t.RootName()
	d := Diagnostic{Summary: "Unknown reference", Detail: fmt.Sprintf("%q does not begin a reference.", word),
		Remedy: "References begin with var, local, channel, species, creature, predicate, each or path."}
	roots := []string{"var", "local", "channel", "species", "creature", "predicate", "each", "path"}
	switch {
	case later[word]:
		d.Summary, d.Remedy = "Not supported by this version", "Remove the reference, or use a later version."
		d.Detail = fmt.Sprintf("References to %q belong to the language, but this version of terrarium does not carry them out.", word)
	case len(t) == 1:
		for _, root := range roots[:6] {
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

// names returns the declared names of a kind, sorted.
func (l *loader) names(kind string) []string {
	var out []string
	for name := range l.decls[kind] {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// value evaluates a node, once.
func (l *loader) value(n node) (cty.Value, bool) {
	if r := l.values[n]; r != nil {
		if r.waiting {
			l.cycle(n)
		}
		return r.value, r.ok
	}
	d := l.decls[kindOf[n.kind]][n.name]
	r := &result{value: cty.DynamicVal, waiting: true}
	l.values[n] = r
	if len(l.waiting) >= maxWaiting {
		l.tooManyWaiting(d)
		r.waiting = false
		return r.value, false
	}
	l.waiting = append(l.waiting, n)
	r.value, r.ok = l.compute(n, d)
	l.waiting = l.waiting[:len(l.waiting)-1]
	r.waiting = false
	return r.value, r.ok
}

// tooManyWaiting reports a chain of references that is too long, once.
func (l *loader) tooManyWaiting(d *declaration) {
	if l.tooMany {
		return
	}
	l.tooMany = true
	l.add(l.at(scope{title: d.title}, d.at, Diagnostic{Summary: "References nest too deeply",
		Detail: fmt.Sprintf("More than %d values wait for one another here.", maxWaiting), Remedy: "Shorten the chain of references."}))
}

func (l *loader) compute(n node, d *declaration) (cty.Value, bool) {
	switch n.kind {
	case "var":
		return l.variable(d)
	case "local":
		v, ok := l.eval(scope{title: "locals"}, d.expr)
		return l.light(d, v, ok)
	case "species", "predicate":
		return reference(n.kind, d.name, n.kind+"."+d.name), true
	default:
		return l.expand(d)
	}
}

// cycle reports that the value of n needs itself.
func (l *loader) cycle(n node) {
	from := slices.Index(l.waiting, n)
	if from < 0 {
		return
	}
	path := make([]string, 0, len(l.waiting)-from+1)
	for _, w := range l.waiting[from:] {
		path = append(path, w.String())
	}
	path = append(path, n.String())
	d := l.decls[kindOf[n.kind]][n.name]
	detail := fmt.Sprintf("The value of %s needs itself: %s.", n, strings.Join(path, " → "))
	l.add(l.at(scope{title: d.title}, d.at, Diagnostic{Summary: "Circular reference", Detail: detail, Remedy: "Take one of these references out."}))
}

// reference is the value of a reference to a declared thing.
func reference(kind, name, address string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"kind": cty.StringVal(kind), "name": cty.StringVal(name), "address": cty.StringVal(address),
	})
}

var referenceType = reference("", "", "").Type()

// refAddress returns the address of a thing of that kind that v refers to.
func refAddress(v cty.Value, kind string) (string, bool) {
	v, _ = v.Unmark()
	if !v.Type().Equals(referenceType) || v.IsNull() || !v.IsWhollyKnown() {
		return "", false
	}
	v, _ = v.UnmarkDeep()
	k, a := v.GetAttr("kind"), v.GetAttr("address")
	if k.IsNull() || a.IsNull() || k.AsString() != kind {
		return "", false
	}
	return a.AsString(), true
}
