//go:build unix

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// sloths sets a directory for temporary files for the processes of the test,
// and waits for sloths there.
func sloths(t *testing.T) (dir string, next func() (pid int, ended func())) {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // t.TempDir has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
	l, err := net.Listen("unix", filepath.Join(dir, "sloth"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return dir, func() (pid int, ended func()) {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscanln(c, &pid); err != nil {
			t.Fatal(err)
		}
		return pid, func() {
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Error(err)
			}
			c.Close()
		}
	}
}

func codeIn(t *testing.T, dir string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "terrarium-code-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A compiling process ends with the process that started it, even if that is
// killed, and the next one removes the files of both.
func TestCompilerOfAHostThatIsKilled(t *testing.T) {
	dir, next := sloths(t)
	command := self(t, asHost)
	h := exec.Command(command[0], command[1:]...)
	h.Stdin = bytes.NewReader(large(t))
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	_, ended := next()
	if err := h.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.Wait() // Wait returns an error for a killed process
	ended()
	left := codeIn(t, dir)
	if len(left) != 1 {
		t.Fatalf("the process that was killed has left %v, want one directory", left)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left[0], long, long); err != nil {
		t.Fatal(err)
	}
	again, err := New(t.Context(), Options{Compiler: self(t, asCompiler)})
	if err != nil {
		t.Fatal(err)
	}
	if left := codeIn(t, dir); len(left) > 0 {
		t.Errorf("%v are left after the next start", left)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The error says why a compiling process ended: a caller that cancelled, or an
// external signal. Neither is the fault of the module.
func TestCompilerThatIsEndedFromOutside(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(pid int, cancel func()) error
		code abi.Code
		says string
	}{
		"interrupted": {func(_ int, cancel func()) error { cancel(); return nil }, abi.Stopped, "the caller cancelled it"},
		"killed":      {func(pid int, _ func()) error { return syscall.Kill(pid, syscall.SIGKILL) }, abi.Unavailable, "an external signal (killed)"},
		"terminated":  {func(pid int, _ func()) error { return syscall.Kill(pid, syscall.SIGTERM) }, abi.Unavailable, "an external signal (terminated)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, next := sloths(t)
			h, err := New(t.Context(), Options{Compiler: self(t, asSloth)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failed := make(chan error, 1)
			wasm := large(t)
			go func() {
				_, err := h.Compile(ctx, wasm)
				failed <- err
			}()
			pid, ended := next()
			if err := c.end(pid, cancel); err != nil {
				t.Fatal(err)
			}
			err = <-failed
			if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Compile answers %v (%s), want %s: %q", err, abi.CodeOf(err), c.code, c.says)
			}
			ended()
			if err := h.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if left := codeIn(t, dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// ServeCompiler does not continue for a process that has ended.
func TestServeCompilerWithoutACaller(t *testing.T) {
	order, err := json.Marshal(compileOrder{Dir: t.TempDir(), Memory: 4 << 30, Seconds: 60, Size: len(large(t))})
	if err != nil {
		t.Fatal(err)
	}
	command := self(t, asCompiler)
	for _, input := range [][]byte{append(append(order, '\n'), large(t)...), order} {
		c := exec.Command(command[0], command[1:]...)
		c.Stdin = bytes.NewReader(input) // it ends at once
		out, err := c.Output()
		var ended *exec.ExitError
		if len(out) > 0 && !strings.Contains(string(out), "failed") || len(out) == 0 && !errors.As(err, &ended) {
			t.Errorf("it answers %q, %v", out, err)
		}
	}
}

// A command that is not a compiler is reported, and the module is compiled
// here.
func TestCompilerThatFails(t *testing.T) {
	said, err := compiles(t, Options{Compiler: self(t, asFailure)})
	if err != nil || !strings.Contains(said, "compiled in this process") {
		t.Errorf("%v, logged %q", err, said)
	}
}
