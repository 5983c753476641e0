package recipes

import (
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// checks evaluates the check blocks of all recipes, which can use the values of a recipe
// and the whole graph that it declares. Nothing else in a recipe depends on checks, so they
// come last, and only if nothing else is wrong.
func (a *assembly) checks() {
	if a.opts.ShapeOnly || a.decoders[0].diags.HasErrors() {
		return
	}
	var graph cty.Value
	for _, dec := range a.decoders {
		for _, d := range dec.ordered["check"] {
			if graph == cty.NilVal {
				graph = graphValue(a.deployment)
			}
			dec.check(d, graph)
		}
	}
}

func (dec *decoder) check(d *declaration, graph cty.Value) {
	s := scope{title: d.title, secret: true, extra: map[string]cty.Value{"graph": graph}}
	dec.checkDescription(scope{title: d.title}, d)
	asserted := false
	for _, b := range d.content.Blocks {
		if b.Type == "assert" {
			asserted = true
			dec.checkAssertion(s, d, dec.blockContent(d.title, b))
		}
	}
	if !asserted {
		dec.report(s, d.at, Diagnostic{Summary: "Nothing is asserted", Detail: "A check without an assert block cannot fail.",
			Remedy: "Add assert { condition = length(graph.creatures) > 1 }."})
	}
}

func (dec *decoder) checkAssertion(s scope, d *declaration, c blockBody) {
	a := c.attr("condition")
	if a == nil {
		return // which has been reported
	}
	message, hidden := dec.checkMessage(s, c)
	v, ok := dec.eval(s, a.Expr)
	if !ok {
		return
	}
	secret := v.ContainsMarked()
	v, _ = v.UnmarkDeep()
	holds, err := convert.Convert(v, cty.Bool)
	if err != nil || holds.IsNull() {
		dec.fault(s, a.Expr, "Wrong type", "A condition must be true or false; this is "+describeUnless(secret, v)+".", "Write a comparison, such as var.count > 0.")
		return
	}
	if holds.True() {
		return
	}
	if hidden {
		message = "The message is sensitive, so it is not shown."
	}
	dec.fault(s, a.Expr, "Check failed", message, "")
	dec.noteFailed("check." + d.name)
}

// checkMessage returns the message of an assertion, and whether it is sensitive. Its mistakes
// are reported even if it is not needed.
func (dec *decoder) checkMessage(s scope, c blockBody) (message string, hidden bool) {
	message = "The condition does not hold."
	a := c.attr("error_message")
	if a == nil {
		return message, false
	}
	if v, ok := dec.eval(s, a.Expr); ok {
		hidden = v.ContainsMarked()
	}
	if text, ok := dec.stringAttr(s, c, "error_message"); ok && text != "" {
		message = text
	}
	return message, hidden
}

// graphValue returns the declared graph as checks see it.
func graphValue(d *deploy.Deployment) cty.Value {
	listeners, senders := map[string][]string{}, map[string][]string{}
	var creatures, channels []cty.Value
	for i := range d.Creatures {
		c := &d.Creatures[i]
		var listen, send []string
		for _, w := range c.Listen {
			listen = append(listen, w.Channel)
			listeners[w.Channel] = append(listeners[w.Channel], c.Address)
		}
		for _, w := range c.Send {
			send = append(send, w.Channel)
			senders[w.Channel] = append(senders[w.Channel], c.Address)
		}
		creatures = append(creatures, cty.ObjectVal(map[string]cty.Value{
			"address": cty.StringVal(c.Address), "name": cty.StringVal(c.Name), "species": cty.StringVal(c.Species), "module": cty.StringVal(c.Module),
			"root": cty.BoolVal(c.Address == d.Root), "privileged": cty.BoolVal(c.Privileged), "listen": textList(listen), "send": textList(send),
		}))
	}
	for i := range d.Channels {
		ch := &d.Channels[i]
		channels = append(channels, cty.ObjectVal(map[string]cty.Value{
			"address": cty.StringVal(ch.Address), "name": cty.StringVal(ch.Name), "listeners": textList(listeners[ch.Address]), "senders": textList(senders[ch.Address]),
		}))
	}
	return cty.ObjectVal(map[string]cty.Value{"creatures": cty.TupleVal(creatures), "channels": cty.TupleVal(channels)})
}

func textList(list []string) cty.Value {
	if len(list) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	out := make([]cty.Value, len(list))
	for i, text := range list {
		out[i] = cty.StringVal(text)
	}
	return cty.ListVal(out)
}
