package recipes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Test is a test block of a recipe: steps, and conditions on the outcome. It can be run
// once.
type Test struct {
	Name  string
	Where string // its place: "team.hcl:12"
	// Recipe is loaded with the variables of the test, and contains its mocks. It is nil if
	// loading failed as the test expects: then there is nothing to run.
	Recipe  *Recipe
	Steps   []TestStep
	Timeout time.Duration // for its steps, once the creatures have started

	place    string // of its sub-recipe; empty for the outermost recipe
	index    int    // among the tests of its recipe
	in       *testReader
	block    *hcl.Block
	checks   []*hcl.Block
	mocks    []mock
	expected []expectation
	failed   map[string]bool // addresses of the variables and checks that failed
}

// TestStep moves the clock, answers what waits for approval, or sends a message.
type TestStep struct {
	Advance time.Duration // 0: the step does not move the clock
	Decide  *TestDecision // nil: the step answers nothing
	Send    TestSend
}

// TestDecision answers questions of policies.
type TestDecision struct {
	Approve bool
	Policy  string // its name; empty: any
	Because string
	Where   string // its place: "team.hcl:12"
}

// TestSend is a message that a test sends when the engine is idle.
type TestSend struct {
	Channel string // its address
	Payload []byte
	Headers map[string]string
}

// The bounds of a test's time.
const (
	DefaultTestTimeout = 10 * time.Second
	MaxTestTimeout     = 10 * time.Minute
	// MaxTestAdvance bounds how far a test can move its clock.
	MaxTestAdvance = 100 * 365 * 24 * time.Hour
)

// LoadTests loads the recipe at path once for each of its tests, in the order of the
// recipe. If any test has an error, it returns no tests. A test of a sub-recipe runs in
// the whole recipe, once for each instance of the sub-recipe, and its name starts with
// the address of the instance.
func LoadTests(ctx context.Context, path string, o Options) ([]*Test, Diagnostics) {
	o = o.withDefaults()
	o.Tests = true
	first, d := openLoader(path, o)
	if d != nil {
		return nil, Diagnostics{*d}
	}
	defer first.close()
	first.evaluate(ctx, path) // finds the sub-recipes; errors are reported below
	var tests []*Test
	var diags Diagnostics
	for _, l := range first.withSubRecipes() {
		for i := range l.tests {
			t, found := loadTest(ctx, path, o, &Test{place: l.place, index: i, failed: map[string]bool{}})
			diags = append(diags, found...)
			tests = append(tests, t)
		}
	}
	if len(tests) == 0 {
		diags = first.diags
	}
	if diags = diags.tidy(); diags.HasErrors() {
		return nil, diags
	}
	return tests, diags
}

// loadTest loads a recipe for one of its tests.
func loadTest(ctx context.Context, path string, o Options, t *Test) (*Test, Diagnostics) {
	l, d := openLoader(path, o)
	if d != nil {
		return nil, Diagnostics{*d}
	}
	defer l.close()
	l.shared.underTest = t
	l.beginTest()
	t.Recipe = l.evaluate(ctx, path)
	if t.in == nil && !l.diags.HasErrors() {
		return nil, Diagnostics{{Severity: Error, Summary: "Recipe has changed", Range: Range{File: path}, Detail: "It was modified while it was being read."}}
	}
	l.diags = t.withoutExpected(l.diags)
	if t.Recipe != nil {
		l.diags = append(l.diags, t.replaceMocked(o.Builtins)...)
	}
	return t, l.diags
}

// beginTest selects the test that the recipe is loaded for, if this recipe declares it.
func (l *loader) beginTest() {
	t := l.shared.underTest
	if t == nil || t.place != l.place || t.index >= len(l.tests) {
		return
	}
	b := l.tests[t.index]
	t.in, t.block, t.Name, t.Where = &testReader{l.evaluator, nil}, b, b.Labels[0], l.where(b.DefRange)
	if l.place != "" {
		t.Name = l.place + ": " + t.Name
	}
	l.underTest = t
}

// testReader reads the tests of one recipe and checks their outcome.
type testReader struct {
	*evaluator
	deployment *deploy.Deployment // nil once the recipe is loaded
}

