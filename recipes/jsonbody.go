package recipes

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// The library parses the texts of a JSON recipe during their evaluation, so they cannot
// be metered after parsing. The bodies of such a recipe therefore return expressions that
// parse the texts themselves, and otherwise behave like the originals.

// jsonBody is a JSON body with metered expressions.
type jsonBody struct{ hcl.Body }

// Content implements [hcl.Body].
func (b jsonBody) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	content, diags := b.Body.Content(schema)
	return weighedContent(content), diags
}

// PartialContent implements [hcl.Body].
func (b jsonBody) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	content, rest, diags := b.Body.PartialContent(schema)
	return weighedContent(content), jsonBody{rest}, diags
}

// JustAttributes implements [hcl.Body].
func (b jsonBody) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	attributes, diags := b.Body.JustAttributes()
	return weighedAttributes(attributes), diags
}

func weighedContent(content *hcl.BodyContent) *hcl.BodyContent {
	if content == nil {
		return nil
	}
	weighedAttributes(content.Attributes)
	for _, block := range content.Blocks {
		block.Body = jsonBody{block.Body}
	}
	return content
}

func weighedAttributes(attributes hcl.Attributes) hcl.Attributes {
	for _, a := range attributes {
		a.Expr = jsonExpr{a.Expr}
	}
	return attributes
}

// jsonExpr is a JSON expression with a metered value.
type jsonExpr struct{ hcl.Expression }

// UnwrapExpression returns the original expression, for code that inspects its form.
func (e jsonExpr) UnwrapExpression() hcl.Expression { return e.Expression }

// ExprList implements the interface of [hcl.ExprList]; nil if the expression is not a
// list.
func (e jsonExpr) ExprList() []hcl.Expression {
	items, diags := hcl.ExprList(e.Expression)
	if diags.HasErrors() {
		return nil
	}
	for k, item := range items {
		items[k] = jsonExpr{item}
	}
	return items
}

// ExprMap implements the interface of [hcl.ExprMap]; nil if the expression is not an
// object.
func (e jsonExpr) ExprMap() []hcl.KeyValuePair {
	pairs, diags := hcl.ExprMap(e.Expression)
	if diags.HasErrors() {
		return nil
	}
	for k, p := range pairs {
		pairs[k] = hcl.KeyValuePair{Key: jsonExpr{p.Key}, Value: jsonExpr{p.Value}}
	}
	return pairs
}

// Value implements [hcl.Expression]. It does the same as the original expression, but
// meters its texts, each of which is a template.
func (e jsonExpr) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	raw, diags := e.Expression.Value(nil) // without a context, texts are not evaluated
	switch ty := raw.Type(); {
	case ctx == nil || diags.HasErrors() || raw.IsNull():
		return raw, diags
	case ty == cty.String:
		at := e.Range()
		inside := hcl.Pos{Line: at.Start.Line, Column: at.Start.Column + 1, Byte: at.Start.Byte + 1}
		tree, diags := hclsyntax.ParseTemplate([]byte(raw.AsString()), at.Filename, inside)
		if diags.HasErrors() {
			return cty.DynamicVal, diags
		}
		return meterTree(tree).Value(ctx)
	case ty.IsTupleType():
		return tupleOfJSON(e.ExprList(), ctx)
	case ty.IsObjectType():
		return objectOfJSON(e.ExprMap(), ctx)
	}
	return raw, nil
}

func tupleOfJSON(items []hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	values := make([]cty.Value, len(items))
	for k, item := range items {
		v, more := item.Value(ctx)
		values[k], diags = v, append(diags, more...)
	}
	return cty.TupleVal(values), diags
}

func objectOfJSON(pairs []hcl.KeyValuePair, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	values, secrets := map[string]cty.Value{}, []cty.ValueMarks(nil) // of the keys
	fault := func(p hcl.KeyValuePair, summary, detail string) {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: p.Key.Range().Ptr(), Expression: p.Key, EvalContext: ctx})
	}
	known := true
	for _, p := range pairs {
		key, more := p.Key.Value(ctx)
		v, evenMore := p.Value.Value(ctx)
		diags = append(append(diags, more...), evenMore...)
		key, err := convert.Convert(key, cty.String)
		key, secret := key.Unmark()
		secrets = append(secrets, secret)
		switch {
		case err != nil || key.IsNull():
			fault(p, "Invalid object key expression", "Cannot use this expression as an object key.")
		case !key.IsKnown():
			known = false
		case values[key.AsString()] != cty.NilVal:
			fault(p, "Duplicate object attribute", fmt.Sprintf("An attribute named %q was already defined.", key.AsString()))
		default:
			values[key.AsString()] = v
		}
	}
	if !known {
		return cty.DynamicVal.WithMarks(secrets...), diags
	}
	return cty.ObjectVal(values).WithMarks(secrets...), diags
}
