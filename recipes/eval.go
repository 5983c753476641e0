package recipes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// node is a thing that an expression can refer to by a traversal.
type node struct{ kind, name string }

func (n node) String() string { return n.kind + "." + n.name }

// result is the value of a node. It is not ok if the node has an error, which has been
// reported; references to the node then report nothing.
type result struct {
	value   cty.Value
	ok      bool
	waiting bool
}

// evaluator evaluates the expressions of one recipe, and the things that they refer to.
type evaluator struct {
	*declarations
	*budget
	// kinds has the functions that compute nodes other than plain expressions, by kind.
	kinds     map[string]func(*declaration) (cty.Value, bool)
	subs      map[string]*evaluator // of sub-recipes, by the address of the instance
	functions map[string]function.Function
	values    map[node]*result
	exprs     map[hcl.Expression]*prepared
	constants *prepared // see constant
}

func newEvaluator(ds *declarations, b *budget) *evaluator {
	return &evaluator{
		declarations: ds, budget: b, subs: map[string]*evaluator{}, functions: ds.folder.functions(),
		values: map[node]*result{}, exprs: map[hcl.Expression]*prepared{},
	}
}

// budget is what the evaluators of a recipe and of its sub-recipes may still use
// together.
type budget struct {
	spent   *spending
	calls   calls
	waiting []waiting // nodes being evaluated, outermost first
	tooMany bool      // too many waiting nodes were reported
}

// waiting is a node being evaluated, with the prefix of the addresses of its recipe.
type waiting struct {
	prefix string
	node   node
}

func (w waiting) String() string { return w.prefix + w.node.String() }

// maxWaiting bounds how many nodes may wait for one another, because each uses stack.
const maxWaiting = 512

// scope is the context of an expression.
type scope struct {
	title   string               // of the block
	forEach bool                 // the block has for_each, so each.* can be used
	each    *instance            // the current instance
	static  string               // where references are not allowed; empty if they are
	pure    bool                 // only the names in extra can be used
	secret  bool                 // sensitive values are allowed: the result is neither shown nor stored
	extra   map[string]cty.Value // further names that can be used
}

// context returns the context in which to evaluate an expression.
func (s scope) context(p *prepared) *hcl.EvalContext {
	if s.each == nil || !p.usesEach {
		return p.ctx
	}
	ctx := p.ctx.NewChild()
	ctx.Variables = map[string]cty.Value{"each": s.each.object}
	return ctx
}

// prepared is an expression with its references looked up. An expression in a block with
// for_each is prepared once.
type prepared struct {
	ok       bool
	usesEach bool
	ctx      *hcl.EvalContext
}

// secretly returns the scope with sensitive values allowed.
func (s scope) secretly() scope {
	s.secret = true
	return s
}

// eval evaluates an expression. It is not ok after an error, which has been reported. A
// sensitive value is refused unless the scope allows it, so that code gets one only on
// request.
func (ev *evaluator) eval(s scope, expr hcl.Expression) (cty.Value, bool) {
	v, ok := ev.evalAny(s, expr)
	if ok && !s.secret && v.ContainsMarked() {
		ev.refuseSensitive(s, expr, "This value")
		return cty.DynamicVal, false
	}
	return v, ok
}

func (ev *evaluator) refuseSensitive(s scope, expr hcl.Expression, what string) {
	ev.fault(s, expr, "Sensitive value", what+" is shown and stored, so it cannot be sensitive.", "Use a value that is not sensitive.")
}

// fault reports an error of an expression, with the values that it used.
func (ev *evaluator) fault(s scope, expr hcl.Expression, summary, detail, remedy string) {
	ev.faultMeaning(s, expr, summary, detail, remedy, "")
}

func (ev *evaluator) faultMeaning(s scope, expr hcl.Expression, summary, detail, remedy, suggestion string) {
	d := ev.at(s, expr.Range(), Diagnostic{Summary: summary, Detail: detail, Remedy: remedy, Suggestion: suggestion})
	if p := ev.prepared(expr); p != nil && p.ctx != nil {
		d.Values = valuesOf(expr, s.context(p))
	}
	ev.add(d)
}

func (ev *evaluator) evalAny(s scope, expr hcl.Expression) (cty.Value, bool) {
	p := ev.prepare(s, expr)
	if !p.ok || (p.usesEach && s.each == nil) {
		return cty.DynamicVal, false
	}
	v, diags := ev.valueOf(expr, s.context(p))
	for _, d := range diags {
		ev.hcl(s.title, d)
	}
	ok := !diags.HasErrors() && (isReferredSet(expr, v) || v.IsWhollyKnown())
	if !ok && !ev.diags.HasErrors() {
		ev.fault(s, expr, "Value not known", "A function received null here, and cannot determine its result.", "Give the null a type, for example tostring(null).")
	}
	return v, ok
}

// valueOf evaluates an expression of the recipe. When the budget is spent, it evaluates
// nothing more, and reports that once.
func (ev *evaluator) valueOf(expr hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := valueOf(expr, ctx)
	if !ev.spent.over {
		return v, diags
	}
	if ev.spent.reported {
		return cty.DynamicVal, nil
	}
	ev.spent.reported = true
	return cty.DynamicVal, hcl.Diagnostics{excess{at: expr.Range()}.diagnostic()}
}

