package creatures_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/conformance/creatures"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/internal/guesttools"
)

func readModule(t *testing.T, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func TestModulesAreCurrent(t *testing.T) {
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		guesttools.Missing(t, "wat2wasm is not installed (Debian: wabt)")
	}
	sources, err := filepath.Glob("testdata/*.wat")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	for _, source := range sources {
		target := filepath.Join(t.TempDir(), "module.wasm")
		if out, err := exec.Command("wat2wasm", source, "-o", target).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, out)
		}
		want, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		if got := readModule(t, strings.TrimSuffix(filepath.Base(source), ".wat")); !bytes.Equal(got, want) {
			t.Errorf("%s is newer than its module: run wat2wasm", source)
		}
	}
}

// caught says which check must catch each mutant: a creature that breaks one rule.
var caught = map[string]string{
	"mutant_no_marker":              "creature/contract",
	"mutant_silent":                 "creature/starts",
	"mutant_refuses_kinds":          "creature/unknown-kinds",
	"mutant_remembers":              "creature/warm-is-fresh",
	"mutant_expects_text":           "creature/any-bytes",
	"mutant_waits":                  "creature/still-clock",
	"mutant_probes_limits":          "creature/other-limits",
	"mutant_traps_on_configuration": "creature/bad-configuration",
	"mutant_stops_badly":            "creature/start-reads-only",
	"mutant_spins_in_timers":        "creature/still-clock",
	"mutant_traps_at_start":         "creature/start-reads-only",
}

// A creature with a fast timer conforms: the suite fires only so many.
func TestFastTimersConform(t *testing.T) {
	wantPassed(t, newHost(t), &creatures.Subject{Name: "ticking", Wasm: readModule(t, "ticking")})
	cases, err := creatures.ParseCases("cases.yaml", []byte("- {case: an hour, steps: [{start: '', expect: ['timer tick in 5ms, every 5ms']}, {advance: 1h}]}"))
	if err != nil {
		t.Fatal(err)
	}
	s := &creatures.Subject{Name: "ticking", Wasm: readModule(t, "ticking"), Cases: cases}
	results, err := creatures.Run(t.Context(), newHost(t), s, func(check string) bool { return check == creatures.CasesCheck+"/an hour" })
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 1 || results[0].Verdict != report.Inconclusive || results[0].Reason != report.BoundReached {
		t.Errorf("a case with more timers than the suite fires: %+v", results)
	}
}

func TestEveryCheckCatchesItsMutant(t *testing.T) {
	h := newHost(t)
	mutants, err := filepath.Glob("testdata/mutant_*.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) != len(caught) {
		t.Errorf("%d mutants, and %d are listed", len(mutants), len(caught))
	}
	tested := map[string]bool{}
	for mutant, check := range caught {
		tested[check] = true
		results, err := creatures.Run(t.Context(), h, &creatures.Subject{Name: mutant, Wasm: readModule(t, mutant)}, func(name string) bool { return name == check })
		if err != nil {
			t.Fatal(err)
		}
		if len(results) != 1 || results[0].Verdict != report.Failed {
			t.Errorf("%s is not caught by %s: %+v", mutant, check, results)
		}
	}
	for _, check := range creatures.Names() {
		if !tested[check] {
			t.Errorf("no mutant is caught by %s", check)
		}
	}
}

func TestConformingCreatureWithCases(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := creatures.ParseCases("cases.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	s := &creatures.Subject{Name: "conforming", Wasm: readModule(t, "conforming"), Cases: cases}
	wantPassed(t, h, s)

	wrong, err := creatures.ParseCases("cases.yaml", bytes.Replace(text, []byte(`'send a "x"', `), nil, 1))
	if err != nil {
		t.Fatal(err)
	}
	s.Cases = wrong
	results, err := creatures.Run(t.Context(), h, s, func(check string) bool { return strings.HasPrefix(check, creatures.CasesCheck) })
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || results[0].Verdict != report.Passed || results[1].Verdict != report.Failed || !strings.Contains(results[1].Seen[0], "cases.yaml:26: effect 1") {
		t.Errorf("a missing effect is not reported: %+v", results)
	}
}

// Modules of other ecosystems are refused with all that they lack, by name.
func TestForeignModulesAreRefused(t *testing.T) {
	h := newHost(t)
	for name, lacks := range map[string][]string{
		"foreign_extism":     {"extism:host/env", "input_length", "terrarium_abi_v1", "creature_handle"},
		"foreign_wapc":       {"wapc", "__guest_request", "__host_call", "terrarium_abi_v1", "creature_handle"},
		"foreign_proxy_wasm": {"proxy_log", "proxy_get_buffer_bytes", "terrarium_abi_v1", "creature_handle"},
	} {
		results, err := creatures.Run(t.Context(), h, &creatures.Subject{Name: name, Wasm: readModule(t, name)}, all)
		if err != nil {
			t.Fatal(err)
		}
		seen := strings.Join(results[0].Seen, "\n")
		if results[0].Verdict != report.Failed {
			t.Errorf("%s: %s", name, results[0].Verdict)
		}
		for _, word := range lacks {
			if !strings.Contains(seen, word) {
				t.Errorf("%s is not told that %s is missing or unknown:\n%s", name, word, seen)
			}
		}
		for _, r := range results[1:] {
			if r.Verdict != report.Inconclusive || r.Reason != report.Unreached {
				t.Errorf("%s: %s is %s (%s)", name, r.Check, r.Verdict, r.Reason)
			}
		}
	}
}

func TestMistakesInCases(t *testing.T) {
	if _, err := creatures.ParseCases("two.yaml", []byte("[]\n---\n- case: lost\n")); err == nil || !strings.Contains(err.Error(), "second document") {
		t.Errorf("a second document is not noticed: %v", err)
	}
	text, err := os.ReadFile("testdata/five_mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = creatures.ParseCases("five_mistakes.yaml", text)
	if err == nil {
		t.Fatal("the mistakes are not noticed")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, want := range []string{"five_mistakes.yaml:2: there is no \"sned\"", "five_mistakes.yaml:6: expect: ", "five_mistakes.yaml:7: there is no \"mesage\"", "five_mistakes.yaml:8: a step needs one of", "five_mistakes.yaml:11: fails: there is no code"} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("no line begins with %s:\n%s", want, err)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "no list": "case: x", "no steps": "- case: x", "no name": "- steps: [{message: x}]", "a number": "- 7",
		"twice": "- {case: x, steps: [{message: x}]}\n- {case: x, steps: [{message: x}]}", "tabs": "\t- x", "bad advance": "- {case: x, steps: [{advance: soon}]}",
		"alias of a timer": "- {case: x, steps: [{timer: t, on: in}]}", "a field twice": "- {case: x, case: y, steps: [{message: x}]}",
		"an anchor without end": "- &a [*a]", "a tool with two answers": "- {case: x, tools: {t: 1}, refuses: {t: denied}, steps: [{message: x}]}",
		"an unknown refusal": "- {case: x, steps: [{message: x, refuses: {t: never}}]}", "a result that is no JSON": "- {case: x, tools: {t: .nan}, steps: [{message: x}]}",
		"an advance with peers": "- {case: x, steps: [{advance: 1s, peers: [a]}]}",
	} {
		if _, err := creatures.ParseCases("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "x.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseCases(f *testing.F) {
	for _, name := range []string{"cases.yaml", "five_mistakes.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cases, err := creatures.ParseCases("x.yaml", text)
		if err == nil && slices.Contains(cases, nil) {
			t.Error("a case is nil")
		}
	})
}
