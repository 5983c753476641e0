package recipes

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

const maxTestSteps = 100_000

func (ds *declarations) testBody(b *hcl.Block) blockBody { return ds.blockContent(testTitle(b), b) }

func testTitle(b *hcl.Block) string { return title(b.Type, b.Labels) }

// testInputs reads the variables of the selected test, which take precedence over all
// others.
func (l *loader) testInputs() {
	if l.underTest == nil {
		return
	}
	b := l.underTest.block
	for _, p := range l.testVariables(b) {
		if name, ok := l.eval(scope{title: testTitle(b), static: "the variables of a test"}, p.Key); ok && !name.IsNull() && name.Type() == cty.String {
			name, _ = name.Unmark()
			l.inputs[name.AsString()] = input{from: testTitle(b), expr: p.Value, static: "the variables of a test"}
		}
	}
}

func (ds *declarations) testVariables(b *hcl.Block) []hcl.KeyValuePair {
	a := ds.testBody(b).attr("variables")
	if a == nil {
		return nil
	}
	pairs, diags := hcl.ExprMap(a.Expr)
	for _, h := range diags {
		ds.hcl(testTitle(b), h)
	}
	return pairs
}

// readTest reads a test.
func (ts *testReader) readTest(t *Test, c blockBody) {
	s := scope{title: testTitle(t.block)}
	t.Timeout = DefaultTestTimeout
	if d, ok := ts.durationAttr(s, c, "timeout"); ok {
		if t.Timeout = d; d > MaxTestTimeout {
			ts.fault(s, c.attr("timeout").Expr, "Timeout too long", fmt.Sprintf("A test may take at most %v.", MaxTestTimeout), "")
		}
	}
	ts.readExpected(s, t, c)
	ts.readBlocks(s, t, c)
	if len(t.checks) == 0 && c.attr("expect_failures") == nil {
		ts.report(s, t.block.DefRange, Diagnostic{Summary: "Nothing is asserted", Detail: "A test without an assert block and without expect_failures cannot fail.",
			Remedy: "Add assert { condition = length(result.dead_letters) == 0 }."})
	}
	if len(t.Steps) > maxTestSteps {
		ts.report(s, t.block.DefRange, Diagnostic{Summary: "Too many steps", Detail: fmt.Sprintf("A test takes at most %d steps.", maxTestSteps)})
	}
}

// readBlocks reads the blocks of a test, in their order.
func (ts *testReader) readBlocks(s scope, t *Test, c blockBody) {
	blocks, left := slices.Clone(c.Blocks), MaxTestAdvance
	// JSON has no order across block types, so sort by position.
	slices.SortStableFunc(blocks, func(a, b *hcl.Block) int { return a.DefRange.Start.Byte - b.DefRange.Start.Byte })
	for _, b := range blocks {
		switch b.Type {
		case "assert":
			t.checks = append(t.checks, b)
		case "mock":
			for _, m := range ts.readMock(s, b) {
				if slices.ContainsFunc(t.mocks, func(other mock) bool { return other.address == m.address }) {
					ts.report(s, b.DefRange, Diagnostic{Summary: "Mocked twice", Detail: m.address + " has a mock already.", Remedy: "Write all answers in one mock."})
				}
				t.mocks = append(t.mocks, m)
			}
		case "advance":
			if d, ok := ts.durationAttr(s, ts.blockContent(s.title, b), "by"); ok {
				if left -= min(d, MaxTestAdvance+1); left < 0 {
					ts.report(s, b.DefRange, Diagnostic{Summary: "Clock moved too far", Detail: "A test can move its clock by at most 100 years."})
					return
				}
				t.Steps = append(t.Steps, TestStep{Advance: d})
			}
		case "decide":
			c := ts.blockContent(s.title, b)
			d := &TestDecision{Where: ts.where(b.DefRange)}
			decision, ok := ts.choiceAttr(s, c, "decision")
			d.Approve = decision == "approve"
			d.Policy, _ = ts.stringAttr(s, c, "policy")
			if d.Because, _ = ts.stringAttr(s, c, "reason"); ok {
				t.Steps = append(t.Steps, TestStep{Decide: d})
			}
		case "send":
			for _, send := range ts.testSend(s, b) {
				t.Steps = append(t.Steps, TestStep{Send: send})
			}
		}
	}
}

// testSend reads a send block: one message, or one for each line.
func (ts *testReader) testSend(s scope, b *hcl.Block) []TestSend {
	c := ts.blockContent(s.title, b)
	a := c.attr("channel")
	if a == nil {
		return nil // which has been reported
	}
	v, ok := ts.eval(s, a.Expr)
	if !ok {
		return nil
	}
	address, ok := refAddress(v, "channel")
	if !ok {
		ts.wrongReference(s, a.Expr, v, "channel")
		return nil
	}
	headers := map[string]string{}
	if v, _, ok := ts.plain(s.secretly(), c, "headers"); ok {
		for name, value := range v.AsValueMap() {
			if !value.IsNull() {
				headers[name] = value.AsString()
			}
		}
	}
	var out []TestSend
	for _, payload := range ts.testPayloads(s, b, c) {
		out = append(out, TestSend{Channel: address, Payload: payload, Headers: headers})
	}
	return out
}

func (ts *testReader) testPayloads(s scope, b *hcl.Block, c blockBody) [][]byte {
	given := 0
	for _, name := range []string{"payload", "json", "lines"} {
		if c.attr(name) != nil {
			given++
		}
	}
	if given != 1 {
		ts.report(s, b.DefRange, Diagnostic{Summary: "One payload expected", Detail: "A send block needs exactly one of payload (a text), json (any value) and lines (a list of texts, one message each).",
			Remedy: `Write for example payload = "hello".`})
		return nil
	}
	s = s.secretly()
	if text, ok := ts.stringAttr(s, c, "payload"); ok {
		return [][]byte{[]byte(text)}
	}
	if a := c.attr("json"); a != nil {
		v, ok := ts.eval(s, a.Expr)
		data, err := jsonOf(v)
		if !ok || err != nil {
			return nil
		}
		return [][]byte{data}
	}
	var out [][]byte
	if v, expr, ok := ts.plain(s, c, "lines"); ok {
		for _, line := range v.AsValueSlice() {
			if line.IsNull() {
				ts.fault(s, expr, "Wrong type", "A line must be a text; this list has a null.", "")
				return nil
			}
			out = append(out, []byte(line.AsString()))
		}
	}
	return out
}
