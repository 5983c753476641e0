package creatures_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/conformance/creatures"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/guesttools"
	"github.com/seed47132306/terrarium/plugins"
)

func newHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return h
}

func all(string) bool { return true }

func wantPassed(t *testing.T, h *host.Host, s *creatures.Subject) {
	t.Helper()
	results, err := creatures.Run(t.Context(), h, s, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Verdict != report.Passed {
			t.Errorf("%s: %s %s %q", r.Check, r.Verdict, r.Reason, r.Seen)
		}
	}
	if len(results) != len(creatures.Checks())+len(s.Cases) {
		t.Errorf("%d results", len(results))
	}
}

// configs are configurations for creatures that do not start with what their schema says.
var configs = map[string]string{
	"picky":  `{"want": "tea"}`,
	"agent":  `{"task": "listen", "llm": "main"}`,
	"select": `{"to": ["out"]}`,
	"js":     `{"script": "export default { message(turn) { turn.state.set(\"n\", (turn.state.get(\"n\") ?? 0) + 1); turn.send(\"out\", turn.payload); }, request(turn) { turn.reply(turn.self); } };"}`,
}

func TestBuiltinCreaturesConform(t *testing.T) {
	h := newHost(t)
	for _, name := range plugins.Names() {
		t.Run(name, func(t *testing.T) {
			wasm, err := plugins.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			wantPassed(t, h, &creatures.Subject{Name: "builtin:" + name, Wasm: wasm, Config: configs[name]})
		})
	}
}

// shippedCases returns the cases of a shipped or reference creature.
func shippedCases(t *testing.T, name string) []*creatures.Case {
	t.Helper()
	text, err := os.ReadFile("testdata/shipped/" + name + ".yaml")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	cases, err := creatures.ParseCases(name+".yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// Members and channels come and go, and group tools are called: by a shipped creature and
// by a script.
func TestShippedCreaturesWithCases(t *testing.T) {
	script, err := os.ReadFile("../../sdk/js/examples/scout.js")
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]string{"script": string(script)})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	for name, subject := range map[string]creatures.Subject{"foreman": {Name: "foreman"}, "scout": {Name: "js", Config: string(config)}} {
		if subject.Wasm, err = plugins.Get(subject.Name); err != nil {
			t.Fatal(err)
		}
		if subject.Cases = shippedCases(t, name); len(subject.Cases) == 0 {
			t.Errorf("%s has no cases", name)
		}
		results, err := creatures.Run(t.Context(), h, &subject, func(check string) bool { return strings.HasPrefix(check, creatures.CasesCheck) })
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Verdict != report.Passed {
				t.Errorf("%s: %s %s %q", r.Check, r.Verdict, r.Reason, r.Seen)
			}
		}
	}
}

// TestKitsConform runs the suite over the reference creatures of the kits that are built.
func TestKitsConform(t *testing.T) {
	h := newHost(t)
	files, err := filepath.Glob("../../bin/kits/*/*.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if guesttools.Use(t); len(files) == 0 {
		guesttools.Missing(t, "no reference creatures are built; make kits builds them")
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.ToSlash(file), "../../bin/kits/"), func(t *testing.T) {
			wasm, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".wasm")
			if compiler := filepath.Base(filepath.Dir(file)); name != "shout" && (strings.HasPrefix(compiler, "go-") || strings.HasPrefix(compiler, "javascript-")) {
				t.Skip("each has a runtime that takes seconds to compile; shout stands for them")
			}
			wantPassed(t, h, &creatures.Subject{Name: file, Wasm: wasm, Config: configs[name], Cases: shippedCases(t, name)})
		})
	}
}
