package recipes

import (
	"fmt"
	"time"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/zclconf/go-cty/cty"
)

// stopWhen is the block with a condition under which a recipe stops.
const stopWhen = "stop_when"

// stopCounters are the counters that the match of such a block can use, all of them numbers.
var stopCounters = map[string]func(*journal.StopCounters) float64{
	"turns":    func(c *journal.StopCounters) float64 { return float64(c.Turns) },
	"messages": func(c *journal.StopCounters) float64 { return float64(c.Messages) },
	"tokens":   func(c *journal.StopCounters) float64 { return float64(c.Tokens) },
	"money":    func(c *journal.StopCounters) float64 { return float64(c.Money) / 1e6 },
	"seconds":  func(c *journal.StopCounters) float64 { return time.Duration(c.Elapsed).Seconds() },
}

var (
	stopFields = func() map[string]func(*journal.StopCounters) cty.Value {
		out := map[string]func(*journal.StopCounters) cty.Value{}
		for name, value := range stopCounters {
			out[name] = func(c *journal.StopCounters) cty.Value { return cty.NumberFloatVal(value(c)) }
		}
		return out
	}()
	quickStop = quick[journal.StopCounters]{numbers: stopCounters}
)

// stopWhen evaluates the conditions under which the deployment stops.
func (sc *scripts) stopWhen(d *deploy.Deployment) {
	for _, decl := range sc.ordered[stopWhen] {
		if w, ok := sc.stopCondition(decl); ok {
			d.StopWhen = append(d.StopWhen, w)
		}
	}
}

func (sc *scripts) stopCondition(d *declaration) (w deploy.StopWhen, ok bool) {
	s, errors := scope{title: d.title}, len(sc.diags)
	sc.checkDescription(s, d)
	w.Name = d.name
	w.Turns, _ = sc.countAttr(s, d, "turns")
	w.Messages, _ = sc.countAttr(s, d, "messages")
	w.Tokens, _ = sc.countAttr(s, d, "tokens")
	w.After, _ = sc.durationAttr(s, d, "after")
	if text, given := sc.stringAttr(s, d, "money"); given {
		if w.Money, ok = capability.ParseMoney(text); !ok || w.Money == 0 {
			sc.fault(s, d.attr("money").Expr, "Not a sum of money", fmt.Sprintf("Money must be a sum above 0 with at most 6 decimals; this is %q.", text), `Write a text such as "2.50".`)
		}
	}
	if a := d.attr("match"); a != nil {
		w.Match = prepareMatch(sc, s, a.Expr, stopFields, quickStop)
	}
	if len(sc.diags) > errors {
		return w, false
	}
	if w.Match == nil && w.Turns == 0 && w.Messages == 0 && w.Tokens == 0 && w.Money == 0 && w.After == 0 {
		sc.report(s, d.at, Diagnostic{Summary: "Empty condition", Detail: "The block sets nothing, so the recipe would stop at once.",
			Remedy: "Set at least one of turns, messages, tokens, money, after and match."})
		return w, false
	}
	return w, true
}
