package recipes

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
)

// wires reads listen or send: a list of channels, or an object of channels by alias. When
// listening, an alias can have several channels.
func (dec *decoder) wires(s scope, d *declaration, name string, several bool) []deploy.WireSpec {
	a := d.attr(name)
	if a == nil {
		return nil
	}
	w := &wiring{decoder: dec, scope: s, attr: name, several: several, seen: map[string]bool{}}
	if items, diags := hcl.ExprList(a.Expr); !diags.HasErrors() {
		for _, item := range items {
			w.element("", item)
		}
	} else if pairs, diags := hcl.ExprMap(a.Expr); !diags.HasErrors() {
		w.pairs(pairs)
	} else {
		w.whole(a.Expr)
	}
	if w.failed {
		d.failed = true
		dec.mention(a.Expr)
	}
	return w.out
}

type wiring struct {
	decoder *decoder
	scope   scope
	attr    string
	several bool
	out     []deploy.WireSpec
	seen    map[string]bool // alias and channel
	failed  bool
}

// element reads an element of a literal list, or the value of an alias.
func (w *wiring) element(alias string, expr hcl.Expression) {
	v, ok := w.decoder.eval(w.scope, expr)
	if !ok {
		w.failed = true
		return
	}
	w.value(alias, expr, v)
}

// pairs reads a literal object.
func (w *wiring) pairs(pairs []hcl.KeyValuePair) {
	for _, p := range pairs {
		key, ok := w.decoder.eval(w.scope, p.Key)
		if !ok || key.IsNull() || key.Type() != cty.String {
			w.failed = true
			continue
		}
		key, _ = key.Unmark()
		alias := key.AsString()
		items, diags := hcl.ExprList(p.Value)
		if diags.HasErrors() {
			w.element(alias, p.Value)
			continue
		}
		if !w.severalAllowed(alias, p.Value, len(items)) {
			continue
		}
		for _, item := range items {
			w.element(alias, item)
		}
	}
}

// whole reads an expression that makes a list or an object.
func (w *wiring) whole(expr hcl.Expression) {
	v, ok := w.decoder.eval(w.scope, expr)
	if !ok {
		w.failed = true
		return
	}
	v, _ = v.UnmarkDeep()
	if _, single := refAddress(v, "channel"); single {
		w.fault(expr, "List expected", "This is a single channel; a list of channels is expected here.", "Put square brackets around it.")
		return
	}
	switch ty := v.Type(); {
	case v.IsNull():
	case ty.IsMapType() && ty.ElementType().Equals(referenceType):
		// The keys of a for_each are not aliases.
		w.failed = true
		w.decoder.wrongReference(w.scope, expr, v, "channel")
	case ty.IsTupleType(), ty.IsListType(), ty.IsSetType():
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			w.value("", expr, e)
		}
	case ty.IsObjectType(), ty.IsMapType():
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			w.aliased(k.AsString(), expr, e)
		}
	default:
		w.fault(expr, "List expected", fmt.Sprintf("%s must be a list of channels, or an object of channels by alias; this is %s.", capital(w.attr), describe(v)),
			"Write "+w.attr+" = [channel.NAME].")
	}
}

// aliased reads the value of an alias: a channel or several.
func (w *wiring) aliased(alias string, expr hcl.Expression, v cty.Value) {
	if ty := v.Type(); !v.IsNull() && (ty.IsTupleType() || ty.IsListType() || ty.IsSetType()) {
		if w.severalAllowed(alias, expr, v.LengthInt()) {
			for it := v.ElementIterator(); it.Next(); {
				_, e := it.Element()
				w.value(alias, expr, e)
			}
		}
		return
	}
	w.value(alias, expr, v)
}

func (w *wiring) severalAllowed(alias string, expr hcl.Expression, n int) bool {
	if w.several || n == 1 {
		return true
	}
	w.fault(expr, "One channel per send alias", fmt.Sprintf("The alias %q names %s, but a message is sent on one.", alias, counted(n, "channel")),
		"Give each channel an alias of its own.")
	return false
}

func (w *wiring) value(alias string, expr hcl.Expression, v cty.Value) {
	address, ok := refAddress(v, "channel")
	if !ok {
		v, _ = v.UnmarkDeep()
		if ty := v.Type(); alias != "" && !v.IsNull() && (ty.IsTupleType() || ty.IsListType() || ty.IsSetType()) {
			w.aliased(alias, expr, v)
			return
		}
		w.failed = true
		w.decoder.wrongReference(w.scope, expr, v, "channel")
		return
	}
	name, declared := w.decoder.channelNames[address]
	if !declared {
		w.fault(expr, "Unknown channel", fmt.Sprintf("No channel has the address %s.", address), "Refer to a channel that the recipe declares.")
		return
	}
	if key := alias + "\x00" + address; w.seen[key] {
		w.decoder.report(w.scope, expr.Range(), Diagnostic{Severity: Warning, Summary: "Channel named twice",
			Detail: fmt.Sprintf("%s is already in this list; it counts once.", address)})
		return
	} else {
		w.seen[key] = true
	}
	w.decoder.wired[address] = true
	if alias == name {
		alias = ""
	}
	w.out = append(w.out, deploy.WireSpec{Channel: address, Alias: alias})
}

func (w *wiring) fault(expr hcl.Expression, summary, detail, remedy string) {
	w.failed = true
	w.decoder.fault(w.scope, expr, summary, detail, remedy)
}

// mention records the channels that a faulty expression may have meant, so that they are
// not reported as unused.
func (ev *evaluator) mention(expr hcl.Expression) {
	for _, t := range expr.Variables() {
		switch {
		case len(t) < 2:
		case t.RootName() == "channel":
			ev.used[stepName(t[1])] = true
		case t.RootName() == "recipe":
			ev.mentionMember(t)
		}
	}
}

// checkEdges reports channels without listeners and senders.
func (dec *decoder) checkEdges() {
	if dec.broken || dec.astray {
		return
	}
	for _, decl := range dec.ordered["channel"] {
		var loose []string
		for _, i := range decl.instances {
			if !dec.wired[i.address] {
				loose = append(loose, i.address)
			}
		}
		if len(loose) == 0 || dec.used[decl.name] {
			continue
		}
		detail := fmt.Sprintf("No creature listens or sends on %s, so it belongs to no graph.", enumerate(loose))
		dec.report(scope{title: decl.title}, decl.at, Diagnostic{Summary: "Channel without an edge", Detail: detail,
			Remedy: fmt.Sprintf("Add %s to the listen or send of a creature, or remove the channel.", loose[0])})
	}
}

func isJSON(expr hcl.Expression) bool {
	_, native := expr.(hclsyntax.Expression)
	return !native && strings.HasSuffix(expr.Range().Filename, ".json")
}
