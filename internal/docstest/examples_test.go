package docstest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/internal/seeded"
)

var update = flag.Bool("update", false, "write the golden files and the tables of the command line")

// TestGolden compares what the examples print with the golden files, which were
// reviewed when they were written.
func TestGolden(t *testing.T) {
	for _, c := range []struct{ name, command string }{
		{"quickstart", "bin/terrarium run examples/quickstart --input lines=examples/quickstart/lines.txt --output report --exit-when-idle -q"},
		{"quickstart-sightings", "bin/terrarium run examples/quickstart --input lines=- --output sightings --exit-when-idle -q < examples/quickstart/lines.txt"},
		{"log-triage", "bin/terrarium run examples/log-triage --input lines=examples/log-triage/sample.log --output alerts --exit-when-idle -q --var workers=1"},
		{"log-triage-counts", "bin/terrarium run examples/log-triage --input lines=examples/log-triage/sample.log --output counts --exit-when-idle -q --var workers=1 --var every=100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, code := shell(t, workplace(t), c.command)
			if code != 0 {
				t.Fatalf("it ends with %d and prints\n%s", code, out)
			}
			golden(t, c.name+".txt", out)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it prints\n%s\ninstead of\n%s", got, want)
	}
}

// TestWorkersChangeOnlyTheOrder compares the alerts of one worker and of seven.
func TestWorkersChangeOnlyTheOrder(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	alerts := func(workers string) []string {
		out, code := shell(t, dir, "bin/terrarium run examples/log-triage --input lines=examples/log-triage/sample.log --output alerts --exit-when-idle -q --var workers="+workers)
		if code != 0 {
			t.Fatalf("with %s workers it ends with %d and prints\n%s", workers, code, out)
		}
		lines := strings.Split(out, "\n")
		slices.Sort(lines)
		return lines
	}
	if one, seven := alerts("1"), alerts("7"); !slices.Equal(one, seven) {
		t.Errorf("one worker raises\n%s\nand seven raise\n%s", strings.Join(one, "\n"), strings.Join(seven, "\n"))
	}
}

// TestRealLog triages the log of the machine, if it has one, twice in the same
// session.
func TestRealLog(t *testing.T) {
	t.Parallel()
	log := "/var/log/dpkg.log"
	if _, err := os.Stat(log); err != nil {
		log = "examples/log-triage/sample.log"
	}
	dir := workplace(t)
	// The log may grow while the test runs.
	if out, code := shell(t, dir, "cp "+log+" real.log"); code != 0 {
		t.Fatal(out)
	}
	want, _ := shell(t, dir, `grep -cE '^[^ ]+ [^ ]+ (install|upgrade|remove|purge|disappear|conffile) ' real.log || true`)
	run := "cat real.log | bin/terrarium run examples/log-triage --input lines=- --output alerts --exit-when-idle --session S -q | wc -l"
	for _, expected := range []string{want, "0\n"} {
		out, code := shell(t, dir, run)
		if code != 0 || out != expected {
			t.Errorf("it ends with %d and raises %s alerts instead of %s", code, out, expected)
		}
	}
}

// TestEmbedFromOutside builds and runs the example in a copy of its folder
// outside of the repository, with nothing but its replace changed. make test leaves out its tests.
func TestEmbedFromOutside(t *testing.T) {
	t.Parallel()
	dir := outside(t)
	if seeded.Part(1, 2) {
		goCommand(t, dir, "vet", "./...")
		goCommand(t, dir, "test", "-vet=off", undebuggable, "./...")
	}
	goCommand(t, dir, "build", undebuggable, "-o", "embed", ".")
	out, code := shell(t, dir, "./embed")
	if code != 0 || strings.Count(out, "alarm ") != 3 || !strings.HasSuffix(out, "count/humidity = 1\ncount/temperature = 1\n") {
		t.Errorf("it ends with %d and prints\n%s", code, out)
	}
}

// outside is a copy of the example that embeds terrarium, outside of the repository.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples/embed"))); err != nil {
		t.Fatal(err)
	}
	goCommand(t, dir, "mod", "edit", "-replace", "github.com/seed47132306/terrarium="+repository(t))
	return dir
}

// goCommand runs the go command in the folder of a module.
func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
