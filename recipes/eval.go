package recipes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
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

// waiting is a node being evaluated, and whose it is.
type waiting struct {
	in   *loader
	node node
}

func (w waiting) String() string { return w.in.prefix + w.node.String() }

// maxWaiting bounds how many nodes may wait for one another, because each
// takes stack.
const maxWaiting = 512

// scope is where an expression stands.
type scope struct {
	title   string               // of the block
	forEach bool                 // the block has for_each, so each.* has a meaning
	each    *instance            // the instance at hand
	static  string               // not empty: references are not allowed, in what
	pure    bool                 // nothing but extra has a meaning
	secret  bool                 // sensitive values may be used: what comes of them is neither shown nor stored
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

// secretly is the scope in which sensitive values may be used.
func (s scope) secretly() scope {
	s.secret = true
	return s
}

// eval evaluates an expression. It is not ok if that failed, which has then
// been reported. A sensitive value is refused unless the scope admits it, so that
// the code that reads an attribute never has one without having asked for it.
func (l *loader) eval(s scope, expr hcl.Expression) (cty.Value, bool) {
	v, ok := l.evalAny(s, expr)
	if ok && !s.secret && v.ContainsMarked() {
		l.refuseSensitive(s, expr, "This value")
		return cty.DynamicVal, false
	}
	return v, ok
}

func (l *loader) refuseSensitive(s scope, expr hcl.Expression, what string) {
	l.fault(s, expr, "Sensitive value", what+" is shown and stored, so it cannot be sensitive.", "Use a value that may be seen.")
}

func (l *loader) evalAny(s scope, expr hcl.Expression) (cty.Value, bool) {
	p := l.prepare(s, expr)
	if !p.ok || (p.usesEach && s.each == nil) {
		return cty.DynamicVal, false
	}
	v, diags := l.valueOf(expr, s.context(p))
	for _, d := range diags {
		l.hcl(s.title, d)
	}
	ok := !diags.HasErrors() && v.IsWhollyKnown()
	if !ok && !l.diags.HasErrors() {
		l.fault(s, expr, "Value not known", "A function was given null here, and cannot tell what comes of it.", "Say of which type it is: tostring(null), for example.")
	}
	return v, ok
}

// valueOf evaluates an expression of the recipe. When all has been spent, nothing
// more is evaluated, which is said once.
func (l *loader) valueOf(expr hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := valueOf(expr, ctx)
	if !l.spent.over {
		return v, diags
	}
	if l.spent.told {
		return cty.DynamicVal, nil
	}
	l.spent.told = true
	return cty.DynamicVal, hcl.Diagnostics{excess{at: expr.Range()}.diagnostic()}
}

// valueOf evaluates an expression. A defect of the evaluator becomes a finding
// at the expression that met it.
func valueOf(expr hcl.Expression, ctx *hcl.EvalContext) (v cty.Value, diags hcl.Diagnostics) {
	defer func() {
		r := recover()
		if x, ok := r.(excess); ok {
			v, diags = cty.DynamicVal, hcl.Diagnostics{x.diagnostic()}
		} else if r != nil {
			v = cty.DynamicVal
			diags = hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Expression cannot be evaluated",
				Detail: fmt.Sprintf("The evaluator failed: %v.", r), Subject: expr.Range().Ptr()}}
		}
	}()
	return expr.Value(ctx)
}

func (l *loader) prepare(s scope, expr hcl.Expression) *prepared {
	if isLiteral(expr) && len(s.extra) == 0 {
		return l.constant()
	}
	if p := l.prepared(expr); p != nil {
		return p
	}
	references := expr.Variables()
	if len(references) == 0 && len(s.extra) == 0 {
		return l.constant() // the same for all
	}
	p := l.lookUp(s, references)
	if canBeKey(expr) {
		l.exprs[expr] = p
	}
	return p
}

// isLiteral reports whether an expression is a number, a text in quotes or the like,
// as most are.
func isLiteral(expr hcl.Expression) bool {
	switch expr := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		return true
	case *hclsyntax.TemplateExpr:
		return expr.IsStringLiteral()
	}
	return false
}

// prepared returns what is known of an expression, or nil.
func (l *loader) prepared(expr hcl.Expression) *prepared {
	if !canBeKey(expr) {
		return nil
	}
	return l.exprs[expr]
}

// canBeKey reports whether an expression can be the key of a map. Those in what
// a dynamic block made cannot.
func canBeKey(expr hcl.Expression) bool {
	_, plain := expr.(hclsyntax.Expression)
	return plain || reflect.TypeOf(expr).Comparable()
}

// constant is what an expression without references is prepared to.
func (l *loader) constant() *prepared {
	if l.constants == nil {
		l.constants = &prepared{ok: true, ctx: &hcl.EvalContext{Functions: l.functions, Variables: map[string]cty.Value{spendingName: l.spent.value()}}}
	}
	return l.constants
}

// lookUp looks up references.
func (l *loader) lookUp(s scope, references []hcl.Traversal) *prepared {
	p := &prepared{ok: true}
	vars := map[string]map[string]cty.Value{}
	for _, t := range references {
		if !l.refer(s, p, t, vars) {
			p.ok = false
		}
	}
	p.ctx = &hcl.EvalContext{Functions: l.functions, Variables: map[string]cty.Value{spendingName: l.spent.value()}}
	for root, names := range vars {
		p.ctx.Variables[root] = cty.ObjectVal(names)
	}
	for name, v := range s.extra {
		p.ctx.Variables[name] = v
	}
	return p
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
	l.waiting = append(l.waiting, waiting{l, n})
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
		v, ok := l.eval(scope{title: "locals", secret: true}, d.expr)
		return l.light(d, v, ok)
	case "species", "predicate":
		return reference(n.kind, l.names+d.name, l.prefix+n.kind+"."+d.name), true
	case "recipe":
		return l.recipe(d)
	default:
		return l.expand(d)
	}
}

// cycle reports that the value of n needs itself.
func (l *loader) cycle(n node) {
	from := slices.Index(l.waiting, waiting{l, n})
	if from < 0 {
		return
	}
	path := make([]string, 0, len(l.waiting)-from+1)
	for _, w := range l.waiting[from:] {
		path = append(path, w.String())
	}
	path = append(path, l.prefix+n.String())
	d := l.decls[kindOf[n.kind]][n.name]
	detail := fmt.Sprintf("The value of %s needs itself: %s.", waiting{l, n}, strings.Join(path, " → "))
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
	if !v.Type().Equals(referenceType) || v.IsNull() || !v.IsKnown() {
		return "", false
	}
	k, _ := v.GetAttr("kind").Unmark()
	a, _ := v.GetAttr("address").Unmark()
	if !k.IsKnown() || !a.IsKnown() || k.IsNull() || a.IsNull() || k.AsString() != kind {
		return "", false
	}
	return a.AsString(), true
}