// checkTests checks the tests of a recipe and reads the selected one, if any. If only is
// true, the recipe is loaded for one test.
func (ts *testReader) checkTests(atHand *Test, only bool) {
	names := map[string]hcl.Range{}
	for _, b := range ts.tests {
		t := testTitle(b)
		if first, twice := names[b.Labels[0]]; twice {
			ts.duplicate(t, "A "+t, b.DefRange, first)
		}
		names[b.Labels[0]] = b.DefRange
		ts.checkDescription(scope{title: t}, ts.testBody(b))
		ts.testVariables(b)
		ts.checkTestExpressions(t, ts.testBody(b).Blocks)
	}
	if atHand != nil {
		ts.readTest(atHand, ts.testBody(atHand.block))
	}
	if only {
		return
	}
	for _, b := range ts.tests {
		// With its own variables, its messages are not known here.
		if c := ts.testBody(b); c.attr("variables") == nil {
			ts.readTest(&Test{block: b}, c)
		}
	}
}

// checkTestExpressions looks up all references in blocks. Only assertions can refer to
// result.
func (ts *testReader) checkTestExpressions(t string, blocks hcl.Blocks) {
	for _, b := range blocks {
		c := ts.blockContent(t, b)
		for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
			if b.Type == "assert" {
				ts.checkTestExpression(testScope(t), c.Attributes[name].Expr)
			} else {
				ts.lookUp(scope{title: t}, c.Attributes[name].Expr.Variables())
			}
		}
		ts.checkTestExpressions(t, c.Blocks)
	}
}

// testScope is the scope of tests, which can refer to result. Its value is unknown before
// the test has run.
func testScope(t string) scope {
	return scope{title: t, extra: map[string]cty.Value{"result": cty.DynamicVal}}
}

// checkTestExpression looks up references, including those to results.
func (ts *testReader) checkTestExpression(s scope, expr hcl.Expression) {
	ts.lookUp(s, expr.Variables())
	for _, t := range expr.Variables() {
		if t.RootName() == "result" && len(t) > 1 {
			ts.checkResult(s, t)
		}
	}
}

// resultNames are the attributes of a result.
var resultNames = []string{"channel", "creature", "approvals", "dead_letters", "denials", "recipe"}

// checkResult reports a reference to a result that does not exist.
func (ts *testReader) checkResult(s scope, t hcl.Traversal) {
	kind := stepName(t[1])
	if !slices.Contains(resultNames, kind) {
		ts.report(s, t.SourceRange(), Diagnostic{Summary: "Unknown reference", Detail: fmt.Sprintf("A result has no %q.", kind),
			Suggestion: nearest(kind, resultNames), Remedy: fmt.Sprintf("Its attributes are %s.", enumerate(resultNames))})
		return
	}
	if len(t) < 3 || kindOf[kind] == "" || ts.broken {
		return
	}
	name := stepName(t[2])
	if ts.decls[kind][name] != nil || kind == "channel" && name == reportName && ts.root != nil {
		return
	}
	ts.report(s, t.SourceRange(), Diagnostic{Summary: "Unknown " + kind, Detail: fmt.Sprintf("No %s named %q is declared.", kind, name),
		Suggestion: nearest(name, ts.declared(kind))})
}

// Check evaluates the assertions of the test, and looks for the failures that it expects.
// It returns nothing if all of them are true. The assertions of a test without a Recipe
// are left out, because nothing has run.
func (t *Test) Check(o TestOutcome) Diagnostics {
	l := t.in
	l.diags = nil
	t.checkExpected(&o)
	if t.Recipe == nil {
		return l.diags.tidy()
	}
	s := scope{title: testTitle(t.block), extra: map[string]cty.Value{"result": l.result(&o)}}
	for _, b := range t.checks {
		c := l.blockContent(s.title, b)
		a := c.attr("condition")
		v, ok := l.eval(s.secretly(), a.Expr)
		if !ok {
			continue
		}
		secret := v.ContainsMarked()
		v, _ = v.UnmarkDeep()
		holds, err := convert.Convert(v, cty.Bool)
		switch {
		case err != nil || holds.IsNull():
			l.fault(s, a.Expr, "Wrong type", fmt.Sprintf("A condition must be true or false; this is %s.", describeUnless(secret, v)), "")
		case !holds.True():
			l.fault(s, a.Expr, "Assertion failed", l.assertMessage(s, c), "")
		}
	}
	return l.diags.tidy()
}

func (ts *testReader) assertMessage(s scope, c blockBody) string {
	a := c.attr("error_message")
	if a == nil {
		return "The condition does not hold."
	}
	v, ok := ts.eval(s.secretly(), a.Expr)
	if v.ContainsMarked() {
		return "The message is sensitive, so it is not shown."
	}
	text, err := convert.Convert(v, cty.String)
	if !ok || err != nil || text.IsNull() {
		return "The condition does not hold."
	}
	return text.AsString()
}
