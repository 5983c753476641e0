package recipes

import (
	"fmt"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A few nested for expressions can produce more than any memory holds, and their
// evaluation cannot be interrupted. So their results are weighed as they are produced,
// and so are the results of functions, templates and products: nothing else in an
// expression can repeat or enlarge values. The weighing is done by nodes that are
// inserted into parsed expressions.
const (
	maxSpending = 8 << 20 // for a recipe, by weight
	maxMatching = 4 << 20 // for one evaluation of a condition
)

// spending is the remaining budget of an evaluation.
type spending struct {
	left           int
	over, reported bool
}

// excess ends an evaluation by a panic, because a for expression continues after errors.
type excess struct {
	at     hcl.Range
	number bool // a number has too many digits
}

func (s *spending) weighValue(v cty.Value, at hcl.Range) {
	if plain, _ := v.Unmark(); hugeNumber(plain) {
		panic(excess{at, true})
	}
	if !s.over {
		s.left = weigh(v, s.left)
		s.over = s.left <= 0
	}
	if s.over {
		panic(excess{at, false})
	}
}

func (x excess) diagnostic() *hcl.Diagnostic {
	if x.number {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Number too large", Subject: x.at.Ptr(),
			Detail: fmt.Sprintf("A number has at most %d digits, before and after the point.", maxBits*3/10)}
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Values too large", Subject: x.at.Ptr(),
		Detail: fmt.Sprintf("The values that the expressions of the recipe compute exceed the limit of %d MiB in total.", maxSpending>>20)}
}

// spendingName is the variable that holds the spending of an evaluation. Recipes cannot
// name it.
const spendingName = " spending"

var spendingType = cty.Capsule("spending", reflect.TypeFor[spending]())

// value returns the spending as a variable of an evaluation.
func (s *spending) value() cty.Value { return cty.CapsuleVal(spendingType, s) }

// spendingOf finds the spending of an evaluation, or nil in a context without one, where
// only constants are evaluated.
func spendingOf(ctx *hcl.EvalContext) *spending {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[spendingName]; ok {
			return v.EncapsulatedValue().(*spending)
		}
	}
	return nil
}

// metered is an expression whose value is weighed.
type metered struct{ hclsyntax.Expression }

// Value implements [hcl.Expression].
func (m *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := m.Expression.Value(ctx)
	if s := spendingOf(ctx); s != nil {
		s.weighValue(v, m.Range())
	}
	return v, diags
}

// UnwrapExpression returns the original expression, for code that inspects its form.
func (m *metered) UnwrapExpression() hcl.Expression { return m.Expression }

func meterBody(body *hclsyntax.Body) {
	for _, a := range body.Attributes {
		a.Expr = meterTree(a.Expr)
	}
	for _, b := range body.Blocks {
		meterBody(b.Body)
	}
}

// meterTree makes the parts of an expression metered, and the expression itself if
// needed.
func meterTree(expr hclsyntax.Expression) hclsyntax.Expression {
	below := func(list ...*hclsyntax.Expression) {
		for _, e := range list {
			if *e != nil {
				*e = meterTree(*e)
			}
		}
	}
	switch e := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		if hugeNumber(e.Val) {
			return &metered{e}
		}
	case *hclsyntax.FunctionCallExpr:
		for k := range e.Args {
			below(&e.Args[k])
		}
		return &metered{e}
	case *hclsyntax.BinaryOpExpr:
		below(&e.LHS, &e.RHS)
		lengthens := e.Op == hclsyntax.OpMultiply || e.Op == hclsyntax.OpDivide
		e.Op = boundedOperation(e.Op)
		if lengthens {
			return &metered{e}
		}
	case *hclsyntax.ForExpr:
		below(&e.CollExpr, &e.KeyExpr, &e.ValExpr, &e.CondExpr)
		weighed(&e.KeyExpr, &e.ValExpr, &e.CondExpr)
	case *hclsyntax.TemplateExpr:
		for k := range e.Parts {
			if below(&e.Parts[k]); !isLiteral(e.Parts[k]) {
				weighed(&e.Parts[k])
			}
		}
	case *hclsyntax.TupleConsExpr:
		for k := range e.Exprs {
			below(&e.Exprs[k])
		}
	case *hclsyntax.ObjectConsExpr:
		for k := range e.Items {
			below(&e.Items[k].KeyExpr, &e.Items[k].ValueExpr)
		}
	case *hclsyntax.ObjectConsKeyExpr:
		below(&e.Wrapped)
	case *hclsyntax.ConditionalExpr:
		below(&e.Condition, &e.TrueResult, &e.FalseResult)
	case *hclsyntax.IndexExpr:
		below(&e.Collection, &e.Key)
	case *hclsyntax.SplatExpr:
		below(&e.Source, &e.Each)
	case *hclsyntax.UnaryOpExpr:
		below(&e.Val)
		e.Op = boundedOperation(e.Op)
	case *hclsyntax.ParenthesesExpr:
		below(&e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		below(&e.Wrapped)
	case *hclsyntax.TemplateJoinExpr:
		below(&e.Tuple)
	case *hclsyntax.RelativeTraversalExpr:
		below(&e.Source)
	}
	return expr
}

// weighed makes expressions metered. It wraps them in parentheses, because the search for
// references only looks at the children of a node.
func weighed(list ...*hclsyntax.Expression) {
	for _, e := range list {
		if *e != nil {
			*e = &metered{&hclsyntax.ParenthesesExpr{Expression: *e, SrcRange: (*e).Range()}}
		}
	}
}
