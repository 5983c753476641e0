package recipes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/recipes/policy"
)

// eventFields are what a match expression can ask of an event.
var eventFields = map[string]func(*engine.SendEvent) cty.Value{
	"kind":            func(*engine.SendEvent) cty.Value { return cty.StringVal("send") },
	"graph":           func(e *engine.SendEvent) cty.Value { return cty.StringVal(string(e.Graph)) },
	"deployment":      func(e *engine.SendEvent) cty.Value { return cty.StringVal(e.Deployment) },
	"channel":         func(e *engine.SendEvent) cty.Value { return cty.StringVal(e.ChannelName) },
	"channel_address": func(e *engine.SendEvent) cty.Value { return cty.StringVal(e.ChannelAddress) },
	"sender":          func(e *engine.SendEvent) cty.Value { return cty.StringVal(e.SenderName) },
	"sender_address":  func(e *engine.SendEvent) cty.Value { return cty.StringVal(e.SenderAddress) },
	"size":            func(e *engine.SendEvent) cty.Value { return cty.NumberIntVal(int64(len(e.Payload))) },
	"payload": func(e *engine.SendEvent) cty.Value {
		if !utf8.Valid(e.Payload) {
			return cty.NullVal(cty.String)
		}
		return cty.StringVal(string(e.Payload))
	},
	"headers": func(e *engine.SendEvent) cty.Value {
		if len(e.Headers) == 0 {
			return cty.MapValEmpty(cty.String)
		}
		headers := make(map[string]cty.Value, len(e.Headers))
		for name, value := range e.Headers {
			headers[name] = cty.StringVal(value)
		}
		return cty.MapVal(headers)
	},
}

// match reads the condition under which a policy's script is run.
func (l *loader) match(s scope, d *declaration, p *policy.Policy) {
	a := d.attr("match")
	if a == nil {
		return
	}
	// References are looked up now; only the event changes.
	s.extra = map[string]cty.Value{"event": cty.DynamicVal}
	prepared := l.prepare(s, a.Expr)
	fields, ok := l.fieldsOf(s, a.Expr)
	if !prepared.ok || !ok {
		return
	}
	if probe, ok := l.probe(s, a.Expr, prepared, fields); !ok {
		return
	} else if constant, known := probe.constant(); known && len(fields) == 0 {
		p.Match = func(*engine.SendEvent) (bool, error) { return constant, nil }
		return
	}
	q := quick{ctx: prepared.ctx}
	if p.Match = q.condition(a.Expr); p.Match != nil {
		return
	}
	p.Match = matcher(a.Expr, prepared.ctx, fields)
}

// fieldsOf returns the fields of the event that an expression uses.
func (l *loader) fieldsOf(s scope, expr hcl.Expression) ([]string, bool) {
	used := map[string]bool{}
	known := slices.Sorted(maps.Keys(eventFields))
	ok := true
	for _, t := range expr.Variables() {
		switch {
		case t.RootName() != "event":
		case len(t) == 1:
			for _, name := range known {
				used[name] = true
			}
		case eventFields[stepName(t[1])] == nil:
			l.add(l.at(s, t.SourceRange(), Diagnostic{Summary: "Unknown field of an event", Detail: fmt.Sprintf("Events have no %q.", stepName(t[1])),
				Suggestion: nearest(stepName(t[1]), known), Remedy: fmt.Sprintf("There are %s.", enumerate(known))}))
			ok = false
		default:
			used[stepName(t[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(used)), ok
}

// probed is what a condition is for an event of which nothing is known.
type probed struct{ value cty.Value }

func (p probed) constant() (value, known bool) {
	if !p.value.IsKnown() || p.value.IsNull() || p.value.Type() != cty.Bool {
		return false, false
	}
	v, _ := p.value.Unmark()
	return v.True(), true
}

// probe evaluates a condition for an unknown event, which finds mistakes of
// type before a message does.
func (l *loader) probe(s scope, expr hcl.Expression, p *prepared, fields []string) (probed, bool) {
	var sample engine.SendEvent
	event := map[string]cty.Value{}
	for _, name := range fields {
		event[name] = cty.UnknownVal(eventFields[name](&sample).Type())
	}
	ctx := p.ctx.NewChild()
	ctx.Variables = map[string]cty.Value{"event": cty.ObjectVal(event)}
	v, diags := valueOf(expr, ctx)
	for _, d := range diags {
		l.hcl(s.title, d)
	}
	if diags.HasErrors() {
		return probed{}, false
	}
	if ty := v.Type(); ty != cty.Bool && ty != cty.DynamicPseudoType {
		l.add(l.at(s, expr.Range(), Diagnostic{Summary: "Wrong type", Detail: fmt.Sprintf("Match is a condition, true or false; this is %s.", article(ty.FriendlyName()))}))
		return probed{}, false
	}
	return probed{v}, true
}

var errNoBool = errors.New("the condition is neither true nor false")

// matcher evaluates a condition for an event.
func matcher(expr hcl.Expression, parent *hcl.EvalContext, fields []string) func(*engine.SendEvent) (bool, error) {
	return func(e *engine.SendEvent) (bool, error) {
		event := make(map[string]cty.Value, len(fields))
		for _, name := range fields {
			event[name] = eventFields[name](e)
		}
		ctx := parent.NewChild()
		ctx.Variables = map[string]cty.Value{"event": cty.ObjectVal(event)}
		v, diags := expr.Value(ctx)
		if diags.HasErrors() {
			return false, diags
		}
		v, _ = v.Unmark()
		if v.Type() != cty.Bool || v.IsNull() || !v.IsKnown() {
			return false, errNoBool
		}
		return v.True(), nil
	}
}
