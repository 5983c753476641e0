package docstest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDevice kills the example for devices in the middle, on this machine.
func TestDevice(t *testing.T) {
	t.Parallel()
	testDevice(t, nil)
}

// TestDeviceOnARM is TestDevice with the example built for a 32-bit ARM processor, without
// cgo, in an emulator. The session opens on this machine.
func TestDeviceOnARM(t *testing.T) {
	if os.Getenv("TERRARIUM_ARCH") == "" {
		t.Skip("TERRARIUM_ARCH=1 builds the example for ARM and runs it with qemu-arm, which takes a minute")
	}
	qemu, err := exec.LookPath("qemu-arm")
	if err != nil {
		t.Fatal("TERRARIUM_ARCH is set, and qemu-arm of the package qemu-user is missing")
	}
	testDevice(t, []string{qemu}, "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm", "GOARM=7")
}

const (
	deviceLines = 60
	killedAfter = 25
	// deviceMemory bounds the memory that the program and the emulator need, in KiB. Pages
	// of their files do not count: the kernel can take them back.
	deviceMemory = 64 << 10
)

func testDevice(t *testing.T, emulator []string, env ...string) {
	dir := t.TempDir()
	program := filepath.Join(dir, "device")
	build := exec.CommandContext(t.Context(), "go", "build", undebuggable, "-o", program, "./device")
	build.Dir, build.Env = outside(t), append(append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off"), env...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, out)
	}
	argv := append(emulator, program)

	first := startDevice(t, dir, argv)
	first.write(t, 1, killedAfter+1)
	printed := first.read(t, killedAfter)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(first.out) // what it printed before it was killed
	if err != nil {
		t.Fatal(err)
	}
	printed += string(rest)
	_ = first.cmd.Wait() // it was killed

	second := startDevice(t, dir, argv)
	second.write(t, 1, deviceLines)
	last := fmt.Sprintf("%05d reading %d", deviceLines, deviceLines)
	for !strings.HasSuffix(printed, last+"\n") {
		printed += second.read(t, 1)
	}
	if used := anonymousMemory(t, second.cmd.Process.Pid); used == 0 || used > deviceMemory {
		t.Errorf("it uses %d KiB", used)
	}
	if err := second.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); err != nil {
		t.Fatal(err)
	}

	if out, code := shell(t, dir, commandPath(t)+" session verify session"); code != 0 || !strings.Contains(out, "is intact") {
		t.Errorf("its session is verified with %d:\n%s", code, out)
	}
	events, _ := shell(t, dir, commandPath(t)+" session events session --channel numbered --kind channel_message")
	got := strings.Split(strings.TrimSpace(events), "\n")
	if len(got) != deviceLines {
		t.Errorf("the channel has %d messages", len(got))
	}
	for i, line := range got {
		want := fmt.Sprintf("%05d reading %d", i+1, i+1)
		if !strings.HasSuffix(line, strconv.Quote(want)) {
			t.Fatalf("message %d is %s", i+1, line)
		}
		// The line that was printed last before the kill may be printed again.
		if n := strings.Count(printed, want+"\n"); n != 1 && !(n == 2 && i+1 >= killedAfter-1 && i < killedAfter+1) {
			t.Errorf("%q is printed %d times", want, n)
		}
	}
}

// device is a running device.
type device struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startDevice(t *testing.T, dir string, argv []string) *device {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return &device{cmd, in, bufio.NewReader(out)}
}

// write sends the lines from one number to another.
func (d *device) write(t *testing.T, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if _, err := fmt.Fprintf(d.in, "reading %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
}

// read reads lines of the output.
func (d *device) read(t *testing.T, lines int) string {
	t.Helper()
	var all strings.Builder
	for range lines {
		line, err := d.out.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", all.String(), err)
		}
		all.WriteString(line)
	}
	return all.String()
}

// anonymousMemory returns the memory of a process that is not of files, in KiB.
func anonymousMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("this system does not tell the memory of a process: ", err)
	}
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	line, _, _ := strings.Cut(rest, "\n")
	kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB")))
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
