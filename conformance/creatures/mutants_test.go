package creatures_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/creatures"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/requirements"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/internal/guesttools"
	"github.com/seed47132306/terrarium/plugins"
)

var update = flag.Bool("update", false, "write the table of mutants again")

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

// mutants are creatures that break rules, and the rules that each is made to break. Most of
// those of the contract are modules that hosts must refuse.
var mutants = []struct {
	module string // "hosts/…": of the suite for hosts; a word after a space: its manifest
	check  string // that must catch it
	rules  []string
}{
	{"bytes", "creature/contract", []string{"ABI-M1"}},
	{"hosts/memory64", "creature/contract", []string{"ABI-M1"}},
	{"hosts/no_memory", "creature/contract", []string{"ABI-M3", "ABI-E1"}},
	{"hosts/two_memories", "creature/contract", []string{"ABI-M3"}},
	{"hosts/imports_global", "creature/contract", []string{"ABI-M3"}},
	{"mutant_no_marker", "creature/contract", []string{"ABI-E1"}},
	{"hosts/handle_typed", "creature/contract", []string{"ABI-E1"}},
	{"hosts/stop_typed", "creature/contract", []string{"ABI-E2"}},
	{"hosts/import_unknown", "creature/contract", []string{"ABI-I1"}},
	{"hosts/import_mistyped", "creature/contract", []string{"ABI-I1"}},
	{"hosts/wasi_mistyped", "creature/contract", []string{"ABI-I3"}},
	{"hosts/abort_mistyped", "creature/contract", []string{"ABI-I4"}},
	{"hosts/import_foreign", "creature/contract", []string{"ABI-I5"}},
	{"hosts/plain {} {}", "creature/contract", []string{"ABI-N1"}},
	{`hosts/plain {"abi":[2]}`, "creature/contract", []string{"ABI-N2"}},
	{"hosts/plain [1]", "creature/contract", []string{"ABI-N4"}},
	{"mutant_silent", "creature/starts", []string{"ABI-P5"}},
	{"mutant_traps_on_configuration", "creature/bad-configuration", []string{"ABI-P5", "ABI-C3"}},
	{"mutant_refuses_kinds", "creature/unknown-kinds", []string{"ABI-T5", "ABI-V2"}},
	{"mutant_remembers", "creature/warm-is-fresh", []string{"ABI-P7", "ABI-P6"}},
	{"mutant_expects_text", "creature/any-bytes", []string{"ABI-R6"}},
	{"mutant_expects_payload", "creature/any-bytes", []string{"ABI-R7"}},
	{"mutant_waits", "creature/still-clock", []string{"ABI-F15", "ABI-T7"}},
	{"mutant_spins_in_timers", "creature/still-clock", []string{"ABI-T7"}},
	{"mutant_probes_limits", "creature/other-limits", []string{"ABI-L6"}},
	{"mutant_stops_badly", "creature/start-reads-only", []string{"ABI-P3"}},
	{"mutant_traps_at_start", "creature/start-reads-only", []string{"ABI-P3"}},
}

