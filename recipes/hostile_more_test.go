package recipes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// endless lists expressions that would take hours, or all memory, to compute or to
// format.
var endless = []string{
	`1e10000000`,
	`-1e-10000000`,
	`1e99999999999999999999`,
	`"${1e9999999}"`,
	strings.Repeat("9", 100_000),
	"0." + strings.Repeat("0", 100_000) + "1",
	`tonumber("1e10000000")`,
	`tonumber("-1e600000000")`,
	`jsondecode("[1e10000000]")`,
	`jsondecode("{\"a\":1e-10000000}")`,
	`jsonencode(1e600000000)`,
	`parseint("` + strings.Repeat("9", 10_000) + `", 10)`,
	`"1e10000000" + 1`,
	`-"1e10000000"`,
	`1 - "1e-400000000"`,
	`floor("1e10000000")`,
	`int("1e10000000")`,
	`abs("-1e10000000")`,
	`max(1, "1e10000000")`,
	`range(1, 2, "1e-400000000")`,
	`format("%d", "1e10000000")`,
	`format("%10.2f", "1e10000000")`,
	`formatlist("%x", ["1e10000000"])`,
	`pow(10, 400)`,
	`1e1000 * 1e1000`,
	`1e-1000 / 1e1000`,
	strings.Repeat(`1e100*`, 50) + `1`,
	`[for a in [1e900]: [for b in [a*a]: [for c in [b*b]: c*c]]]`,
	`1 % "1e10000000"`,
	`sum([1, "1e10000000"])`,
	`yamldecode("[1e10000000]")`,
	`yamldecode("a: -1e-10000000")`,
	`yamldecode("` + strings.Repeat("9", 10_000) + `")`,
	`sum([for a in range(2): 1e1000 * 1e233])`,
	`1 > 0 ? "1e10000000" * 1 : 0`,
}

// Numbers are bounded wherever they come from: larger numbers are refused before any
// computation with them, in HCL and in JSON.
func TestNumbersBeyondBoundsAreRefused(t *testing.T) {
	for _, expr := range endless {
		t.Run(clipped(expr), func(t *testing.T) {
			refuse(t, "team.hcl", harmless+"locals { x = "+expr+" }")
			quoted, err := json.Marshal("${" + expr + "}")
			if err != nil {
				t.Fatal(err)
			}
			refuse(t, "team.hcl.json", fmt.Sprintf(`{"creature": {"a": {"module": "builtin:relay"}}, "locals": {"x": %s}}`, quoted))
			refuse(t, "team.hcl", harmless+"variable \"x\" { type = number }", "x="+expr)
		})
	}
	refuse(t, "team.hcl", harmless+`variable "x" { type = number }`, `x="1e10000000"`)
	refuse(t, "team.hcl", harmless+`variable "x" { type = list(number) }`, `x=["1e10000000"]`)
	refuse(t, "team.hcl", harmless+"variable \"x\" {\n type = number\n default = \"1e10000000\"\n}")
	refuse(t, "team.hcl", harmless+"function \"f\" {\n params = [x]\n result = x * x\n}\nlocals { x = f(f(f(f(1e500)))) }")
	refuse(t, "team.hcl", harmless+"locals {\n a = 1e900\n b = local.a * local.a\n c = local.b * local.b\n}")
	refuse(t, "team.hcl", harmless+"creature \"b\" {\n module = \"builtin:relay\"\n limits { message = 1e10000000 }\n}")
	refuse(t, "team.hcl", harmless+"creature \"b\" {\n module = \"builtin:relay\"\n limits { message = \"1e10000000\" }\n}")
}

