package docstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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
				loadRecipe(t, b)
			})
		}
	}
}

func loadRecipe(t *testing.T, b *block) {
	text := b.text
	if names, ok := b.note("with"); ok {
		text += surroundings(strings.Fields(names))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
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
	for _, p := range pages(t) {
		for i := range p.blocks {
			b := &p.blocks[i]
			if b.language != "go" || b.has("not run") || b.has("file") {
				continue
			}
			var want *block
			if i+1 < len(p.blocks) && p.blocks[i+1].has("output") {
				want = &p.blocks[i+1]
			}
			t.Run(fmt.Sprintf("%s:%d", p.name, b.line), func(t *testing.T) {
				t.Parallel()
				runProgram(t, b.text, want)
			})
		}
	}
}

func runProgram(t *testing.T, source string, want *block) {
	dir := t.TempDir()
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", undebuggable, "-o", program, file)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want == nil {
		return
	}
	out, code := shell(t, workplace(t), program)
	if code != 0 || !matches(want.text, out) {
		t.Errorf("it ends with %d and prints\n%s\ninstead of\n%s", code, out, want.text)
	}
}
