package recipes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Console evaluates expressions as if they were in an attribute of a block without
// for_each. It must be used by one goroutine at a time.
type Console struct{ in *loader }

// consoleName is the name of the input of a console in findings.
const consoleName = "standard input"

// OpenConsole loads the recipe at path, without its modules and catalogs. It returns nil
// if there is an error. The caller closes the console; until then functions may read
// files of the recipe.
func OpenConsole(ctx context.Context, path string, o Options) (*Console, Diagnostics) {
	o.ShapeOnly, o.Inspector = true, nil
	l, d := openLoader(path, o.withDefaults())
	if d != nil {
		return nil, Diagnostics{*d}
	}
	l.settings.forConsole = true
	if l.evaluate(ctx, path) == nil {
		l.close()
		return nil, l.diags
	}
	return &Console{in: l}, l.diags
}

// Close releases the recipe.
func (c *Console) Close() { c.in.close() }

// Evaluate returns the value of an expression in HCL syntax: objects have a line for each
// attribute, a reference is shown as the thing it refers to, and a sensitive value as
// "(sensitive value)". line is the number of the expression's line, for findings. A blank
// line or a comment has no value. Each expression has the budget of a whole recipe.
func (c *Console) Evaluate(line int, text string) (string, Diagnostics) {
	l, src := c.in, []byte(text)
	l.diags, l.tooMany, l.calls, *l.spent = nil, false, calls{}, spending{left: maxSpending}
	l.extra[consoleName] = src
	if isBlank(text) {
		return "", nil
	}
	out := ""
	if v, ok := c.value(src); ok {
		out = textOfValue(v)
	}
	for i := range l.diags {
		if r := &l.diags[i].Range; r.File == consoleName && r.Start.Line > 0 {
			r.Start.Line, r.End.Line = r.Start.Line+line-1, r.End.Line+line-1
		}
	}
	return out, l.diags.tidy()
}

// isBlank reports whether a line is empty or a comment.
func isBlank(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//")
}

// value evaluates one expression. If it is not ok, the findings say why.
func (c *Console) value(src []byte) (cty.Value, bool) {
	l := c.in
	expr, diags := parseExpression(src, consoleName, l.opts.MaxFileBytes)
	for _, d := range diags {
		l.hcl("", d)
	}
	if diags.HasErrors() {
		return cty.DynamicVal, false
	}
	defer delete(l.exprs, hcl.Expression(expr)) // it is not evaluated again
	v, ok := l.eval(scope{secret: true}, expr)
	if ok && weigh(v, maxWeight) <= 0 {
		l.fault(scope{}, expr, "Value too large", fmt.Sprintf("The value is larger than %d MiB.", maxWeight>>20), "Evaluate a part of it.")
		return v, false
	}
	return v, ok
}

// parseExpression parses an expression that is not in a file. It is measured and metered
// like those of a recipe.
func parseExpression(src []byte, shown string, limit int64) (hclsyntax.Expression, hcl.Diagnostics) {
	if int64(len(src)) > limit {
		return nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Expression too long", Subject: &hcl.Range{Filename: shown},
			Detail: fmt.Sprintf("An expression has at most %d bytes.", limit)}}
	}
	if d := cmp.Or(encoding(src, shown), deceptive(src, shown), unclosed(src, shown), measure(hclsyntax.LexExpression, src, shown)); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	expr, diags := hclsyntax.ParseExpression(src, shown, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	return meterTree(expr), diags
}
