package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
)

func output(text string) *deploy.OutputEvent {
	return &deploy.OutputEvent{Time: 1_700_000_000_000_000_000, Seed: 7, Output: []byte(text), Source: "writer", Channel: "tasks"}
}

// predicateOf compiles one predicate with a timeout that is enough on a busy machine.
func predicateOf(t testing.TB, source string) deploy.Predicate {
	t.Helper()
	all, faults := NewPredicates([]PredicateSource{{Name: "p", Source: source, File: "team.hcl", Line: 10, Timeout: patience}})
	for _, f := range faults {
		t.Fatal(f)
	}
	return all["p"]
}

func TestPredicates(t *testing.T) {
	for _, c := range []struct{ name, script, output, want string }{
		{"JSON", `output.status === 'done'`, `{"status":"done"}`, "true"},
		{"other JSON", `output.status === 'done'`, `{"status":"busy"}`, "false"},
		{"text", `output.startsWith('done')`, `done: all`, "true"},
		{"a JSON text", `output === 'done'`, `"done"`, "true"},
		{"bytes", `output === null`, "\xff", "true"},
		{"source and channel", `source === 'writer' && channel == 'tasks'`, "", "true"},
		{"a function", `(event) => { return event.output > 3; }`, "4", "true"},
		{"a function of old", "function (e) { return e.output > 3; };\n", "3", "false"},
		{"an object first", `({a: true})[output]`, `"a"`, "true"},
		{"something that is not there", `output.error?.fatal`, `{}`, "false"},
		{"null", `output`, `null`, "false"},
		{"a comment behind it", "output > 3 // of four", "4", "true"},
		{"a semicolon", "output > 3;\n", "4", "true"},
		{"no answer", `output.length`, `done`, "team.hcl:10:1: it returned 4 instead of true or false"},
		{"an object", `output`, `{}`, "team.hcl:10:1: it returned an object instead of true or false"},
		{"exception", "output.a\n  .b", `{}`, "team.hcl:11:4: TypeError: Cannot read property 'b' of undefined"},
		{"exception on the first line", "output.a.b", `{}`, "team.hcl:10:10: TypeError: Cannot read property 'b' of undefined"},
		{"thrown", `(e) => { throw new Error(e.output) }`, `boom`, "team.hcl:10:16: Error: boom"},
		{"too large", `true`, strings.Repeat("x", maxText+1), "team.hcl:10:1: the output is larger than a predicate may read"},
		{"too deep to be JSON for a script", `true`, strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "team.hcl:10:1: the nesting of the JSON is larger than a policy may make it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := predicateOf(t, c.script)
			for range 2 { // the second run uses a used runtime
				holds, err := p.Holds(t.Context(), output(c.output))
				got := fmt.Sprint(holds)
				if err != nil {
					got = err.Error()
				}
				if holds && err != nil || got != c.want && (err == nil || !strings.Contains(got, c.want)) {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

// A predicate that does not end is stopped, and the next one runs.
func TestHostilePredicates(t *testing.T) {
	for name, script := range map[string]string{
		"loop":          `(e) => { for (;;) {} }`,
		"loop in JSON":  `JSON.stringify({get a() { for (;;) {} }}) === ''`,
		"recursion":     `(e) => { const f = () => f(); return f(); }`,
		"amplification": `'x'.repeat(2 ** 30).length > 1`,
		"keeping":       `(globalThis.seen = true)`,
		"changing":      `(Object.prototype.status = 'done')`,
	} {
		t.Run(name, func(t *testing.T) {
			all, faults := NewPredicates([]PredicateSource{
				{Name: "hostile", Source: script, File: "team.hcl", Timeout: 20 * time.Millisecond},
				{Name: "fair", Source: `output.status === 'done'`, File: "team.hcl", Timeout: patience},
			})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			var placed *ScriptError
			if holds, err := all["hostile"].Holds(t.Context(), output("{}")); holds || !errors.As(err, &placed) {
				t.Errorf("it holds: %v, %v", holds, err)
			}
			if holds, err := all["fair"].Holds(t.Context(), output(`{}`)); holds || err != nil {
				t.Errorf("the next one: %v, %v", holds, err)
			}
		})
	}
}

func TestPredicatesThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`output ===`, "team.hcl:10:11: Unexpected end of input"},
		{`1; 2`, "not one expression"},
		{`const done = true`, "not one expression"},
		{``, "not one expression"},
		{`true) || (true`, "team.hcl:10:5: Unexpected token )"},
		{`async () => true`, "cannot wait"},
		{`10n > 3`, "big integers"},
		{`eval('true')`, `"eval" is not defined`},
		{`Promise.resolve(true)`, `"Promise" is not defined`},
		{`outputs.done`, `"outputs" is not defined`},
		{strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), "nest"},
		{strings.Repeat(" ", MaxSourceBytes) + "true", "bytes"},
	} {
		all, faults := NewPredicates([]PredicateSource{{Name: "p", Source: c.script, File: "team.hcl", Line: 10}, {Name: "fine", Source: "true"}})
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) || all != nil {
			t.Errorf("%.40q: %v, want %s", c.script, faults, c.want)
		}
	}
}

// A judgement depends on the event alone: not on the clock, on earlier events or
// on the runtime.
func TestJudgementsRepeat(t *testing.T) {
	p := predicateOf(t, `(e) => { throw [Math.random(), Date.now(), e.output].join() }`)
	_, err := p.Holds(t.Context(), output("x"))
	first := err.Error()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := p.Holds(context.Background(), output("x")); err.Error() != first {
					t.Errorf("got  %s\nwant %s", err, first)
				}
			}
		})
	}
	wg.Wait()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if holds, err := p.Holds(ended, output("x")); holds || !errors.Is(err, context.Canceled) {
		t.Errorf("for a caller that has stopped waiting: %v, %v", holds, err)
	}
}
