package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// expectation is something that has to fail in a test.
type expectation struct {
	text      string   // as written
	failure   string   // address of a variable or check; empty for creatures
	creatures []string // addresses; each has to have a dead letter
	at        hcl.Range
}

// maxExpected bounds the failures that a test can expect.
const maxExpected = 1000

// readExpected reads expect_failures.
func (ts *testReader) readExpected(s scope, t *Test, c blockBody) {
	a := c.attr("expect_failures")
	if a == nil {
		return
	}
	list, diags := hcl.ExprList(a.Expr)
	for _, h := range diags {
		ds := *h
		ds.Detail = "expect_failures is a list of references, such as [check.channels, creature.census]."
		ts.hcl(s.title, &ds)
	}
	if !diags.HasErrors() && (len(list) == 0 || len(list) > maxExpected) {
		ts.report(s, a.Expr.Range(), Diagnostic{Summary: "Wrong number of expected failures", Detail: fmt.Sprintf("expect_failures has from 1 to %d references; this list has %d.", maxExpected, len(list)),
			Remedy: "Remove the attribute, or name what has to fail."})
		return
	}
	for _, expr := range list {
		if e, ok := ts.expectation(s, expr); ok {
			t.expected = append(t.expected, e)
		}
	}
}

// expectation reads one reference of expect_failures.
func (ts *testReader) expectation(s scope, expr hcl.Expression) (e expectation, ok bool) {
	e.at = expr.Range()
	t := addressTraversal(expr)
	kind := ""
	if len(t) > 1 {
		kind, e.text = t.RootName(), traversalText(t)
	}
	switch kind {
	case "creature", "recipe":
		e.creatures, ok = ts.creaturesAt(s, expr)
		return e, ok
	case "var", "check":
		if len(t) > 2 {
			break
		}
		name := stepName(t[1])
		declared := map[string]string{"var": "variable", "check": "check"}[kind]
		if ts.decls[declared][name] == nil {
			ts.report(s, e.at, Diagnostic{Summary: "Unknown " + declared, Detail: fmt.Sprintf("No %s named %q is declared.", declared, name), Suggestion: nearest(name, ts.declared(declared))})
			return e, false
		}
		e.failure = ts.prefix + kind + "." + name
		return e, true
	}
	ts.report(s, e.at, Diagnostic{Summary: "Not something that fails", Detail: "A test can expect that the value of a variable is not valid, that a check fails, or that a delivery of a creature becomes a dead letter.",
		Remedy: "Write a reference without quotes, such as var.size, check.channels or creature.census."})
	return e, false
}

// creaturesAt returns the addresses of the creatures that an expression refers to: one, or
// all instances of a for_each.
func (ts *testReader) creaturesAt(s scope, expr hcl.Expression) ([]string, bool) {
	v, ok := ts.eval(s, expr)
	if !ok {
		return nil, false
	}
	if address, ok := refAddress(v, "creature"); ok {
		return []string{address}, true
	}
	if v, _ := v.Unmark(); v.Type().IsMapType() && !v.IsNull() && v.Type().ElementType().Equals(referenceType) {
		var out []string
		for _, each := range v.AsValueSlice() {
			if address, ok := refAddress(each, "creature"); ok {
				out = append(out, address)
			}
		}
		if len(out) == v.LengthInt() {
			return out, true
		}
	}
	ts.wrongReference(s, expr, v, "creature")
	return nil, false
}

// withoutExpected returns the findings of loading without the failures that the test
// expects, and notes these. If the value of a variable is not valid, as expected, errors
// elsewhere in the recipe follow from that.
func (t *Test) withoutExpected(diags Diagnostics) Diagnostics {
	var rest Diagnostics
	spoilt := false
	for _, d := range diags {
		if d.failed != "" && slices.ContainsFunc(t.expected, func(e expectation) bool { return e.failure == d.failed }) {
			t.failed[d.failed] = true
			spoilt = spoilt || d.ofVariable()
			continue
		}
		rest = append(rest, d)
	}
	if !spoilt {
		return rest
	}
	own := t.in.blockTitle(testTitle(t.block))
	return slices.DeleteFunc(rest, func(d Diagnostic) bool { return d.Block != own && !d.ofVariable() })
}

// ofVariable reports whether a finding is a false condition of a variable.
func (d *Diagnostic) ofVariable() bool {
	return strings.HasPrefix(d.failed, "var.") || strings.Contains(d.failed, ".var.")
}

// checkExpected reports expected failures that have not happened.
func (t *Test) checkExpected(o *TestOutcome) {
	s := scope{title: testTitle(t.block)}
	for _, e := range t.expected {
		detail := ""
		switch {
		case e.failure != "" && !t.failed[e.failure]:
			detail = fmt.Sprintf("%s did not fail.", e.text)
		case e.failure == "" && t.Recipe == nil:
			detail = fmt.Sprintf("Nothing has run, because the recipe could not be loaded, so no delivery of %s has failed.", e.text)
		case e.failure == "":
			var without []string
			for _, c := range e.creatures {
				if !slices.ContainsFunc(o.DeadLetters, func(d TestDeadLetter) bool { return d.Creature == c }) {
					without = append(without, c)
				}
			}
			if len(without) > 0 {
				detail = fmt.Sprintf("No delivery of %s has become a dead letter.", strings.Join(without, ", "))
			}
		}
		if detail != "" {
			t.in.report(s, e.at, Diagnostic{Summary: "Expected failure did not occur", Detail: detail})
		}
	}
}
