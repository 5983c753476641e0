package recipes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

const precedence = `
variable "a" {
  type    = string
  default = "default"
}
variable "b" { default = "default" }
variable "c" { default = "default" }
variable "d" { default = "default" }
creature "x" {
  module = "builtin:relay"
  config = { v = [var.a, var.b, var.c, var.d] }
}`

func TestVariablePrecedence(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := mustLoad(t, write(t, precedence), Options{
		Env:      []string{"TERRARIUM_VAR_a=env", "TERRARIUM_VAR_b=env", "TERRARIUM_VAR_c=env", "TERRARIUM_VAR_other=ignored", "PATH=/bin"},
		VarFiles: []string{file("1.hcl", "b = \"file 1\"\nc = \"file 1\"\n"), file("2.json", `{"c": "file 2"}`)},
		Vars:     map[string]string{"c": "by hand"},
	})
	want := `{"v":["env","file 1","by hand","default"]}`
	if got := string(r.Deployment().Creatures[0].Config); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestVariableTexts(t *testing.T) {
	for _, c := range []struct{ typ, text, want string }{
		{"string", "3", `"3"`},
		{"string", `"quoted"`, `"\"quoted\""`},
		{"number", "3", `3`},
		{"bool", "true", `true`},
		{"list(string)", `["a", "b"]`, `["a","b"]`},
		{"map(number)", `{a = 1}`, `{"a":1}`},
		{"object({a = number, b = optional(string, \"x\")})", `{a = 1}`, `{"a":1,"b":"x"}`},
		{"object({a = number, b = optional(string)})", `{a = 1}`, `{"a":1,"b":null}`},
		{"map(object({a = number, b = optional(object({c = optional(bool)}))}))", `{x = {a = 1}, y = {a = 2, b = {}}}`,
			`{"x":{"a":1,"b":null},"y":{"a":2,"b":{"c":null}}}`},
		{"list(object({b = optional(string)}))", `[]`, `[]`},
		{"any", "plain text", `"plain text"`},
		{"any", "[1, 2]", `[1,2]`},
	} {
		source := fmt.Sprintf("variable \"v\" { type = %s }\ncreature \"x\" {\n  module = \"builtin:relay\"\n  config = { v = var.v }\n}", c.typ)
		r := mustLoad(t, write(t, source), Options{Vars: map[string]string{"v": c.text}})
		if got := string(r.Deployment().Creatures[0].Config); got != `{"v":`+c.want+"}" {
			t.Errorf("%s %s: got %s, want %s", c.typ, c.text, got, c.want)
		}
	}
}

func TestSensitiveVariablesAreNotStored(t *testing.T) {
	const source = `
variable "token" {
  sensitive = true
  default   = { key = "hunter2" }
}
variable "plain" { default = 1 }
creature "x" {
  module = "builtin:relay"
  config = { token = var.token.key }
}`
	d := mustLoad(t, write(t, source), Options{Vars: map[string]string{"plain": "2", "token": `{ key = "hunter2" }`}}).Deployment()
	if got := slices.Collect(maps.Keys(d.Source.Variables)); !slices.Equal(got, []string{"plain"}) {
		t.Errorf("stored variables: %v", got)
	}
	if string(d.Creatures[0].Config) != `{"token":"hunter2"}` {
		t.Errorf("the creature should get the value: %s", d.Creatures[0].Config)
	}
}

// Adding and removing elements of a for_each changes no other address or name, in any
// order of the elements.
func TestAddressesAreStable(t *testing.T) {
	load := func(keys string) map[string]string {
		source := fmt.Sprintf("creature \"w\" {\n  for_each = toset([%s])\n  module   = \"builtin:relay\"\n}", keys)
		out := map[string]string{}
		for _, c := range mustLoad(t, write(t, source), Options{}).Deployment().Creatures {
			out[c.Address] = c.Name
		}
		return out
	}
	before, after := load(`"b", "a", "c"`), load(`"c", "d", "a"`)
	for address, name := range before {
		if other, ok := after[address]; ok && other != name {
			t.Errorf("%s was %s, is %s", address, name, other)
		}
	}
	want := map[string]string{`creature.w["a"]`: "w.a", `creature.w["c"]`: "w.c", `creature.w["d"]`: "w.d"}
	if !maps.Equal(after, want) {
		t.Errorf("got %v", after)
	}
}

func TestModulesAreInspectedOnce(t *testing.T) {
	dir := t.TempDir()
	source := "creature \"w\" {\n  for_each = toset([\"a\", \"b\", \"c\"])\n  module   = \"m.wasm\"\n}\ncreature \"x\" { module = \"${path.recipe}/m.wasm\" }\n"
	for name, text := range map[string]string{"team.hcl": source, "m.wasm": "bytes"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	i := &inspector{}
	d := mustLoad(t, dir, Options{Inspector: i}).Deployment()
	if i.calls != 1 {
		t.Errorf("inspected %d times", i.calls)
	}
	for _, c := range d.Creatures {
		if string(c.Wasm) != "bytes" || c.Module != filepath.Join(dir, "m.wasm") {
			t.Errorf("%s: %s %q", c.Address, c.Module, c.Wasm)
		}
	}
	if d.Name != filepath.Base(dir) {
		t.Errorf("a folder's recipe is named after the folder, not %q", d.Name)
	}
}

func TestSourceIsKept(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"team.hcl":  "creature \"x\" {\n  module = \"builtin:relay\"\n  config = { t = file(\"notes.txt\") }\n}\npolicy \"send\" \"p\" { file = \"p.js\" }\n",
		"notes.txt": "notes", "p.js": "() => {}", "other.txt": "not used",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := mustLoad(t, filepath.Join(dir, "team.hcl"), Options{}).Deployment()
	if got := slices.Sorted(maps.Keys(d.Source.Files)); !slices.Equal(got, []string{"notes.txt", "p.js", "team.hcl"}) {
		t.Errorf("kept files: %v", got)
	}
	if d.Name != "team" {
		t.Errorf("a file's recipe is named after the file, not %q", d.Name)
	}
}

// A copy gives the same deployment as the recipe, without the recipe.
func TestLoadSource(t *testing.T) {
	const source = `
variable "n" { default = 1 }
variable "m" { default = 1 }
creature "x" {
  module = "builtin:relay"
  config = { t = file("notes.txt"), n = var.n, m = var.m }
}
policy "send" "p" { file = "p.js" }
`
	path := write(t, source)
	for name, text := range map[string]string{"notes.txt": "notes", "p.js": "() => {}"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := mustLoad(t, path, Options{Vars: map[string]string{"n": "2"}}).Deployment()
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	r, diags := LoadSource(t.Context(), d.Source, Options{Vars: map[string]string{"m": "3"}})
	if r == nil {
		t.Fatal(render(t, diags, ""))
	}
	if got := string(r.Deployment().Creatures[0].Config); got != `{"m":3,"n":2,"t":"notes"}` {
		t.Error(got)
	}
	if r.Deployment().Policy == nil || r.Deployment().Name != "team" {
		t.Error("the policy or the name is lost")
	}
	delete(d.Source.Files, "team.hcl")
	if r, diags := LoadSource(t.Context(), d.Source, Options{}); r != nil || !diags.HasErrors() {
		t.Error("a copy without a recipe is loaded")
	}
}

// The whole path: a script in a heredoc, its template literals, match, and the place of
// the verdict in the recipe.
func TestPolicies(t *testing.T) {
	const source = `locals { limit = 3 }
channel "tasks" {}
channel "other" {}
creature "writer" {
  module = "builtin:relay"
  send   = [channel.tasks, channel.other]
}
policy "send" "short" {
  channel = channel.tasks
  match   = event.sender == "writer" && event.size > local.limit
  run     = <<-JS
    (event, ctx) => {
      const text = ` + "`${event.size} %{bytes} $${typeof x}`" + `;
      return deny(text);
    }
  JS
}
`
	p := mustLoad(t, write(t, source), Options{}).Deployment().Policy
	if p == nil || !p.JudgesSend("channel.tasks") || p.JudgesSend("channel.other") {
		t.Fatal("the policy judges channel.tasks only")
	}
	event := &deploy.SendEvent{ChannelAddress: "channel.tasks", SenderName: "writer", Payload: []byte("long")}
	d := p.Send(t.Context(), event)
	want := deploy.Verdict{Policy: "short", Reason: "4 %{bytes} $4", Where: "team.hcl:14"}
	// $${…} is a dollar sign and an interpolation in JavaScript, where x is not defined.
	if len(d.Denials) != 1 || d.Denials[0].Reason != "4 %{bytes} $undefined" {
		t.Errorf("got %+v", d.Denials)
	}
	p = mustLoad(t, write(t, strings.Replace(source, "$${typeof x}", "$${event.size}", 1)), Options{}).Deployment().Policy
	if d := p.Send(t.Context(), event); len(d.Denials) != 1 || d.Denials[0] != want {
		t.Errorf("got %+v, want %+v", d.Denials, want)
	}
	event.Payload = []byte("abc")
	if d := p.Send(t.Context(), event); len(d.Denials) != 0 {
		t.Errorf("match is false, yet it says %+v", d.Denials)
	}
}

// A heredoc with another tag keeps its meaning, also beside one tagged JS.
func TestHeredocs(t *testing.T) {
	const source = `
creature "x" {
  module = "builtin:relay"
  config = {
    js   = <<JS
a ${b} %{c}
JS
    text = <<-EOT
      1 + 1 = ${1 + 1}
      x = <<-JS
    EOT
    quoted = "${"a"}<<-JS"
  }
}
`
	got := mustLoad(t, write(t, source), Options{}).Deployment().Creatures[0].Config
	var c map[string]string
	if err := json.Unmarshal(got, &c); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"js": "a ${b} %{c}\n", "text": "1 + 1 = 2\nx = <<-JS\n", "quoted": "a<<-JS"}
	if !maps.Equal(c, want) {
		t.Errorf("got %q, want %q", c, want)
	}
}

// A recipe that would overflow a stack or fill the memory is refused before it is parsed
// or evaluated.
func TestDeepTexts(t *testing.T) {
	const n = 30_000 // a few hundred times the limit
	many := func(s string) string { return strings.Repeat(s, n) }
	config := func(expr string) string {
		return "creature \"x\" {\n  module = \"builtin:relay\"\n  config = { v = " + expr + " }\n}"
	}
	for name, source := range map[string]string{
		"lists":            config(many("[") + many("]")),
		"unclosed lists":   config(many("[")),
		"objects":          config(many("{a=")),
		"brackets":         config(many("(")),
		"calls":            config(many("f(")),
		"blocks":           many("a {\n"),
		"templates":        config(many(`"${`)),
		"heredocs":         config(many("<<A\n${")),
		"controls":         config(`"` + many("%{if true}") + `"`),
		"negations":        config(many("!") + "true"),
		"signs":            config(many("-") + "1"),
		"conditions":       config(many("true ? 1 : ") + "1"),
		"sums":             config("1" + many(" + 1")),
		"indexes":          config("a" + many("[b]")),
		"splats":           config("a" + many(".*")),
		"full splats":      config("a" + many("[*]")),
		"for expressions":  config(many("[for x in ")),
		"chain of locals":  "locals {\n" + chain(20_000) + "  a0 = 1\n}\n" + config("local.a20000"),
		"decoded JSON":     "locals { a = jsondecode(file(\"deep.json\")) }\n" + config("local.a"),
		"template in file": config(`templatefile("deep.tpl", {})`),
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, source)
			for file, text := range map[string]string{"deep.json": many("["), "deep.tpl": many("${[")} {
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, d := Load(t.Context(), path, Options{MaxFileBytes: 4 << 20})
			if !strings.Contains(fmt.Sprint(d), "too deep") && !strings.Contains(fmt.Sprint(d), "deep") {
				t.Errorf("not refused for its depth: %.300s", fmt.Sprint(d))
			}
		})
	}
	for name, source := range map[string]string{
		"JSON":                `{"locals": {"a": ` + many("[") + many("]") + `}}`,
		"expressions in JSON": `{"locals": {"a": "${` + many("[") + `"}}`,
		"types in JSON":       `{"variable": {"a": {"type": "` + many("list(") + `"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := strings.TrimSuffix(write(t, ""), "team.hcl") + "x.hcl.json"
			if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
				t.Fatal(err)
			}
			_, d := Load(t.Context(), path, Options{MaxFileBytes: 4 << 20})
			if !strings.Contains(fmt.Sprint(d), "Nesting too deep") {
				t.Errorf("not refused for its depth: %.300s", fmt.Sprint(d))
			}
		})
	}
	_, d := Load(t.Context(), write(t, "variable \"v\" { type = list(any) }"), Options{Vars: map[string]string{"v": many("[")}})
	if !strings.Contains(fmt.Sprint(d), "nests too deeply") {
		t.Errorf("a variable is not refused for its depth: %.300s", fmt.Sprint(d))
	}
}

// chain declares local values, each of which refers to the one before.
func chain(n int) string {
	var b strings.Builder
	for i := n; i > 0; i-- {
		fmt.Fprintf(&b, "  a%d = local.a%d\n", i, i-1)
	}
	return b.String()
}

func TestFileSizeIsBounded(t *testing.T) {
	_, d := Load(t.Context(), write(t, strings.Repeat("# comment\n", 200)), Options{MaxFileBytes: 1000})
	if !strings.Contains(fmt.Sprint(d), "larger than 1000 bytes") {
		t.Error(d)
	}
}

// range stops at 1,024 elements, so a recipe cannot make an endless list.
func TestRangeIsBounded(t *testing.T) {
	_, d := Load(t.Context(), write(t, "locals { a = range(1025) }"), Options{})
	if !d.HasErrors() {
		t.Error("range(1025) is accepted")
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, d := Load(ctx, write(t, "creature \"x\" { module = \"builtin:relay\" }"), Options{}); r != nil || !d.HasErrors() {
		t.Error("a cancelled load has no recipe")
	}
}

func TestWriteJSON(t *testing.T) {
	_, d := Load(t.Context(), write(t, "locals { a = \"<&>\" }\ncreature \"x\" {\n  module = \"builtin:relay\"\n  config = { v = local.a * 2 }\n}"), Options{})
	var b bytes.Buffer
	if err := WriteJSON(&b, d); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Valid       bool
		Errors      int
		Diagnostics []struct {
			Severity, Summary, Block string
			Range                    Range
			Values                   []Value
			Snippet                  []string
		}
	}
	if err := json.Unmarshal(b.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	f := report.Diagnostics[0]
	if report.Valid || report.Errors != 1 || f.Severity != "error" || f.Block != `creature "x"` || f.Range.Start != (Pos{4, 18, 80}) ||
		!slices.Equal(f.Values, []Value{{"local.a", `"<&>"`}}) || len(f.Snippet) != 1 {
		t.Errorf("got %s", b.String())
	}
	if strings.Count(b.String(), "\n") != 1 || strings.Contains(b.String(), `\u003c`) {
		t.Errorf("not one readable line: %s", b.String())
	}
}

func TestErr(t *testing.T) {
	_, d := Load(t.Context(), write(t, "root = 1\nroot2 = 2\n"), Options{})
	err := d.Err()
	if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), "team.hcl:") {
		t.Errorf("got %v", err)
	}
	if (Diagnostics{{Severity: Warning}}).Err() != nil {
		t.Error("a warning is no error")
	}
}

func TestColour(t *testing.T) {
	_, d := Load(t.Context(), write(t, "creature \"x\" {\n  module = \"\x1b[2J\"\n}\n"), Options{})
	var plain, coloured strings.Builder
	if err := WriteText(&plain, d, 0, false); err != nil {
		t.Fatal(err)
	}
	if err := WriteText(&coloured, d, 0, true); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Errorf("a recipe can send escape sequences to the terminal: %q", plain.String())
	}
	if !strings.Contains(coloured.String(), "\x1b[1;31mError: \x1b[0m") {
		t.Errorf("no colour: %q", coloured.String())
	}
}

// TestWrappedList breaks an item of a list, whose further lines are below its text.
func TestWrappedList(t *testing.T) {
	got := strings.Join(wrap("  - give the module its memory ", 16), "\n")
	if want := "  - give the\n    module its\n    memory"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWrap(t *testing.T) {
	for _, line := range wrap("a sentence of several words, which does not fit", 12) {
		if columns(line) > 12 {
			t.Errorf("%q is too long", line)
		}
	}
}
