package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Functions that a recipe declares have the form of those of the extension
// userfunc of HCL. That one evaluates a function twice for every call, for its
// type and for its value, so calls within one another would take twice as long
// for each level, and it has no bound for those that call themselves.
const (
	maxCallDepth = 32
	maxCalls     = 100_000 // while a recipe is loaded
)

// calls counts the calls of declared functions. fault is why the innermost of
// those under way failed, which is all that the others would have to say.
type calls struct {
	depth, total int
	fault        error
}

// declareFunction takes in a block function.
func (l *loader) declareFunction(b *hcl.Block, t string) {
	d := &declaration{kind: b.Type, name: b.Labels[0], title: t, at: b.DefRange}
	d.content = l.content(t, b)
	if !hclsyntax.ValidIdentifier(d.name) {
		l.add(l.at(scope{title: t}, b.LabelRanges[0], Diagnostic{Summary: "Invalid name", Detail: fmt.Sprintf("%q cannot be called.", d.name),
			Remedy: "Use letters, digits, hyphens and underscores, beginning with a letter."}))
		return
	}
	for _, f := range l.funcs {
		if f.name == d.name {
			l.duplicate(t, "A "+t, b.DefRange, f.at)
			return
		}
	}
	l.funcs = append(l.funcs, d)
}

// userFunctions adds the functions that the recipe declares to those that there
// are.
func (l *loader) userFunctions() {
	for _, d := range l.funcs {
		if _, taken := l.functions[d.name]; taken {
			l.add(l.at(scope{title: d.title}, d.at, Diagnostic{Summary: "Name of a built-in function",
				Detail: fmt.Sprintf("There is a function %s already.", d.name), Remedy: "Use another name."}))
			continue
		}
		if f, ok := l.userFunction(d); ok {
			l.functions[d.name] = f
		}
	}
}

func (l *loader) userFunction(d *declaration) (function.Function, bool) {
	params, result := d.attr("params"), d.attr("result")
	if params == nil || result == nil {
		return function.Function{}, false // which has been reported
	}
	items, diags := hcl.ExprList(params.Expr)
	for _, h := range diags {
		l.hcl(d.title, h)
	}
	spec := &function.Spec{Type: function.StaticReturnType(cty.DynamicPseudoType)}
	ok := !diags.HasErrors()
	var names []string
	for _, item := range items {
		name, fine := l.paramName(d, item)
		ok = ok && fine
		names = append(names, name)
		spec.Params = append(spec.Params, parameter(name))
	}
	rest := ""
	if a := d.attr("variadic_param"); a != nil {
		var fine bool
		rest, fine = l.paramName(d, a.Expr)
		ok = ok && fine
		variadic := parameter(rest)
		spec.VarParam = &variadic
	}
	l.checkDescription(scope{title: d.title, static: "a function block"}, d)
	l.prepare(inFunction(d, bind(names, rest, unknown(len(names)))), result.Expr) // called or not
	spec.Impl = func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return l.call(d, result.Expr, bind(names, rest, args))
	}
	return function.New(spec), ok
}

// parameter takes any value, also null, which has no type of its own.
func parameter(name string) function.Parameter {
	return function.Parameter{Name: name, Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}
}

// paramName reads the name of a parameter.
func (l *loader) paramName(d *declaration, expr hcl.Expression) (string, bool) {
	name := hcl.ExprAsKeyword(expr)
	if name == "" {
		l.fault(scope{title: d.title}, expr, "Invalid parameter", "A parameter is a name without quotes.", "Write for example params = [first, second].")
	}
	return name, name != ""
}

// bind gives parameters their values.
func bind(names []string, rest string, args []cty.Value) map[string]cty.Value {
	out := map[string]cty.Value{}
	for i, name := range names {
		out[name] = args[i]
	}
	if rest != "" {
		out[rest] = cty.TupleVal(args[len(names):])
	}
	return out
}

// unknown are arguments before there are any.
func unknown(n int) []cty.Value {
	return slices.Repeat([]cty.Value{cty.DynamicVal}, n)
}

// inFunction is the scope of a declared function, which knows its parameters only.
func inFunction(d *declaration, params map[string]cty.Value) scope {
	return scope{title: d.title, pure: true, extra: params}
}

// call evaluates a declared function.
func (l *loader) call(d *declaration, expr hcl.Expression, params map[string]cty.Value) (cty.Value, error) {
	if l.calls.depth == 0 {
		l.calls.fault = nil
	}
	if l.calls.total++; l.calls.total > maxCalls {
		l.calls.fault = fmt.Errorf("more than %d calls of declared functions while the recipe is read", maxCalls)
	} else if l.calls.depth >= maxCallDepth {
		l.calls.fault = fmt.Errorf("more than %d calls within one another: does it call itself", maxCallDepth)
	}
	if l.calls.fault != nil {
		return cty.NilVal, l.calls.fault
	}
	l.calls.depth++
	defer func() { l.calls.depth-- }()
	p := l.prepare(inFunction(d, params), expr)
	if !p.ok {
		return cty.DynamicVal, nil // which has been reported
	}
	ctx := p.ctx.NewChild()
	ctx.Variables = params
	v, diags := valueOf(expr, ctx)
	if !diags.HasErrors() {
		return v, nil
	}
	if l.calls.fault == nil {
		l.calls.fault = reasonOf(d, diags)
	}
	return cty.NilVal, l.calls.fault
}

// reasonOf says why a function failed, without the full stop that the caller adds.
func reasonOf(d *declaration, diags hcl.Diagnostics) error {
	for _, h := range diags {
		if h.Severity == hcl.DiagError {
			return fmt.Errorf("in its result, line %d: %s", h.Subject.Start.Line, strings.TrimSuffix(cmp.Or(h.Detail, h.Summary), "."))
		}
	}
	return fmt.Errorf("%s failed", d.title)
}
