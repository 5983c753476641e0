package recipes

import (
	"cmp"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/seed47132306/terrarium/engine"
)

// quick turns the conditions that are common in policies into Go functions:
// evaluating them as HCL for every message costs some microseconds, which
// would defeat the purpose of a condition. What it does not know it leaves to
// the general way; both must always agree.
type quick struct{ ctx *hcl.EvalContext }

type (
	condition = func(*engine.SendEvent) (bool, error)
	textOf    = func(*engine.SendEvent) string
	numberOf  = func(*engine.SendEvent) float64
)

// condition returns the function for a condition, or nil.
func (q quick) condition(expr hcl.Expression) condition {
	switch e := hcl.UnwrapExpression(expr).(type) {
	case *hclsyntax.ParenthesesExpr:
		return q.condition(e.Expression)
	case *hclsyntax.UnaryOpExpr:
		if inner := q.condition(e.Val); inner != nil && e.Op == hclsyntax.OpLogicalNot {
			return func(ev *engine.SendEvent) (bool, error) {
				ok, err := inner(ev)
				return !ok, err
			}
		}
	case *hclsyntax.BinaryOpExpr:
		return q.binary(e)
	case *hclsyntax.FunctionCallExpr:
		return q.contains(e)
	}
	if v, ok := q.constant(expr); ok && v.Type() == cty.Bool {
		constant := v.True()
		return func(*engine.SendEvent) (bool, error) { return constant, nil }
	}
	return nil
}

func (q quick) binary(e *hclsyntax.BinaryOpExpr) condition {
	switch e.Op {
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		left, right := q.condition(e.LHS), q.condition(e.RHS)
		if left == nil || right == nil {
			return nil
		}
		decisive := e.Op == hclsyntax.OpLogicalOr
		return func(ev *engine.SendEvent) (bool, error) {
			if ok, err := left(ev); err != nil || ok == decisive {
				return ok, err
			}
			return right(ev)
		}
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual:
		if a, b := q.text(e.LHS), q.text(e.RHS); a != nil && b != nil {
			equal := e.Op == hclsyntax.OpEqual
			return func(ev *engine.SendEvent) (bool, error) { return (a(ev) == b(ev)) == equal, nil }
		}
	}
	a, b, holds := q.number(e.LHS), q.number(e.RHS), comparisons[e.Op]
	if a == nil || b == nil || holds == nil {
		return nil
	}
	return func(ev *engine.SendEvent) (bool, error) { return holds(cmp.Compare(a(ev), b(ev))), nil }
}

var comparisons = map[*hclsyntax.Operation]func(int) bool{
	hclsyntax.OpEqual:              func(c int) bool { return c == 0 },
	hclsyntax.OpNotEqual:           func(c int) bool { return c != 0 },
	hclsyntax.OpLessThan:           func(c int) bool { return c < 0 },
	hclsyntax.OpLessThanOrEqual:    func(c int) bool { return c <= 0 },
	hclsyntax.OpGreaterThan:        func(c int) bool { return c > 0 },
	hclsyntax.OpGreaterThanOrEqual: func(c int) bool { return c >= 0 },
}

// contains knows contains(LIST, event.FIELD) with a list that does not depend
// on the event.
func (q quick) contains(e *hclsyntax.FunctionCallExpr) condition {
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
	return func(ev *engine.SendEvent) (bool, error) { return set[text(ev)], nil }
}

// text returns the function for a field of the event that is a text, or for a
// constant one.
func (q quick) text(expr hcl.Expression) textOf {
	switch eventField(expr) {
	case "graph":
		return func(e *engine.SendEvent) string { return string(e.Graph) }
	case "deployment":
		return func(e *engine.SendEvent) string { return e.Deployment }
	case "channel":
		return func(e *engine.SendEvent) string { return e.ChannelName }
	case "channel_address":
		return func(e *engine.SendEvent) string { return e.ChannelAddress }
	case "sender":
		return func(e *engine.SendEvent) string { return e.SenderName }
	case "sender_address":
		return func(e *engine.SendEvent) string { return e.SenderAddress }
	}
	if v, ok := q.constant(expr); ok && v.Type() == cty.String {
		constant := v.AsString()
		return func(*engine.SendEvent) string { return constant }
	}
	return nil
}

func (q quick) number(expr hcl.Expression) numberOf {
	if eventField(expr) == "size" {
		return func(e *engine.SendEvent) float64 { return float64(len(e.Payload)) }
	}
	if v, ok := q.constant(expr); ok && v.Type() == cty.Number {
		constant, _ := v.AsBigFloat().Float64()
		return func(*engine.SendEvent) float64 { return constant }
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
func (q quick) constant(expr hcl.Expression) (cty.Value, bool) {
	for _, t := range expr.Variables() {
		if t.RootName() == "event" {
			return cty.NilVal, false
		}
	}
	v, diags := expr.Value(q.ctx)
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	v, _ = v.UnmarkDeep()
	return v, v.IsWhollyKnown() && !v.IsNull()
}
