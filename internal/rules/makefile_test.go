package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTargetsNameWhatExists proves that make test-fresh runs every package whose tests can
// use fresh instances, that make test-every or make test-kits runs every package of which make
// test has a part, and that what make test-race leaves out exists under its name.
func TestTargetsNameWhatExists(t *testing.T) {
	makefile := read(t, filepath.Join(root(t), "Makefile"))
	sources := testSources(t)
	var fresh, every []string
	for _, line := range recipe(makefile, "test-fresh") {
		fresh = append(fresh, regexp.MustCompile(`\./\S+`).FindAllString(line, -1)...)
	}
	if want := having(sources, `/internal/fresh"`+"\n"); !slices.Equal(slices.Sorted(slices.Values(fresh)), want) {
		t.Errorf("make test-fresh runs %v, but the tests that import internal/fresh are in %v", fresh, want)
	}
	for _, line := range append(recipe(makefile, "test-every"), recipe(makefile, "test-kits")...) {
		if !strings.Contains(line, "-run") { // it has all tests of these packages
			every = append(every, strings.Fields(line)...)
		}
	}
	for _, dir := range append(having(sources, "seeded"+".Part("), having(sources, "seeded"+".Long(")...) {
		if !slices.Contains(every, dir) {
			t.Errorf("make test has a part of the tests of %s, and neither make test-every nor make test-kits runs all", dir)
		}
	}
	makefile = strings.ReplaceAll(makefile, "\\\n", " ")
	for _, dir := range strings.Fields(variable(t, makefile, "NOT_RACED")) {
		if found, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), "*_test.go")); err != nil || len(found) == 0 {
			t.Errorf("make test-race leaves out %s, which has no tests (%v)", dir, err)
		}
	}
	for _, name := range strings.Fields(variable(t, makefile, "NOT_RACED_TESTS")) {
		n := 0
		for _, text := range sources {
			n += strings.Count(text, "\nfunc "+name+"(")
		}
		if n != 1 {
			t.Errorf("make test-race leaves out %s, and %d tests have that name", name, n)
		}
	}
}

// recipe returns the lines of the recipe of a target.
func recipe(makefile, target string) []string {
	_, text, _ := strings.Cut(makefile, "\n"+target+":\n")
	text, _, _ = strings.Cut(text, "\n\n")
	return strings.Split(text, "\n")
}

// having returns the packages whose tests have one of some texts.
func having(sources map[string]string, texts ...string) (dirs []string) {
	for dir, source := range sources {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(source, text) }) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// testSources returns the text of all test files, by their packages as patterns.
func testSources(t *testing.T) map[string]string {
	out := map[string]string{}
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path == filepath.Join(top, "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel(top, filepath.Dir(path))
		pattern := "."
		if dir != "." {
			pattern = "./" + filepath.ToSlash(dir)
		}
		out[pattern] += read(t, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// variable returns the value that a makefile sets.
func variable(t *testing.T, makefile, name string) string {
	m := regexp.MustCompile(`(?m)^` + name + ` = (.*)$`).FindStringSubmatch(makefile)
	if m == nil {
		t.Fatalf("the Makefile does not set %s", name)
	}
	return m[1]
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
