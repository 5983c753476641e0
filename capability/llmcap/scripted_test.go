package llmcap

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// script opens a grant that answers according to rules. Its endpoint does not exist.
func script(t *testing.T, rules, more string) *grant {
	t.Helper()
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, "http://127.0.0.1:1", `,"scripted":`+string(text)+more)
}

// says makes a request with messages, each of a role and a text, and returns the answer's
// content and calls.
func says(t *testing.T, g *grant, messages ...string) string {
	t.Helper()
	var list []string
	for _, m := range messages {
		role, text, _ := strings.Cut(m, ": ")
		message := fmt.Sprintf(`{"role":%q,"content":%q}`, role, text)
		if role == "tool" {
			message = fmt.Sprintf(`{"role":"tool","tool_call_id":"x","content":%q}`, text)
		}
		list = append(list, message)
	}
	r := ask(t, g, `{"messages":[`+strings.Join(list, ",")+`]}`)
	if r.Code != abi.OK {
		return r.Code.String() + ": " + r.Text
	}
	var a struct {
		Message      message
		FinishReason string `json:"finish_reason"`
	}
	if err := json.Unmarshal(r.Payload, &a); err != nil {
		t.Fatal(err)
	}
	out := a.FinishReason + ": " + *a.Message.Content
	for _, c := range a.Message.ToolCalls {
		out += fmt.Sprintf(" %s=%s(%s)", c.ID, c.Function.Name, c.Function.Arguments)
	}
	return out
}

func TestScriptedRules(t *testing.T) {
	g := script(t, `[
		{"when": ["^user: hello"], "say": "first"},
		{"when": ["^user: hello you"], "say": "never, because the first rule comes before"},
		{"when": ["^system: You (?P<who>\\w+)", "^user: (?P<what>.*)!$"], "say": "${who} hears ${what}, ${unknown}"},
		{"when": ["^user: a (?P<n>\\d+)", "^user: b (?P<n>\\d+)"], "say": "the later group counts: ${n}"},
		{"when": ["^user: (?P<q>call .*)", "^tool: (?P<r>.*)"], "say": "${q} gave ${r}"},
		{"when": ["^user: call (?P<f>\\w+) (?P<x>.*)"], "say": "calling", "call": [{"name": "group_${f}", "arguments": {"x": "<${x}>", "deep": {"list": ["${x}", 7, 12345678901234567890, true, null]}}}, {"name": "wait"}]},
		{"when": ["(?s)^user: many.lines$"], "say": "two lines"}
	]`, "")
	for _, tt := range []struct {
		messages []string
		want     string
	}{
		{[]string{"user: hello you"}, "stop: first"},
		{[]string{"system: You lead", "user: hello"}, "stop: first"},
		{[]string{"system: You lead", "user: frogs!"}, "stop: lead hears frogs, ${unknown}"},
		{[]string{"system: You follow", "user: frogs!"}, "stop: follow hears frogs, ${unknown}"},
		{[]string{"user: a 1", "user: a 2", "assistant: ok", "user: b 3"}, "stop: the later group counts: 3"},
		{[]string{"user: call one 1", "user: call two 2", "tool: done"}, "stop: call two 2 gave done"}, // the latest that matches
		{[]string{"user: call status a\"b"}, `tool_calls: calling call_1_1=group_status({"deep":{"list":["a\"b",7,12345678901234567890,true,null]},"x":"<a\"b>"}) call_1_2=wait({})`},
		{[]string{"assistant: x", "user: call status y"}, `tool_calls: calling call_2_1=group_status({"deep":{"list":["y",7,12345678901234567890,true,null]},"x":"<y>"}) call_2_2=wait({})`},
		{[]string{"user: many\nlines"}, "stop: two lines"},
		// The last pattern must match the last message, and earlier patterns must match
		// earlier messages.
		{[]string{"user: hello", "user: something else"}, `not_found: llm: no rule of scripted matches the last message, "user: something else"; add one`},
		{[]string{"user: b 3"}, `not_found: llm: no rule of scripted matches the last message, "user: b 3"; add one`},
		{[]string{"system: hello"}, `not_found: llm: no rule of scripted matches the last message, "system: hello"; add one`},
	} {
		if got := says(t, g, tt.messages...); got != tt.want {
			t.Errorf("%q gives\n%s\nwant\n%s", tt.messages, got, tt.want)
		}
	}
}

