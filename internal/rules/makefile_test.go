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
// use fresh instances, and that what make test-race leaves out exists under its name.
func TestTargetsNameWhatExists(t *testing.T) {
	makefile := read(t, filepath.Join(root(t), "Makefile"))
	_, recipe, _ := strings.Cut(makefile, "\ntest-fresh:\n")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	fresh := slices.Sorted(slices.Values(regexp.MustCompile(`\./\S+`).FindAllString(recipe, -1)))
	users, tests := testSources(t)
	if want := slices.Sorted(slices.Values(users)); !slices.Equal(fresh, want) {
		t.Errorf("make test-fresh runs %v, but the tests that import internal/fresh are in %v", fresh, want)
	}
	makefile = strings.ReplaceAll(makefile, "\\\n", " ")
	for _, dir := range strings.Fields(variable(t, makefile, "NOT_RACED")) {
		if found, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), "*_test.go")); err != nil || len(found) == 0 {
			t.Errorf("make test-race leaves out %s, which has no tests (%v)", dir, err)
		}
	}
	for _, name := range strings.Fields(variable(t, makefile, "NOT_RACED_TESTS")) {
		if n := strings.Count(tests, "\nfunc "+name+"("); n != 1 {
			t.Errorf("make test-race leaves out %s, and %d tests have that name", name, n)
		}
	}
}

// testSources returns the packages whose tests import internal/fresh, as patterns, and the
// text of all test files.
func testSources(t *testing.T) (users []string, text string) {
	var all strings.Builder
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
		file := read(t, path)
		all.WriteString(file)
		dir, err := filepath.Rel(top, filepath.Dir(path))
		pattern := "./" + filepath.ToSlash(dir)
		if strings.Contains(file, `/internal/fresh"`+"\n") && !slices.Contains(users, pattern) {
			users = append(users, pattern)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return users, all.String()
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
