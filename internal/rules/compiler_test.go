package rules

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestWithoutACCompiler builds the package whose error says that a C compiler
// is missing. Every package that imports SQLite imports it, so that this error
// comes first.
func TestWithoutACCompiler(t *testing.T) {
	const says = module + "/sqlitestore/internal/ccompiler"
	for _, p := range packages(t) {
		if strings.HasSuffix(p.ImportPath, "/losevfs") {
			continue // only for tests, and contains C itself
		}
		if slices.Contains(p.Imports, "github.com/mattn/go-sqlite3") && !slices.Contains(p.Imports, says) {
			t.Errorf("%s imports SQLite and not %s", p.ImportPath, says)
		}
	}
	out, err := without(t, "go", "build", says)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err == nil || len(lines) != 2 || !strings.HasSuffix(lines[1], "undefined: terrarium_needs_a_C_compiler__install_gcc_or_clang_and_set_CGO_ENABLED_to_1") {
		t.Errorf("go build: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is missing")
	}
	for _, target := range []string{"build", "test", "run"} {
		out, err = without(t, "make", "--no-print-directory", target)
		lines = strings.Split(strings.TrimSpace(out), "\n")
		if err == nil || len(lines) != 2 || !strings.Contains(lines[0], "apt-get install gcc") {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
}

// without runs a command at the top of the repository as on a machine without
// a C compiler, where Go turns cgo off.
func without(t *testing.T, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "CGO_ENABLED=0", "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
