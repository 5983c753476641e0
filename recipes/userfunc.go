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

// Functions that a recipe declares have the form of the HCL extension userfunc. The
// extension evaluates a function twice for every call, for its type and for its value, so
// that nested calls would take twice as long for each level, and it does not bound
// recursion.
const (
	maxCallDepth = 32
	maxCalls     = 100_000 // while a recipe is loaded
)

// calls counts the calls of declared functions. fault is the error of the innermost
// active call; the others report the same.
type calls struct {
	depth, total int
	fault        error
}

func (ds *declarations) declareFunction(b *hcl.Block, t string) {
	d := &declaration{kind: b.Type, name: b.Labels[0], title: t, at: b.DefRange}
	d.content = ds.content(t, b)
	if !hclsyntax.ValidIdentifier(d.name) {
		ds.report(scope{title: t}, b.LabelRanges[0], Diagnostic{Summary: "Invalid name", Detail: fmt.Sprintf("%q cannot be the name of a function.", d.name),
			Remedy: "Use letters, digits, hyphens and underscores, and start with a letter."})
		return
	}
	for _, f := range ds.funcs {
		if f.name == d.name {
			ds.duplicate(t, "A "+t, b.DefRange, f.at)
			return
		}
	}
	ds.funcs = append(ds.funcs, d)
}

// userFunctions adds the functions that the recipe declares.
func (ev *evaluator) userFunctions() {
	for _, d := range ev.funcs {
		if _, taken := ev.functions[d.name]; taken {
			ev.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Name of a built-in function",
				Detail: fmt.Sprintf("The function %s already exists.", d.name), Remedy: "Use another name."})
			continue
		}
		if f, ok := ev.userFunction(d); ok {
			ev.functions[d.name] = f
		}
	}
}

func (ev *evaluator) userFunction(d *declaration) (function.Function, bool) {
	params, result := d.attr("params"), d.attr("result")
	if params == nil || result == nil {
		return function.Function{}, false // which has been reported
	}
	items, diags := hcl.ExprList(params.Expr)
	for _, h := range diags {
		ev.hcl(d.title, h)
	}
	spec := &function.Spec{Type: function.StaticReturnType(cty.DynamicPseudoType)}
	ok := !diags.HasErrors()
	var names []string
	for _, item := range items {
		name, fine := ev.paramName(d, item)
		ok = ok && fine
		names = append(names, name)
		spec.Params = append(spec.Params, parameter(name))
	}
	rest := ""
	if a := d.attr("variadic_param"); a != nil {
		var fine bool
		rest, fine = ev.paramName(d, a.Expr)
		ok = ok && fine
		variadic := parameter(rest)
		spec.VarParam = &variadic
	}
	ev.checkDescription(scope{title: d.title, static: "a function block"}, d)
	ev.prepare(inFunction(d, bind(names, rest, unknown(len(names)))), result.Expr) // even if it is not called
	spec.Impl = func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return ev.call(d, result.Expr, bind(names, rest, args))
	}
	return function.New(spec), ok
}

// parameter accepts any value, including null, which has no type of its own.
func parameter(name string) function.Parameter {
	return function.Parameter{Name: name, Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}
}

func (ev *evaluator) paramName(d *declaration, expr hcl.Expression) (string, bool) {
	name := hcl.ExprAsKeyword(expr)
	if name == "" {
		ev.fault(scope{title: d.title}, expr, "Invalid parameter", "A parameter is a name without quotes.", "Write for example params = [first, second].")
	}
	return name, name != ""
}

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

// unknown returns arguments without known values.
func unknown(n int) []cty.Value {
	return slices.Repeat([]cty.Value{cty.DynamicVal}, n)
}

// inFunction is the scope of a declared function, which only knows its parameters.
func inFunction(d *declaration, params map[string]cty.Value) scope {
	return scope{title: d.title, pure: true, extra: params}
}

func (ev *evaluator) call(d *declaration, expr hcl.Expression, params map[string]cty.Value) (cty.Value, error) {
	if ev.calls.depth == 0 {
		ev.calls.fault = nil
	}
	if ev.calls.total++; ev.calls.total > maxCalls {
		ev.calls.fault = fmt.Errorf("more than %d calls to declared functions while the recipe is read", maxCalls)
	} else if ev.calls.depth >= maxCallDepth {
		ev.calls.fault = fmt.Errorf("more than %d nested calls; the function may call itself", maxCallDepth)
	}
	if ev.calls.fault != nil {
		return cty.NilVal, ev.calls.fault
	}
	ev.calls.depth++
	defer func() { ev.calls.depth-- }()
	p := ev.prepare(inFunction(d, params), expr)
	if !p.ok {
		return cty.DynamicVal, nil // which has been reported
	}
	ctx := p.ctx.NewChild()
	ctx.Variables = params
	v, diags := valueOf(expr, ctx)
	if !diags.HasErrors() {
		return v, nil
	}
	if ev.calls.fault == nil {
		ev.calls.fault = reasonOf(d, diags)
	}
	return cty.NilVal, ev.calls.fault
}

// reasonOf says why a function failed, without a full stop, which the caller adds.
func reasonOf(d *declaration, diags hcl.Diagnostics) error {
	for _, h := range diags {
		if h.Severity == hcl.DiagError {
			return fmt.Errorf("in its result, line %d: %s", h.Subject.Start.Line, strings.TrimSuffix(cmp.Or(h.Detail, h.Summary), "."))
		}
	}
	return fmt.Errorf("%s failed", d.title)
}
