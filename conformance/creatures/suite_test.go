package creatures_test

import (
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
	"picky": `{"want": "tea"}`,
	"js":    `{"script": "export default { message(turn) { turn.state.set(\"n\", (turn.state.get(\"n\") ?? 0) + 1); turn.send(\"out\", turn.payload); }, request(turn) { turn.reply(turn.self); } };"}`,
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
			wantPassed(t, h, &creatures.Subject{Name: file, Wasm: wasm, Config: configs[name]})
		})
	}
}
