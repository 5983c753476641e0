package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// operators is a world whose tools record their calls: good returns its
// arguments, and bad is refused.
func operators(config map[string]any) *world {
	return &world{
		channels: []string{"out"}, config: config, features: true,
		tool: func(t *turn, name, args string) (string, abi.Code) {
			t.effects = append(t.effects, fmt.Sprintf("tool %s %s", name, args))
			if name == "bad" {
				return "", t.fail(abi.NotPrivileged, "no \"tool\" does that")
			}
			return `{"args":` + args + `}`, abi.OK
		},
	}
}

const refusedBad = `{"ok":false,"code":"not_privileged","error":"no \"tool\" does that"}`

func TestOperatorAnswers(t *testing.T) {
	m := builtin(t, "operator")
	for _, c := range []struct {
		name, message, answer string
		calls                 []string
	}{
		{"one call", `{"tool": "a", "args": {"x": [1, "é"]}}`, `{"results":[{"ok":true,"result":{"args":{"x": [1, "é"]}}}]}`, []string{`a {"x": [1, "é"]}`}},
		{"with an id", `{"id": {"n": 1}, "tool": "bad", "args": {}}`, `{"id":{"n": 1},"results":[` + refusedBad + `]}`, []string{"bad {}"}},
		{"a list", `{"id":"x","calls":[{"tool":"a","args":1},{"tool":"b","args":2}]}`, `{"id":"x","results":[{"ok":true,"result":{"args":1}},{"ok":true,"result":{"args":2}}]}`, []string{"a 1", "b 2"}},
		{"none", `{"calls":[]}`, `{"results":[]}`, nil},
		{"stops", `{"calls":[{"tool":"bad","args":1},{"tool":"b","args":2}]}`, `{"results":[` + refusedBad + `]}`, []string{"bad 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []effect
			for _, call := range c.calls {
				want = append(want, "tool "+call)
			}
			message := delivery{payload: c.message, headers: headers}
			equal(t, run(t, m, operators(nil), message), append(want[:len(want):len(want)], sent("out", c.answer, ""))...)
			message.kind = abi.KindRequest
			equal(t, run(t, m, operators(nil), message), append(want, fmt.Sprintf("reply %q", c.answer))...)
		})
	}
}

func TestOperatorGoesOnAfterARefusal(t *testing.T) {
	m := builtin(t, "operator")
	w := operators(map[string]any{"stop_on_error": false})
	got := run(t, m, w, delivery{payload: `{"calls":[{"tool":"bad","args":1},{"tool":"b","args":2}]}`})
	equal(t, got, "tool bad 1", "tool b 2", sent("out", `{"results":[`+refusedBad+`,{"ok":true,"result":{"args":2}}]}`, ""))
}

func TestOperatorIsAtomicIfToldSo(t *testing.T) {
	m := builtin(t, "operator")
	w := operators(map[string]any{"atomic": true, "stop_on_error": false})
	for _, r := range play(t, m, w, false, messages(`{"calls":[{"tool":"a","args":1},{"tool":"bad","args":2},{"tool":"c","args":3}]}`)) {
		if abi.CodeOf(r.err) != abi.NotPrivileged || len(r.effects) != 0 {
			t.Errorf("the turn ended with %v and %v", r.err, r.effects)
		}
		if logs := strings.Join(r.logs, "\n"); !strings.Contains(logs, refusedBad) {
			t.Errorf("the log does not tell of the refusal: %s", logs)
		}
	}
	equal(t, run(t, m, w, messages(`{"tool":"a","args":1}`)...), "tool a 1", sent("out", `{"results":[{"ok":true,"result":{"args":1}}]}`, ""))
}

// A message that is not a call gets an answer, and no tool is called.
func TestOperatorOnNonsense(t *testing.T) {
	m := builtin(t, "operator")
	for _, payload := range append([]string{
		`[]`, `[{"tool":"a"}]`, `{}`, `{"tool":7}`, `{"calls":{}}`, `{"calls":null}`, `{"calls":"a"}`, `{"calls":[7]}`, `{"calls":[{}]}`,
		`{"calls":[{"tool":"a"}`, `{"tool":"a"} {}`, `{"tool":"a","args":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	}, awkward...) {
		got := run(t, m, operators(nil), delivery{payload: payload})
		if len(got) != 1 || !strings.Contains(got[0], "invalid_argument") {
			t.Errorf("%.100q: %v", payload, got)
		}
	}
}

func TestOperatorMistakes(t *testing.T) {
	m := builtin(t, "operator")
	refuses(t, m, map[string]any{"atomic": "yes"}, "config atomic: it is true or false")
	refuses(t, m, map[string]any{"stop_on_error": 1}, "config stop_on_error: it is true or false")
	refuses(t, m, map[string]any{"atomc": true}, `there is no attribute "atomc"; known are: stop_on_error atomic`)

	turn := (&world{}).turn(delivery{}, true)
	if i, err := m.Instantiate(context.Background(), &limits, turn); abi.CodeOf(err) != abi.Unsupported {
		t.Errorf("a host without tools: %v, %v", i, err)
	}
}