// TestScriptedDependsOnTheRequestAlone proves that creatures that share a grant do not use up
// each other's answers, and that a repeated attempt gets the same one.
func TestScriptedDependsOnTheRequestAlone(t *testing.T) {
	g := script(t, `[{"when": ["^user: x"], "say": "y", "call": [{"name": "wait"}]}]`, "")
	r := capability.Request{Body: []byte(`{"messages":[{"role":"user","content":"x"}]}`)}
	first := g.Do(t.Context(), capability.Call{Request: r, Key: "1", Creature: "a", Attempt: 1})
	for i, creature := range []string{"a", "b", "a"} {
		again := g.Do(t.Context(), capability.Call{Request: r, Key: fmt.Sprint(i), Creature: creature, Attempt: i})
		if again.Code != abi.OK || string(again.Payload) != string(first.Payload) || again.Used[tokens] != first.Used[tokens] {
			t.Errorf("%s gets %s, not %s", creature, again.Payload, first.Payload)
		}
	}
	if first.Used[tokens] == 0 || first.Used[tokens] > g.Forecast(r)[tokens] {
		t.Errorf("it has used %v of %v", first.Used, g.Forecast(r))
	}
}

// TestScriptedSendsNothing proves that nothing is sent outside, even if no rule answers a
// request, and that the bounds hold.
func TestScriptedSendsNothing(t *testing.T) {
	g := script(t, `[{"when": ["^user: x"], "say": "`+strings.Repeat("long ", 1000)+`"}]`, `,"max_response":1000`)
	if r := ask(t, g, `{"messages":[{"role":"user","content":"x"}]}`); r.Code != abi.TooLarge || len(r.Payload) > 0 {
		t.Errorf("a long answer gives %s %q", r.Code, r.Text)
	}
	if r := ask(t, g, `{"model":"other","messages":[{"role":"user","content":"x"}]}`); r.Code != abi.Denied {
		t.Errorf("another model gives %s %q", r.Code, r.Text)
	}
	if w := g.Warnings(); len(w) > 0 {
		t.Errorf("it warns of %v", w)
	}
	if a := strings.Join(g.Allows(), "; "); !strings.Contains(a, "scripted") || strings.Contains(a, "127.0.0.1") {
		t.Errorf("it allows %q", a)
	}
}

func TestWrongScripts(t *testing.T) {
	rule := `{"when": ["^user: x"], "say": "y"}`
	for rules, want := range map[string]string{
		`{}`: "scripted cannot be read", `[`: "scripted cannot be read", `"x"`: "scripted cannot be read",
		`[]`: "must be a list of 1 to 1000 rules", `null`: "must be a list of 1 to 1000 rules", ` `: "scripted cannot be read",
		`[` + rule + `] [`: "must be a list of 1 to 1000 rules",
		`[` + strings.Repeat(rule+",", 1000) + rule + `]`:   "must be a list of 1 to 1000 rules",
		`[` + rule + `, {"say": "y"}]`:                      "rule 2 of scripted has no when",
		`[{"when": [], "say": "y"}]`:                        "rule 1 of scripted has no when",
		`[{"when": ["x"]}]`:                                 "rule 1 of scripted has no when, or neither say nor call",
		`[{"when": ["x"], "call": []}]`:                     "rule 1 of scripted has no when, or neither say nor call",
		`[{"when": ["x"], "call": [{"arguments": {}}]}]`:    "rule 1 of scripted has a call without a name",
		`[{"when": ["("], "say": "y"}]`:                     "rule 1 of scripted has a pattern that cannot be read",
		`[{"when": ["(?!x)"], "say": "y"}]`:                 "rule 1 of scripted has a pattern that cannot be read",
		`[{"when": "x", "say": "y"}]`:                       "scripted cannot be read",
		`[{"when": ["x"], "says": "y"}]`:                    `unknown field "says"`,
		`[{"when": ["x"], "call": [{"nam": "wait"}]}]`:      `unknown field "nam"`,
		`[{"when": ["x"], "call": [{"arguments": "all"}]}]`: "scripted cannot be read",
	} {
		text, err := json.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New().Open(json.RawMessage(`{"endpoint":"http://127.0.0.1/v1","models":["m"],"scripted":` + string(text) + `}`))
		var e *abi.Error
		if !errors.As(err, &e) || e.Code != abi.InvalidArgument || !strings.Contains(e.Message, want) || e.Remedy == "" {
			t.Errorf("%.60s gives %v, want %q", rules, err, want)
		}
	}
	// An empty text counts as none.
	g, err := New().Open(json.RawMessage(`{"endpoint":"http://127.0.0.1/v1","models":["m"],"scripted":""}`))
	if err != nil || g.(*grant).rules != nil {
		t.Errorf("an empty script gives %v", err)
	}
}