// valueOf evaluates an expression. A panic of the evaluator becomes a finding at the
// expression.
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

func (ev *evaluator) prepare(s scope, expr hcl.Expression) *prepared {
	if isLiteral(expr) && len(s.extra) == 0 {
		return ev.constant()
	}
	if p := ev.prepared(expr); p != nil {
		return p
	}
	references := expr.Variables()
	if len(references) == 0 && len(s.extra) == 0 {
		return ev.constant() // shared by all expressions
	}
	p := ev.lookUp(s, references)
	if canBeKey(expr) {
		ev.exprs[expr] = p
	}
	return p
}

// isLiteral reports whether an expression is a number, a quoted text or the like, as most
// are.
func isLiteral(expr hcl.Expression) bool {
	switch expr := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		return true
	case *hclsyntax.TemplateExpr:
		return expr.IsStringLiteral()
	}
	return false
}

// isReferredSet reports whether an expression is a plain reference to a set, whose elements
// were known when it was made. To look at them again would sort them.
func isReferredSet(expr hcl.Expression, v cty.Value) bool {
	_, plain := expr.(*hclsyntax.ScopeTraversalExpr)
	return plain && v.Type().IsSetType() && !v.IsMarked() && v.IsKnown()
}

// prepared returns an expression if it is prepared, or nil.
func (ev *evaluator) prepared(expr hcl.Expression) *prepared {
	if !canBeKey(expr) {
		return nil
	}
	return ev.exprs[expr]
}

// canBeKey reports whether an expression can be the key of a map. Expressions that a
// dynamic block makes cannot.
func canBeKey(expr hcl.Expression) bool {
	_, plain := expr.(hclsyntax.Expression)
	return plain || reflect.TypeOf(expr).Comparable()
}

// constant returns the preparation of an expression without references.
func (ev *evaluator) constant() *prepared {
	if ev.constants == nil {
		ev.constants = &prepared{ok: true, ctx: &hcl.EvalContext{Functions: ev.functions, Variables: map[string]cty.Value{spendingName: ev.spent.value()}}}
	}
	return ev.constants
}

func (ev *evaluator) lookUp(s scope, references []hcl.Traversal) *prepared {
	p := &prepared{ok: true}
	vars := map[string]map[string]cty.Value{}
	for _, t := range references {
		if !ev.refer(s, p, t, vars) {
			p.ok = false
		}
	}
	p.ctx = &hcl.EvalContext{Functions: ev.functions, Variables: map[string]cty.Value{spendingName: ev.spent.value()}}
	for root, names := range vars {
		p.ctx.Variables[root] = cty.ObjectVal(names)
	}
	for name, v := range s.extra {
		p.ctx.Variables[name] = v
	}
	return p
}

func (ev *evaluator) value(n node) (cty.Value, bool) {
	if r := ev.values[n]; r != nil {
		if r.waiting {
			ev.cycle(n)
		}
		return r.value, r.ok
	}
	d := ev.decls[kindOf[n.kind]][n.name]
	r := &result{value: cty.DynamicVal, waiting: true}
	ev.values[n] = r
	if len(ev.waiting) >= maxWaiting {
		ev.tooManyWaiting(d)
		r.waiting = false
		return r.value, false
	}
	ev.waiting = append(ev.waiting, waiting{ev.prefix, n})
	r.value, r.ok = ev.compute(n, d)
	ev.waiting = ev.waiting[:len(ev.waiting)-1]
	r.waiting = false
	return r.value, r.ok
}

func (ev *evaluator) tooManyWaiting(d *declaration) {
	if ev.tooMany {
		return
	}
	ev.tooMany = true
	ev.report(scope{title: d.title}, d.at, Diagnostic{Summary: "References nest too deeply",
		Detail: fmt.Sprintf("More than %d values depend on one another here.", maxWaiting), Remedy: "Shorten the chain of references."})
}

func (ev *evaluator) compute(n node, d *declaration) (cty.Value, bool) {
	switch n.kind {
	case "local":
		v, ok := ev.eval(scope{title: "locals", secret: true}, d.expr)
		return ev.light(d, v, ok)
	case "species", "predicate":
		return reference(n.kind, ev.names+d.name, ev.prefix+n.kind+"."+d.name), true
	default:
		if value := ev.kinds[n.kind]; value != nil {
			return value(d)
		}
		return ev.expand(d)
	}
}

func (ev *evaluator) cycle(n node) {
	from := slices.Index(ev.waiting, waiting{ev.prefix, n})
	if from < 0 {
		return
	}
	path := make([]string, 0, len(ev.waiting)-from+1)
	for _, w := range ev.waiting[from:] {
		path = append(path, w.String())
	}
	path = append(path, ev.prefix+n.String())
	d := ev.decls[kindOf[n.kind]][n.name]
	detail := fmt.Sprintf("The value of %s depends on itself: %s.", waiting{ev.prefix, n}, strings.Join(path, " → "))
	ev.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Circular reference", Detail: detail, Remedy: "Remove one of these references."})
}

func reference(kind, name, address string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"kind": cty.StringVal(kind), "name": cty.StringVal(name), "address": cty.StringVal(address),
	})
}

var referenceType = reference("", "", "").Type()

// refAddress returns the address of a thing of a kind that v refers to.
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
