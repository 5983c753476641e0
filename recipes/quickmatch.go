package recipes

import (
	"cmp"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes/policy"
	"github.com/zclconf/go-cty/cty"
)

// quick compiles common conditions of policies to Go functions. Evaluating HCL for every
// message takes some microseconds, which would defeat the purpose of a condition. Other
// conditions are left to the evaluator; both must always agree.
type quick[E any] struct {
	ctx     *hcl.EvalContext
	texts   map[string]func(*E) string // fields that are always texts
	numbers map[string]func(*E) float64
	flags   map[string]func(*E) bool
}

var quickSend = quick[deploy.SendEvent]{
	texts: map[string]func(*deploy.SendEvent) string{
		"graph":           func(e *deploy.SendEvent) string { return string(e.Graph) },
		"deployment":      func(e *deploy.SendEvent) string { return e.Deployment },
		"channel":         func(e *deploy.SendEvent) string { return e.ChannelName },
		"channel_address": func(e *deploy.SendEvent) string { return e.ChannelAddress },
		"sender":          func(e *deploy.SendEvent) string { return e.SenderName },
		"sender_address":  func(e *deploy.SendEvent) string { return e.SenderAddress },
		"sender_species":  func(e *deploy.SendEvent) string { return e.SenderSpecies },
	},
	numbers: map[string]func(*deploy.SendEvent) float64{
		"size": func(e *deploy.SendEvent) float64 { return float64(len(e.Payload)) },
	},
}

func quickEvent(kind journal.PolicyKind) quick[deploy.PolicyEvent] {
	q := quick[deploy.PolicyEvent]{
		texts: map[string]func(*deploy.PolicyEvent) string{}, numbers: map[string]func(*deploy.PolicyEvent) float64{},
		flags: map[string]func(*deploy.PolicyEvent) bool{},
	}
	for i := range policy.Fields {
		f := &policy.Fields[i]
		switch {
		case !f.Of(kind):
		case f.Type == policy.Text:
			q.texts[f.Name] = func(e *deploy.PolicyEvent) string { return f.Value(e).(string) }
		case f.Type == policy.Number:
			q.numbers[f.Name] = func(e *deploy.PolicyEvent) float64 { return f.Value(e).(float64) }
		case f.Type == policy.Flag:
			q.flags[f.Name] = func(e *deploy.PolicyEvent) bool { return f.Value(e).(bool) }
		}
	}
	return q
}

// condition returns the function for a condition, or nil if it is not common enough.
func (q quick[E]) condition(expr hcl.Expression) func(*E) (bool, error) {
	switch e := hcl.UnwrapExpression(expr).(type) {
	case *hclsyntax.ParenthesesExpr:
		return q.condition(e.Expression)
	case *hclsyntax.UnaryOpExpr:
		if inner := q.condition(e.Val); inner != nil && e.Op == hclsyntax.OpLogicalNot {
			return func(ev *E) (bool, error) {
				ok, err := inner(ev)
				return !ok, err
			}
		}
	case *hclsyntax.BinaryOpExpr:
		return q.binary(e)
	case *hclsyntax.FunctionCallExpr:
		return q.contains(e)
	}
	if f := q.flags[eventField(expr)]; f != nil {
		return func(ev *E) (bool, error) { return f(ev), nil }
	}
	if v, ok := q.constant(expr); ok && v.Type() == cty.Bool {
		constant := v.True()
		return func(*E) (bool, error) { return constant, nil }
	}
	return nil
}

func (q quick[E]) binary(e *hclsyntax.BinaryOpExpr) func(*E) (bool, error) {
	switch e.Op {
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		left, right := q.condition(e.LHS), q.condition(e.RHS)
		if left == nil || right == nil {
			return nil
		}
		decisive := e.Op == hclsyntax.OpLogicalOr
		return func(ev *E) (bool, error) {
			if ok, err := left(ev); err != nil || ok == decisive {
				return ok, err
			}
			return right(ev)
		}
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual:
		if a, b := q.text(e.LHS), q.text(e.RHS); a != nil && b != nil {
			equal := e.Op == hclsyntax.OpEqual
			return func(ev *E) (bool, error) { return (a(ev) == b(ev)) == equal, nil }
		}
	}
	a, b, holds := q.number(e.LHS), q.number(e.RHS), comparisons[e.Op]
	if a == nil || b == nil || holds == nil {
		return nil
	}
	return func(ev *E) (bool, error) { return holds(cmp.Compare(a(ev), b(ev))), nil }
}

var comparisons = map[*hclsyntax.Operation]func(int) bool{
	hclsyntax.OpEqual:              func(c int) bool { return c == 0 },
	hclsyntax.OpNotEqual:           func(c int) bool { return c != 0 },
	hclsyntax.OpLessThan:           func(c int) bool { return c < 0 },
	hclsyntax.OpLessThanOrEqual:    func(c int) bool { return c <= 0 },
	hclsyntax.OpGreaterThan:        func(c int) bool { return c > 0 },
	hclsyntax.OpGreaterThanOrEqual: func(c int) bool { return c >= 0 },
}

// contains compiles contains(LIST, event.FIELD) if the list does not depend on the event.
func (q quick[E]) contains(e *hclsyntax.FunctionCallExpr) func(*E) (bool, error) {
	if e.Name != "contains" || len(e.Args) != 2 || e.ExpandFinal {
		return nil
	}
	text := q.text(e.Args[1])
	all, ok := q.constant(e.Args[0])
	if text == nil || !ok || !all.CanIterateElements() || all.Type().IsMapType() || all.Type().IsObjectType() {
		return nil
	}
	set := map[string]bool{}
	for it := all.ElementIterator(); it.Next(); {
		_, v := it.Element()
		if v.Type() != cty.String || v.IsNull() {
			return nil
		}
		set[v.AsString()] = true
	}
	return func(ev *E) (bool, error) { return set[text(ev)], nil }
}

// text returns the function for a text field of the event or a constant text.
func (q quick[E]) text(expr hcl.Expression) func(*E) string {
	if f := q.texts[eventField(expr)]; f != nil {
		return f
	}
	if v, ok := q.constant(expr); ok && v.Type() == cty.String {
		constant := v.AsString()
		return func(*E) string { return constant }
	}
	return nil
}

func (q quick[E]) number(expr hcl.Expression) func(*E) float64 {
	if f := q.numbers[eventField(expr)]; f != nil {
		return f
	}
	if v, ok := q.constant(expr); ok && v.Type() == cty.Number {
		constant, _ := v.AsBigFloat().Float64()
		return func(*E) float64 { return constant }
	}
	return nil
}

// eventField returns x of an expression event.x, or nothing.
func eventField(expr hcl.Expression) string {
	t, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 2 || t.Traversal.RootName() != "event" {
		return ""
	}
	step, ok := t.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return ""
	}
	return step.Name
}

// constant evaluates an expression that does not depend on the event.
func (q quick[E]) constant(expr hcl.Expression) (cty.Value, bool) {
	for _, t := range expr.Variables() {
		if t.RootName() == "event" {
			return cty.NilVal, false
		}
	}
	v, diags := valueOf(expr, q.ctx)
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	v, _ = v.UnmarkDeep()
	return v, v.IsWhollyKnown() && !v.IsNull()
}
