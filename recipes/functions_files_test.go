package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// filesFolder returns the path of a recipe in a folder with some files, links and a
// sub-recipe.
func filesFolder(t *testing.T, source string) string {
	t.Helper()
	path := write(t, source)
	dir := filepath.Dir(path)
	for name, text := range map[string]string{
		"prompts/a.txt": "A", "prompts/b.md": "B", "prompts/deep/er/c.txt": "C", "prompts/.hidden": "", "sub/main.hcl": "", "sub/x.txt": "X",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"prompts/inside.txt": "a.txt", "prompts/outside.txt": "/etc/passwd", "prompts/folder": "deep", "etc": "/etc"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestFileSet(t *testing.T) {
	for pattern, want := range map[string]string{
		`"prompts", "*.txt"`:          `["a.txt","inside.txt"]`,
		`"prompts", "**/*.txt"`:       `["a.txt","deep/er/c.txt","inside.txt"]`,
		`"prompts", "**"`:             `[".hidden","a.txt","b.md","deep/er/c.txt","inside.txt"]`,
		`"prompts", "*/*/c.*"`:        `["deep/er/c.txt"]`,
		`"./prompts/", "[ab].*"`:      `["a.txt","b.md"]`,
		`".", "**/er/**"`:             `["prompts/deep/er/c.txt"]`,
		`"prompts", "z*"`:             `[]`,
		`"prompts/deep", "**/**/c.*"`: `["er/c.txt"]`,
	} {
		source := `creature "a" {
  module = "builtin:relay"
  config = { v = fileset(` + pattern + `) }
}`
		r := mustLoad(t, filesFolder(t, source), Options{})
		if got := string(r.Deployment().Creatures[0].Config); got != `{"v":`+want+`}` {
			t.Errorf("%s: got %s, want %s", pattern, got, want)
		}
	}
	for _, expr := range []string{`fileset("etc", "*")`, `fileset("..", "*")`, `fileset("/etc", "*")`, `fileexists("prompts/outside.txt")`, `fileexists("etc/passwd")`, `fileset("prompts/a.txt", "*")`} {
		if r, _ := Load(t.Context(), filesFolder(t, "creature \"a\" {\n  module = \"builtin:relay\"\n  config = { v = "+expr+" }\n}"), Options{}); r != nil {
			t.Errorf("%s gives %s", expr, r.Deployment().Creatures[0].Config)
		}
	}
}

// The copy of a recipe, or of a sub-recipe, is loaded with what its folder contained when
// the copy was made.
func TestCopiesKnowWhichFilesThereWere(t *testing.T) {
	const inner = `creature "b" {
  for_each = fileset(".", "*.txt")
  module   = "builtin:relay"
  config   = { text = file(each.key) }
}
`
	path := filesFolder(t, `creature "a" {
  for_each = fileset("prompts", "**/*.txt")
  module   = "builtin:relay"
  config   = { text = file("prompts/${each.key}"), extra = fileexists("prompts/extra") }
}
recipe "sub" { source = "./sub" }
`)
	dir := filepath.Dir(path)
	if err := os.WriteFile(filepath.Join(dir, "sub", "main.hcl"), []byte(inner), 0o644); err != nil {
		t.Fatal(err)
	}
	before := mustLoad(t, path, Options{}).Deployment()
	for _, name := range []string{"prompts/new.txt", "prompts/extra", "sub/y.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("new"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "prompts/deep/er/c.txt")); err != nil {
		t.Fatal(err)
	}
	copied, diags := LoadSource(t.Context(), before.Source, Options{})
	if copied == nil {
		t.Fatal(render(t, diags, ""))
	}
	if got, want := summary(t, copied.Deployment()), summary(t, before); got != want {
		t.Errorf("the copy is\n%s\nand the recipe was\n%s", got, want)
	}
	if after := mustLoad(t, path, Options{}).Deployment(); len(after.Creatures) != len(before.Creatures)+1 {
		t.Errorf("after two files were added and one removed there are %d creatures, before %d", len(after.Creatures), len(before.Creatures))
	}
	for name := range before.Source.Files {
		if strings.Contains(name, "fileexists") {
			delete(before.Source.Files, name)
		}
	}
	if r, diags := LoadSource(t.Context(), before.Source, Options{}); r != nil || !diags.HasErrors() {
		t.Errorf("a copy without an answer was loaded, with %v", diags)
	}
}

// A call of a function about files is stored with the recipe, so no argument can be
// sensitive.
func TestQuestionsAboutFilesAreNotSensitive(t *testing.T) {
	for _, expr := range []string{`fileexists(var.secret)`, `fileset(var.secret, "*")`, `fileset(".", var.secret)`} {
		r, diags := Load(t.Context(), write(t, "variable \"secret\" {\n  sensitive = true\n  default = \"hunter2\"\n}\ncreature \"a\" {\n  module = \"builtin:relay\"\n  config = { v = "+expr+" }\n}"), Options{})
		if r != nil || !diags.HasErrors() || strings.Contains(render(t, diags, ""), "hunter2\" ") {
			t.Errorf("%s: %v", expr, diags)
		}
	}
	r := mustLoad(t, write(t, "variable \"secret\" {\n  sensitive = true\n  default = \"hunter2\"\n}\ncreature \"a\" {\n  module = \"builtin:relay\"\n  name = \"n-${length(nonsensitive(var.secret))}\"\n}"), Options{})
	if got := r.Deployment().Creatures[0].Name; got != "n-7" {
		t.Errorf("the name is %s", got)
	}
}

// The work of listing files is bounded in total, however often a recipe lists them.
func TestListingManyFilesIsRefused(t *testing.T) {
	path := write(t, harmless+`locals {
  a = [for a in range(1000) : length(fileset("many", "${a}/*/*/*/*/*/*/*"))]
}`)
	dir := filepath.Join(filepath.Dir(path), "many")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for k := range 200 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(k)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, diags := Load(t.Context(), path, Options{})
	if r != nil || !strings.Contains(render(t, diags, ""), "looks at more than") {
		t.Errorf("it was loaded, with %v", diags)
	}
}

// Texts that would make the YAML parser recurse, or that stand for far more than they
// contain, are refused before they are parsed.
func TestHostileYAMLIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x, x]\n"
	for k := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", k+1, k+1, k, k)
	}
	var merges strings.Builder
	merges.WriteString("a: &a {")
	for k := range 20_000 {
		fmt.Fprintf(&merges, "k%d: 1, ", k)
	}
	merges.WriteString("}\nb: {<<: [" + strings.Repeat("*a, ", 20_000) + "]}\n")
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", 100_000), "braces": strings.Repeat("{a: ", 100_000), "dashes": strings.Repeat("- ", 100_000) + "x",
		"questions": strings.Repeat("? ", 100_000) + "x", "both": strings.Repeat("- ? ", 50_000) + "x", "colons": strings.Repeat(": ", 50_000) + "x",
		"indented": stairs(1_200), "aliases": bomb, "merges": merges.String(), "digits": "a: " + strings.Repeat("7", 1_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, harmless+`locals { a = yamldecode(file("hostile.yaml")) }`)
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), "hostile.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			started := time.Now()
			r, diags := Load(t.Context(), path, Options{MaxFileBytes: 4 << 20})
			if r != nil || !diags.HasErrors() {
				t.Errorf("it was loaded, with %v", diags)
			}
			if time.Since(started) > patience {
				t.Error("it took too long")
			}
		})
	}
}

// stairs returns nested lists in YAML, each on its own line.
func stairs(depth int) string {
	var b strings.Builder
	for k := range depth {
		b.WriteString(strings.Repeat(" ", k) + "-\n")
	}
	return b.String()
}

// Encoding indents every line of a text, so the size of the result is estimated in
// advance.
func TestYAMLOfManyNestedLinesIsRefused(t *testing.T) {
	const source = harmless + `locals {
  lines = join("\n", [for a in range(1000) : join("\n", range(100))])
  one   = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[local.lines]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
  text  = yamlencode(local.one)
}`
	if r, diags := Load(t.Context(), write(t, source), Options{}); r != nil || !strings.Contains(render(t, diags, ""), "would make more than") {
		t.Errorf("it was loaded, with %v", diags)
	}
}
