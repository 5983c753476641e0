package docstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
)

// TestRecipes loads every recipe that a page shows.
func TestRecipes(t *testing.T) {
	for _, p := range pages(t) {
		for i := range p.blocks {
			b := &p.blocks[i]
			if b.language != "hcl" || b.has("not run") {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", p.name, b.line), func(t *testing.T) {
				t.Parallel()
				loadRecipe(t, p.blocks, b)
			})
		}
	}
}

// loadRecipe loads a recipe beside the other files that its page shows.
func loadRecipe(t *testing.T, page []block, b *block) {
	text := b.text
	if names, ok := b.note("with"); ok {
		text += surroundings(strings.Fields(names))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, other := range page {
		name, is := other.note("file")
		if !is || filepath.Base(name) != name || strings.Contains(name, ".hcl") {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(other.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, diags := terrarium.LoadRecipe(context.Background(), dir, terrarium.RecipeOptions{})
	for _, d := range diags {
		t.Errorf("%s: %v", d.Severity, d)
	}
}

// surroundings declare channels, and a creature that listens on them.
func surroundings(channels []string) string {
	var b strings.Builder
	var refs []string
	for _, name := range channels {
		fmt.Fprintf(&b, "\nchannel %q {}\n", name)
		refs = append(refs, "channel."+name)
	}
	fmt.Fprintf(&b, "creature \"surroundings\" {\n module = \"builtin:relay\"\n listen = [%s]\n}\n", strings.Join(refs, ", "))
	return b.String()
}

// TestPrograms compiles every Go program that a page shows, and runs those
// whose output it shows too.
func TestPrograms(t *testing.T) {
	type program struct{ name, at, source, want string }
	var all []program
	for _, p := range pages(t) {
		for i := range p.blocks {
			b := &p.blocks[i]
			if b.language != "go" || b.has("not run") || b.has("file") {
				continue
			}
			one := program{name: fmt.Sprintf("page%d", len(all)), at: fmt.Sprintf("%s:%d", p.name, b.line), source: b.text}
			if i+1 < len(p.blocks) && p.blocks[i+1].has("output") {
				one.want = p.blocks[i+1].text
			}
			all = append(all, one)
		}
	}
	sources := map[string]string{}
	for _, one := range all {
		sources[one.name] = "//line " + one.at + "\n" + one.source
	}
	binary := buildPrograms(t, sources)
	for _, one := range all {
		if one.want == "" {
			continue
		}
		t.Run(one.at, func(t *testing.T) {
			t.Parallel()
			out, code := shell(t, workplace(t), binary+" "+one.name)
			if code != 0 || !matches(one.want, out) {
				t.Errorf("it ends with %d and prints\n%s\ninstead of\n%s", code, out, one.want)
			}
		})
	}
}

// buildPrograms compiles programs, each as a package, and links them once: that is
// what takes the time. The program that it answers is the one that its argument
// names. They are built outside of the repository, as their readers do.
func buildPrograms(t *testing.T, sources map[string]string) (path string) {
	t.Helper()
	dir := outside(t)
	if err := os.Remove(filepath.Join(dir, "main.go")); err != nil {
		t.Fatal(err)
	}
	var imports, cases strings.Builder
	for name, source := range sources {
		source = strings.Replace(source, "package main\n", "package "+name+"\n", 1)
		source = strings.Replace(source, "\nfunc main() {", "\nfunc Main() {", 1)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "page.go"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&imports, "import %q\n", "example.org/embed/"+name)
		fmt.Fprintf(&cases, "case %q: %s.Main()\n", name, name)
	}
	main := "package main\nimport \"os\"\n" + imports.String() + "func main() {\nswitch os.Args[1] {\n" + cases.String() + "}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "programs")
	goCommand(t, dir, "build", undebuggable, "-o", path, ".")
	return path
}
