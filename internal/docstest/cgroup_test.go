package docstest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// confined is a control group with a limit on the memory of its processes.
type confined string

// newConfined makes a control group, of version 1 or 2 of the interface.
func newConfined(t *testing.T, limit int64) confined {
	t.Helper()
	for base, file := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		dir, err := os.MkdirTemp(base, "terrarium-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // a process that has just ended still counts
				if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) || time.Now().After(deadline) {
					return
				}
			}
		})
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0o600); err == nil {
			return confined(dir)
		}
	}
	t.Skip("this machine does not let a user limit the memory of a control group")
	return ""
}

// command runs a command in the group.
func (c confined) command(t *testing.T, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), "sh", append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, string(c)}, args...)...)
}

// TestWithin64MB runs ten creatures that forward 1,000 lines, with a session, in a control group
// of 64 MiB: the kernel ends a process that needs more.
func TestWithin64MB(t *testing.T) {
	t.Parallel()
	const lines, creatures = 1000, 10
	group, dir := newConfined(t, 64<<20), t.TempDir()
	recipe := filepath.Join(dir, "ten.hcl")
	text := `
channel "in" {}
channel "out" {}
creature "gate" {
  for_each = toset([for i in range(` + strconv.Itoa(creatures) + `) : tostring(i)])
  module   = "builtin:gate"
  listen   = [channel.in]
  send     = [channel.out]
  config   = { match = "hot" }
}
`
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := group.command(t, commandPath(t), "run", recipe, "--session", filepath.Join(dir, "session"), "--cache", filepath.Join(dir, "cache"),
		"--input", "in=-", "--output", "out", "--exit-when-idle", "--quiet")
	cmd.Stdin = strings.NewReader(strings.Repeat("s07 hot\n", lines))
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("with 64 MiB: %v\n%s", err, problems.String())
	}
	if n := bytes.Count(out.Bytes(), []byte("s07 hot\n")); n != lines*creatures {
		t.Errorf("%d lines came out of %d creatures for %d lines", n, creatures, lines)
	}
}
