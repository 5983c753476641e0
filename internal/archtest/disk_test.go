package archtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/conformance/hostile"
	"github.com/seed47132306/terrarium/internal/ramdisk"
)

// large allows a module more memory than 32 bits can address.
const large = `
channel "lines" {}

creature "large" {
  module = "m.wasm"
  listen = [channel.lines]
  limits { memory = "4GiB" }
}
`

const (
	fullDisk  = 3 << 20 // bytes, with room for some of the lines
	largeDisk = 64 << 20
)

// testDisks has a session on a disk that becomes full, then has room again, and then is
// read-only. doctor reports each. The process is killed while it waits for room; every line
// is counted once.
func testDisks(t *testing.T, here, there program) {
	const lines = 60
	disk, dir := t.TempDir(), t.TempDir()
	if err := ramdisk.Mount(disk, fullDisk); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := ramdisk.Unmount(disk); err != nil {
			t.Error(err)
		}
	})
	var input strings.Builder
	for i := range lines {
		fmt.Fprintf(&input, "frog %d %s\n", i+1, strings.Repeat("x", 60_000))
	}
	for name, text := range map[string]string{"count.hcl": counting, "lines.txt": input.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	session := filepath.Join(disk, "session")
	args := []string{"run", "count.hcl", "--session", session, "--input", "lines=lines.txt", "--output", "report", "--exit-when-idle"}
	there.killAt(t, dir, "the disk is full", args...)
	if r := there.run(t, dir, "", "doctor", disk); !strings.Contains(r.stdout, "Warning: the disk has only ") {
		t.Errorf("of a full disk, doctor says\n%s%s", r.stdout, r.stderr)
	}

	if err := ramdisk.Resize(disk, largeDisk); err != nil {
		t.Fatal(err)
	}
	if out := there.prints(t, dir, "", args...); !strings.Contains(out, fmt.Sprintf(`"total":%d}`, lines)) {
		t.Errorf("with room, it prints\n%s", out)
	}
	events := here.prints(t, dir, "", "session", "events", session, "--channel", "report", "--kind", "channel_message")
	if got := strings.Count(events, "\n"); got != lines {
		t.Errorf("the channel has %d reports:\n%s", got, events)
	}

	if err := ramdisk.Freeze(disk); err != nil {
		t.Fatal(err)
	}
	r := there.run(t, dir, "", "doctor", disk)
	if r.code != 1 || !strings.Contains(r.stdout, "Problem: the directory cannot be written: ") || !strings.Contains(r.stdout, "read-only file system") {
		t.Errorf("of a read-only disk, doctor says, with %d,\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := there.run(t, dir, "", args...); r.code != 4 || !strings.Contains(r.stderr, "Remedy: ") {
		t.Errorf("on a read-only disk, a run ends with %+v", r)
	}
	for _, p := range []program{here, there} {
		if out := p.prints(t, dir, "", "session", "verify", session); !strings.Contains(out, "is intact") {
			t.Errorf("%v finds that\n%s", p.argv, out)
		}
	}
}

// killAt kills the program once it has written a text to its standard error.
func (p program) killAt(t *testing.T, dir, text string, args ...string) {
	t.Helper()
	cmd := p.command(t, dir, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it was killed
	defer func() { _ = cmd.Process.Kill() }()
	var all strings.Builder
	for written := bufio.NewScanner(stderr); written.Scan(); {
		all.WriteString(written.Text() + "\n")
		if strings.Contains(written.Text(), text) {
			return
		}
	}
	t.Fatalf("it ended by itself, without %q:\n%s", text, all.String())
}

// testAddresses has more memory than 32 bits can address: doctor reports it, a module that
// starts with 2 GiB is refused, and so are memories of instances that together are too large.
func testAddresses(t *testing.T, there program, emulator string) {
	if out := there.run(t, t.TempDir(), "", "doctor").stdout; !strings.Contains(out, "addresses   32 bits: ") {
		t.Errorf("doctor says\n%s", out)
	}
	dir := t.TempDir()
	for _, m := range hostile.Modules() {
		if m.Name == "memory-from-start" {
			if err := os.WriteFile(filepath.Join(dir, "m.wasm"), m.Build(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "large.hcl"), []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	r := there.run(t, dir, "frog\n", "run", "large.hcl", "--input", "lines=-", "--exit-when-idle")
	if r.code == 0 || !strings.Contains(r.stderr, "the system has no memory for the instance") {
		t.Errorf("a module of 2 GiB ends with %+v", r)
	}

	test := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-v", "-exec", emulator, "-run", "^TestTooFewAddresses$", "./host/internal/memory")
	test.Dir = there.root
	test.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm", "GOARM=7")
	if out, err := test.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestTooFewAddresses") {
		t.Errorf("the test of large memories: %v\n%s", err, out)
	}
}