// Practical numbers stay far below the bounds.
func TestUsualNumbersAreNotRefused(t *testing.T) {
	mustLoad(t, write(t, harmless+`
locals {
  a = [1e308, -1e-307, 0, 0.1, 1e3, 12345678901234567890123456789012345678901234567890, 1e1000, 2.5 * 4 / 3 % 2, -7 + 1]
  b = [tonumber("1e10"), jsondecode("[1,2.5e3]"), parseint("ff", 16), pow(2, 100), floor(1.5), max(1, 2), format("%d", 3), format("%s", "12e3456789")]
  c = "commit 12e3456789"
  d = 1 < 2 && 3 * 4 == 12 ? -"5" : 0
}
`), Options{})
	path := filepath.Join(t.TempDir(), "team.hcl.json")
	text := `{"creature": {"a": {"module": "builtin:relay", "description": "12e3456789"}}, "locals": {"x": 1e10, "y": "${1.5 + 2}"}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, path, Options{})
}

func clipped(text string) string { return text[:min(len(text), 40)] }

// refuse loads a recipe with variables NAME=VALUE, which must be refused with a finding.
func refuse(t *testing.T, name, text string, vars ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Builtins: builtins{"relay"}, Vars: map[string]string{}}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		o.Vars[name] = value
	}
	r, diags := Load(t.Context(), path, o)
	if r != nil || !diags.HasErrors() {
		t.Errorf("%s was loaded, with %v", clipped(text), diags)
	}
	if text := render(t, diags, ""); len(text) > 10_000 {
		t.Errorf("%d bytes are said of it: %s", len(text), clipped(text))
	}
}

// Recipes in JSON, whose texts are templates.
func TestHostileJSONIsRefused(t *testing.T) {
	deep := func(open, inner, closing string) string {
		return strings.Repeat(open, 50_000) + inner + strings.Repeat(closing, 50_000)
	}
	for name, text := range map[string]string{
		"lists":               `{"locals": {"a": ` + deep("[", "1", "]") + `}}`,
		"objects":             deep(`{"a":`, "1", "}"),
		"an open list":        `{"locals": ` + strings.Repeat("[", 100_000),
		"brackets in a text":  `{"locals": {"a": "${` + deep("[", "1", "]") + `}"}}`,
		"templates in a text": `{"locals": {"a": "` + strings.Repeat(`${\"`, 50_000) + `"}}`,
		"sums in a text":      `{"locals": {"a": "${1` + strings.Repeat("+1", 100_000) + `}"}}`,
		"negations in a text": `{"locals": {"a": "${` + strings.Repeat("!", 100_000) + `true}"}}`,
		"a key":               `{"locals": {"${` + deep("(", "1", ")") + `}": 1}}`,
		"controls in a text":  `{"locals": {"a": "` + strings.Repeat("%{ if true }", 10_000) + `"}}`,
		"heredocs in a text":  `{"locals": {"a": "${<<-A\n` + strings.Repeat(`${<<-B\n`, 10_000) + `"}}`,
		"a number":            `{"locals": {"a": 1e10000000}}`,
		"a long number":       `{"locals": {"a": ` + strings.Repeat("9", 100_000) + `}}`,
		"a cycle":             `{"locals": {"a": "${local.a}"}}`,
		"a file above":        `{"locals": {"a": "${file(\"../../etc/passwd\")}"}}`,
		"a module above":      `{"creature": {"a": {"module": "../../etc/passwd"}}}`,
		"no JSON":             `{"creature": {"a": {"module": "builtin:relay"}}`,
		"a list of nothing":   `[[], [[]], null]`,
		"a text":              `"creature"`,
		"nothing":             `null`,
		"NUL":                 "{\"locals\": {\"a\": \"\x00\"}}",
		"half a character":    "{\"locals\": {\"a\": \"\xc3\"}, \"creature\": 1}",
		"a lone surrogate":    `{"locals": {"\ud800": "\udfff"}, "creature": 1}`,
		"the same key twice":  `{"creature": {"a": {"module": "builtin:relay", "module": "builtin:relay"}}}`,
		"UTF-16":              "\xff\xfe{\x00}\x00",
		"a masked template":   "{\"creature\": {\"a\": {\"module\": \"builtin:relay\", \"description\": \"\u0080x}\"}}}",
		"another direction":   "{\"creature\": {\"a\": {\"module\": \"builtin:relay\", \"description\": \"\u202e\"}}}",
	} {
		t.Run(name, func(t *testing.T) { refuse(t, "team.hcl.json", text) })
	}
}

// Variables files come from the user of the recipe, but are bounded too.
func TestHostileVariablesAreRefused(t *testing.T) {
	recipe := write(t, harmless+"variable \"x\" { type = any }\nlocals { y = var.x }")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder.hcl"), 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{filepath.Join(dir, "folder.hcl"), filepath.Join(dir, "missing.hcl"), "/dev/zero"}
	for i, text := range []string{
		"x = " + strings.Repeat("[", 100_000),
		"x = " + strings.Repeat("!", 100_000) + "true",
		"x = 1e10000000",
		"x = \"1e10000000\" * 1",
		"x = file(\"/etc/passwd\")",
		"x = var.x",
		"x = 1\nx = 2",
		"x {}",
		"x = 1 #" + strings.Repeat("x", 2<<20),
		"y = 1",
		"x = \"",
		"\xff\xfe",
		"x = <<A\n" + strings.Repeat("${<<B\n", 10_000),
	} {
		path := filepath.Join(dir, fmt.Sprintf("%d.hcl", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, path)
	}
	for i, text := range []string{`{"x": ` + strings.Repeat("[", 100_000), `{"x": 1e10000000}`, `{"x": "${` + strings.Repeat("(", 10_000) + `"}`, `[]`, `{"x": "${var.x}"}`} {
		path := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, path)
	}
	for _, name := range names {
		r, diags := Load(t.Context(), recipe, Options{Builtins: builtins{"relay"}, VarFiles: []string{name}})
		if r != nil || len(render(t, diags, "")) > 10_000 {
			t.Errorf("%s is taken, or much is said of it: %v", filepath.Base(name), diags)
		}
	}
}

// TestManyFindings loads a recipe with a finding on each of many lines: each finding
// quotes its line and keeps nothing else in memory.
func TestManyFindings(t *testing.T) {
	const many = 5_000
	var b strings.Builder
	b.WriteString("creature \"a\" { module = \"builtin:relay\" }\n")
	for i := range many {
		fmt.Fprintf(&b, "channel \"c%d\" {}\n", i)
	}
	dir := write(t, b.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, diags := Load(t.Context(), dir, Options{})
	runtime.ReadMemStats(&after)
	if len(diags) != many || !slices.Equal(diags[7].Snippet, []string{`channel "c7" {}`}) {
		t.Errorf("%d findings, of which one quotes %q", len(diags), diags[7].Snippet)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 100<<20 {
		t.Errorf("%d findings took %d MiB", many, made>>20)
	}
}