// mutantModule returns the bytes of a mutant.
func mutantModule(t *testing.T, name string) []byte {
	t.Helper()
	words := strings.Fields(name)
	if words[0] == "bytes" {
		return []byte("hello")
	}
	path := "testdata/" + words[0]
	if of, ok := strings.CutPrefix(words[0], "hosts/"); ok {
		path = "../hosts/modules/" + of
	}
	wasm, err := os.ReadFile(path + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range words[1:] {
		body := append(binary.AppendUvarint(nil, uint64(len(abi.ManifestSection))), abi.ManifestSection+manifest...)
		wasm = append(binary.AppendUvarint(append(wasm, 0), uint64(len(body))), body...)
	}
	return wasm
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

// TestEveryBrokenRuleIsCaught runs the suite over wrong creatures. Every check catches
// one, and for every requirement that creatures are scored by there is one that is made to
// break it, and caught by a check that proves it. The table says what catches what.
func TestEveryBrokenRuleIsCaught(t *testing.T) {
	files, err := filepath.Glob("testdata/mutant_*.wasm")
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	table := "# Faulty creatures, the check that catches each, and the rules that it violates on purpose.\n"
	catches, breaks := map[string]int{}, map[string]int{}
	for _, m := range mutants {
		files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == m.module+".wasm" })
		results, err := creatures.Run(t.Context(), h, &creatures.Subject{Name: m.module, Wasm: mutantModule(t, m.module)}, func(check string) bool { return check == m.check })
		if err != nil {
			t.Fatal(err)
		}
		if len(results) != 1 || results[0].Verdict != report.Failed {
			t.Errorf("%s is not caught by %s: %+v", m.module, m.check, results)
		}
		for _, rule := range m.rules {
			if breaks[rule]++; !slices.Contains(results[0].Rules, rule) {
				t.Errorf("%s breaks %s, which %s does not prove", m.module, rule, m.check)
			}
		}
		catches[m.check]++
		table += fmt.Sprintf("%-32s %-28s %s\n", m.module, m.check, strings.Join(m.rules, " "))
	}
	if len(files) > 0 {
		t.Errorf("no list has the mutants %q", files)
	}
	set, err := requirements.Load("abi-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range creatures.Names() {
		if catches[check] == 0 {
			t.Errorf("no mutant is caught by %s", check)
		}
	}
	table += "\n# The rules, and how many of the creatures violate each on purpose.\n"
	for _, q := range set.Requirements {
		if len(q.Creature) == 0 {
			continue
		}
		if breaks[q.Rule] == 0 {
			t.Errorf("no mutant breaks %s: %s", q.Rule, q.Words)
		}
		table += fmt.Sprintf("%-10s %2d\n", q.Rule, breaks[q.Rule])
	}
	const golden = "testdata/mutants.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != table {
		t.Errorf("%s is stale (%v): run go test ./conformance/creatures -run BrokenRule -update\n%s", golden, err, table)
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
		"foreign/extism":     {"extism:host/env.input_length", "extism:host/env.output_set"},
		"foreign/wapc":       {"wapc.__guest_request", "wapc.__host_call", "wapc.__guest_response"},
		"foreign/proxy_wasm": {"env.proxy_get_buffer_bytes", "env.proxy_send_local_response", "env.proxy_set_effective_context"},
	} {
		lacks = append(lacks, "terrarium_abi_v1", "creature_handle")
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
		"an unknown refusal": "- {case: x, steps: [{message: x, refuses: {t: never}}]}", "a result that is not JSON": "- {case: x, tools: {t: .nan}, steps: [{message: x}]}",
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

// The awareness document lists the tools that an engine shows, and those that the case and
// its steps answer.
func TestCasesShowTools(t *testing.T) {
	cases, err := creatures.ParseCases("cases.yaml", []byte(`
- case: a worker
  tools: {group_channel: {}}
  steps:
    - message: x
      expect: ['output "send_channel group_send group_channel"']
    - message: x
      refuses: {group_status: denied}
      expect: ['output "send_channel group_send group_channel group_status"']
    - message: x
      expect: ['output "send_channel group_send group_channel group_status"']
- case: another worker
  steps:
    - message: x
      expect: ['output "send_channel group_send"']
    - message: x
      tools: {group_wire: {}}
      expect: ['output "send_channel group_send group_wire"']
- case: a privileged creature
  privileged: true
  tools: {group_status: {}}
  steps:
    - message: x
      expect: ['output "`+strings.Join(tools.For(true), " ")+`"']
`))
	if err != nil {
		t.Fatal(err)
	}
	s := &creatures.Subject{Name: "js", Cases: cases, Config: `{"script": "export default { message(turn) { turn.output(turn.awareness.tools.join(' ')); } };"}`}
	if s.Wasm, err = plugins.Get(s.Name); err != nil {
		t.Fatal(err)
	}
	results, err := creatures.Run(t.Context(), newHost(t), s, func(check string) bool { return strings.HasPrefix(check, creatures.CasesCheck) })
	if err != nil || len(results) != len(cases) {
		t.Fatalf("%+v, %v", results, err)
	}
	for _, r := range results {
		if r.Verdict != report.Passed {
			t.Errorf("%s: %s %s %q", r.Check, r.Verdict, r.Reason, r.Seen)
		}
	}
}
