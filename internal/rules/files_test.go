package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mapped = regexp.MustCompile(`(?m)^//   - (\w+\.go): (\S.*)$`)
	named  = regexp.MustCompile(`\b\w+\.go\b`)
)

// TestMapOfTheEngine proves that the section "Files" of engine/doc.go lists
// each file of the package once, under its topic, and no missing file.
func TestMapOfTheEngine(t *testing.T) {
	dir := filepath.Join(root(t), "engine")
	text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n// # Files\n")
	if !found {
		t.Fatal("engine/doc.go has no section Files")
	}
	times := map[string]int{}
	for _, m := range mapped.FindAllStringSubmatch(section, -1) {
		times[m[1]]++
	}
	if bullets := strings.Count(section, "//   - "); len(times) < 20 || bullets < len(times) {
		t.Fatalf("only %d files of %d lines are listed in engine/doc.go", len(times), bullets)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, path := range paths {
		name := filepath.Base(path)
		exists[name] = true
		switch {
		case strings.HasSuffix(name, "_test.go") || name == "doc.go":
		case times[name] == 0:
			t.Errorf(`engine/%s is not in the section Files of engine/doc.go: add "//   - %s: what is in it" under its topic`, name, name)
		case times[name] > 1:
			t.Errorf("engine/doc.go lists %s %d times", name, times[name])
		}
	}
	for _, name := range named.FindAllString(string(text), -1) {
		if !exists[name] {
			t.Errorf("engine/doc.go names %s, which does not exist", name)
		}
	}
}
