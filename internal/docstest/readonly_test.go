package docstest

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// readOnlyRoot makes every file system read-only, apart from one folder, and runs the rest of
// its arguments. It needs a mount namespace of its own.
const readOnlyRoot = `
set -e
state=$1
shift
mount --make-rprivate /
mount --bind "$state" "$state"
cut -d ' ' -f 5 /proc/self/mountinfo | while read -r at; do
	case $at in
	"$state" | /proc* | /sys*) ;;
	*) mount -o remount,bind,ro "$at" 2>/dev/null || true ;;
	esac
done
cd /
exec "$@"
`

// A readOnly machine is one on which only the folder state can be written to.
type readOnly struct{ state, tmp string }

func newReadOnly(t *testing.T) readOnly {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("mount namespaces are those of Linux")
	}
	state, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := readOnly{state, t.TempDir()}
	if out, err := m.command(t, "sh", "-c", "touch "+m.state+"/x && ! touch "+m.tmp+"/x && ! touch /x").CombinedOutput(); err != nil {
		t.Skipf("this machine does not let a user make a read-only root: %v\n%s", err, out)
	}
	return m
}

// command runs a command there, for a user without a home.
func (m readOnly) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"-m", "-r", "sh", "-c", readOnlyRoot, "sh", m.state}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+m.tmp, "HOME=/", "XDG_CONFIG_HOME="+filepath.Join(m.state, "config"))
	return cmd
}

// TestReadOnlyRoot runs the quickstart where only the folder of its session, its cache and its
// configuration can be written to, as on a device with a read-only root: twice, and then
// verifies the session.
func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	m := newReadOnly(t)
	example := filepath.Join(repository(t), "examples/quickstart")
	session := filepath.Join(m.state, "session")
	for range 2 {
		out, err := m.command(t, commandPath(t), "run", example, "--session", session, "--cache", filepath.Join(m.state, "cache"),
			"--input", "lines="+filepath.Join(example, "lines.txt"), "--output", "report", "--exit-when-idle").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Session: "+session) {
			t.Fatalf("with a read-only root: %v\n%s", err, out)
		}
	}
	if out, err := m.command(t, commandPath(t), "session", "verify", session).CombinedOutput(); err != nil || !strings.Contains(string(out), "is intact") {
		t.Errorf("its session: %v\n%s", err, out)
	}
	without := m.command(t, commandPath(t), "resume", session, "--exit-when-idle", "--cache", filepath.Join(m.state, "cache"))
	without.Env = append(without.Env, "XDG_CONFIG_HOME=")
	if out, err := without.CombinedOutput(); err == nil || !strings.Contains(string(out), "set XDG_CONFIG_HOME") {
		t.Errorf("without a directory for the key: %v\n%s", err, out)
	}
}

// TestServiceUnit starts the command of contrib/terrarium.service with its environment, as a
// user without a home where only the unit's directories can be written to, and stops it.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	m := newReadOnly(t)
	unit, err := os.ReadFile(filepath.Join(root, "contrib/terrarium.service"))
	if err != nil {
		t.Fatal(err)
	}
	state, cache := filepath.Join(m.state, "terrarium"), filepath.Join(m.state, "cache")
	if err := errors.Join(os.Mkdir(state, 0o700), os.Mkdir(cache, 0o700)); err != nil {
		t.Fatal(err)
	}
	var args, env []string
	for line := range strings.Lines(string(unit)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.NewReplacer("%S", m.state, "${STATE_DIRECTORY}", state, "${CACHE_DIRECTORY}", cache, "/usr/local/bin/terrarium", commandPath(t),
			"/etc/terrarium/recipe", filepath.Join(repository(t), "examples/quickstart")).Replace(value)
		switch name {
		case "ExecStart":
			args = strings.Fields(value)
		case "Environment":
			env = append(env, value)
		}
	}
	cmd := m.command(t, append(args, "--listen", "127.0.0.1:0")...)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "XDG_CONFIG_HOME=") }), env...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, said := bufio.NewScanner(log), ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "the service is ready") {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said, "is ready") || strings.Contains(said, "WARN") {
		t.Errorf("the service ended with %v, after\n%s", err, said)
	}
}
