package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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

// TestReadOnlyRoot runs the quickstart where only the folder of its session and its cache can
// be written to, as on a device with a read-only root: twice, and then verifies the session.
func TestReadOnlyRoot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("mount namespaces are those of Linux")
	}
	t.Parallel()
	state, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs(filepath.Join(root, "examples/quickstart"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	inside := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"-m", "-r", "sh", "-c", readOnlyRoot, "sh", state}, args...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+elsewhere)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := inside("sh", "-c", "touch "+state+"/x && ! touch "+elsewhere+"/x && ! touch /x"); err != nil {
		t.Skipf("this machine does not let a user make a read-only root: %v\n%s", err, out)
	}
	session := filepath.Join(state, "session")
	for range 2 {
		out, err := inside(commandPath(t), "run", example, "--session", session, "--cache", filepath.Join(state, "cache"),
			"--input", "lines="+filepath.Join(example, "lines.txt"), "--output", "report", "--exit-when-idle")
		if err != nil || !strings.Contains(out, "Session: "+session) {
			t.Fatalf("with a read-only root: %v\n%s", err, out)
		}
	}
	if out, err := inside(commandPath(t), "session", "verify", session); err != nil || !strings.Contains(out, "is intact") {
		t.Errorf("its session: %v\n%s", err, out)
	}
}
