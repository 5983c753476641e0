package recipes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes/policy"
	"github.com/zclconf/go-cty/cty"
)

// sendFields are the fields of a message that a match expression can use.
var sendFields = map[string]func(*deploy.SendEvent) cty.Value{
	"kind":            func(*deploy.SendEvent) cty.Value { return cty.StringVal("send") },
	"graph":           func(e *deploy.SendEvent) cty.Value { return cty.StringVal(string(e.Graph)) },
	"deployment":      func(e *deploy.SendEvent) cty.Value { return cty.StringVal(e.Deployment) },
	"channel":         func(e *deploy.SendEvent) cty.Value { return cty.StringVal(e.ChannelName) },
	"channel_address": func(e *deploy.SendEvent) cty.Value { return cty.StringVal(e.ChannelAddress) },
	"sender":          func(e *deploy.SendEvent) cty.Value { return cty.StringVal(e.SenderName) },
	"sender_address":  func(e *deploy.SendEvent) cty.Value { return cty.StringVal(e.SenderAddress) },
	"sender_species":  func(e *deploy.SendEvent) cty.Value { return cty.StringVal(e.SenderSpecies) },
	"size":            func(e *deploy.SendEvent) cty.Value { return cty.NumberIntVal(int64(len(e.Payload))) },
	"payload": func(e *deploy.SendEvent) cty.Value {
		if !utf8.Valid(e.Payload) {
			return cty.NullVal(cty.String)
		}
		return cty.StringVal(string(e.Payload))
	},
	"headers": func(e *deploy.SendEvent) cty.Value {
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

// conditionFields are the fields of another event that a match expression can use: all
// but whole structures.
func conditionFields(kind journal.PolicyKind) map[string]func(*deploy.PolicyEvent) cty.Value {
	out := map[string]func(*deploy.PolicyEvent) cty.Value{}
	for i := range policy.Fields {
		if f := &policy.Fields[i]; f.Of(kind) && f.Type != policy.Data {
			out[f.Name] = func(e *deploy.PolicyEvent) cty.Value { return conditionValue(f.Value(e)) }
		}
	}
	return out
}

func conditionValue(v any) cty.Value {
	switch v := v.(type) {
	case string:
		return cty.StringVal(v)
	case float64:
		return cty.NumberFloatVal(v)
	case bool:
		return cty.BoolVal(v)
	case []string:
		list := make([]cty.Value, len(v))
		for i, text := range v {
			list[i] = cty.StringVal(text)
		}
		if len(list) > 0 {
			return cty.ListVal(list)
		}
	}
	return cty.ListValEmpty(cty.String)
}

// match reads the condition that skips a policy's script.
func (sc *scripts) match(s scope, d *declaration, p *policy.Policy) {
	a := d.attr("match")
	if a == nil {
		return
	}
	if p.On == journal.JudgeSend {
		p.Match = prepareMatch(sc, s, a.Expr, sendFields, quickSend)
	} else {
		p.MatchEvent = prepareMatch(sc, s, a.Expr, conditionFields(p.On), quickEvent(p.On))
	}
}

// prepareMatch returns the function for a condition on events of a type, or nil after a
// mistake. References are looked up once; only the event changes.
func prepareMatch[E any](sc *scripts, s scope, expr hcl.Expression, known map[string]func(*E) cty.Value, q quick[E]) func(*E) (bool, error) {
	s.extra = map[string]cty.Value{"event": cty.DynamicVal}
	prepared := sc.prepare(s, expr)
	fields, ok := sc.fieldsOf(s, expr, slices.Sorted(maps.Keys(known)))
	if !prepared.ok || !ok {
		return nil
	}
	sample, event := new(E), map[string]cty.Value{}
	for _, name := range fields {
		event[name] = cty.UnknownVal(known[name](sample).Type())
	}
	if probe, ok := sc.probe(s, expr, prepared, event); !ok {
		return nil
	} else if constant, known := probe.constant(); known && len(fields) == 0 {
		return func(*E) (bool, error) { return constant, nil }
	}
	q.ctx = prepared.ctx
	if f := q.condition(expr); f != nil {
		return f
	}
	return matcher(expr, prepared.ctx, fields, known)
}

func (sc *scripts) fieldsOf(s scope, expr hcl.Expression, known []string) ([]string, bool) {
	used := map[string]bool{}
	ok := true
	for _, t := range expr.Variables() {
		switch {
		case t.RootName() != "event":
		case len(t) == 1:
			for _, name := range known {
				used[name] = true
			}
		case !slices.Contains(known, stepName(t[1])):
			sc.report(s, t.SourceRange(), Diagnostic{Summary: "Unknown field of an event", Detail: fmt.Sprintf("Events have no field %q.", stepName(t[1])),
				Suggestion: nearest(stepName(t[1]), known), Remedy: fmt.Sprintf("The fields are %s.", enumerate(known))})
			ok = false
		default:
			used[stepName(t[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(used)), ok
}

// probed is the value of a condition for an unknown event.
type probed struct{ value cty.Value }

func (p probed) constant() (value, known bool) {
	if !p.value.IsKnown() || p.value.IsNull() || p.value.Type() != cty.Bool {
		return false, false
	}
	v, _ := p.value.Unmark()
	return v.True(), true
}

// probe evaluates a condition for an unknown event, to find mistakes of type early.
func (sc *scripts) probe(s scope, expr hcl.Expression, p *prepared, event map[string]cty.Value) (probed, bool) {
	ctx := p.ctx.NewChild()
	ctx.Variables = map[string]cty.Value{"event": cty.ObjectVal(event)}
	v, diags := sc.valueOf(expr, ctx)
	for _, d := range diags {
		sc.hcl(s.title, d)
	}
	if diags.HasErrors() {
		return probed{}, false
	}
	if ty := v.Type(); ty != cty.Bool && ty != cty.DynamicPseudoType {
		sc.report(s, expr.Range(), Diagnostic{Summary: "Wrong type", Detail: fmt.Sprintf("A match must be true or false; this is %s.", article(ty.FriendlyName()))})
		return probed{}, false
	}
	return probed{v}, true
}

var errNoBool = errors.New("the condition is neither true nor false")

func matcher[E any](expr hcl.Expression, parent *hcl.EvalContext, fields []string, known map[string]func(*E) cty.Value) func(*E) (bool, error) {
	return func(e *E) (bool, error) {
		event := make(map[string]cty.Value, len(fields))
		for _, name := range fields {
			event[name] = known[name](e)
		}
		ctx, spent := parent.NewChild(), spending{left: maxMatching}
		ctx.Variables = map[string]cty.Value{"event": cty.ObjectVal(event), spendingName: spent.value()}
		v, diags := valueOf(expr, ctx)
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
