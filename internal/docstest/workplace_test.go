package docstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/internal/ramdisk"
)

var (
	buildDir string
	binary   = sync.OnceValues(build)
)

// TestMain removes what the tests have built.
func TestMain(m *testing.M) {
	code := ramdisk.Tests(m).Run()
	if buildDir != "" {
		if err := os.RemoveAll(buildDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// undebuggable has go build leave out what only a debugger reads, which makes up
// much of the time that linking takes.
const undebuggable = "-ldflags=-s -w"

// build builds the command, once.
func build() (string, error) {
	var err error
	if buildDir, err = os.MkdirTemp("", "docstest-"); err != nil {
		return "", err
	}
	path := filepath.Join(buildDir, "terrarium")
	cmd := exec.Command("go", "build", undebuggable, "-o", path, "./cmd/terrarium")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the command: %w\n%s", err, out)
	}
	return path, nil
}

func commandPath(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// repository is the folder of the repository.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// commandFolder is a folder that has the command by its name, for the PATH.
func commandFolder(t *testing.T) string {
	t.Helper()
	if !fresh.Instances() {
		return filepath.Dir(commandPath(t))
	}
	dir := t.TempDir()
	wrap(t, commandPath(t), filepath.Join(dir, "terrarium"))
	return dir
}

// workplace makes a folder that looks like the repository after make build.
func workplace(t *testing.T) string {
	t.Helper()
	dir, repository := t.TempDir(), repository(t)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{}
	if fresh.Instances() {
		wrap(t, commandPath(t), filepath.Join(dir, "bin", "terrarium"))
	} else {
		links["bin/terrarium"] = commandPath(t)
	}
	for _, name := range []string{"abi", "docs", "examples", "plugins", "sdk", "go.mod", "go.sum"} {
		links[name] = filepath.Join(repository, name)
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// wrap makes a script that runs the command with fresh instances.
func wrap(t *testing.T, command, script string) {
	t.Helper()
	text := fmt.Sprintf(`#!/bin/sh
case "$1" in
run|exec) command=$1; shift; exec %[1]q "$command" --fresh-instances "$@" ;;
esac
exec %[1]q "$@"
`, command)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// shell runs a command in a folder and returns what it printed, on standard
// output and standard error, and its exit code.
func shell(t *testing.T, dir, script string, env ...string) (output string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	commandPath(t) // buildDir exists
	// Hundreds of short processes compile the same modules, and need not collect their garbage so often.
	cmd.Env = append(cmd.Env, "TERRARIUM_CACHE="+filepath.Join(buildDir, "compiled"), "XDG_CONFIG_HOME="+filepath.Join(buildDir, "config"), "GOGC=400")
	// A process in the background that writes to the output of the page would never end it.
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return string(out), 0
}
