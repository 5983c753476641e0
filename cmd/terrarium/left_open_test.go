//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hold keeps others from writing to an open database, as a program in the middle of a
// transaction does: SQLite locks a byte of the shared memory for that.
func hold(t *testing.T, database string) (release func()) {
	t.Helper()
	const writeLock = 120
	f, err := os.OpenFile(database+"-shm", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: writeLock, Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLKW, &lock); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLeftOpen ends a process that cannot write what it has taken in, because another one
// holds the store: it ends nevertheless when the shutdown timeout is over, and its exit code
// and standard error say what is left. Everything that was acknowledged exists afterwards.
func TestLeftOpen(t *testing.T) {
	for _, how := range []string{"end of input", "SIGTERM"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const timeout = 300 * time.Millisecond
			dir := t.TempDir()
			write(t, dir, "count.hcl", relayAndCount)
			args := []string{"exec", "--session", "S", "--recipe", "count.hcl", "--shutdown-timeout", timeout.String()}
			p := start(t, dir, args...)
			p.ask(`{"op":"send","channel":"lines","payload":"all 1","durable":true}`)
			p.ask(`{"op":"wait_idle"}`)
			var status struct {
				Graphs []struct {
					StorePath string `json:"store_path"`
				}
			}
			if err := json.Unmarshal(p.ask(`{"op":"status"}`), &status); err != nil || len(status.Graphs) != 1 {
				t.Fatalf("status: %+v, %v", status, err)
			}
			release := hold(t, status.Graphs[0].StorePath)
			p.ask(`{"op":"send","channel":"lines","payload":"all 2"}`)
			asked := time.Now()
			if how == "SIGTERM" {
				if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			} else {
				p.in.Close()
			}
			code, took := p.wait(), time.Since(asked)
			release()
			if code != exitLeftOpen {
				t.Errorf("exit code %d, want %d\n%s", code, exitLeftOpen, p.stderr)
			}
			if took < timeout {
				t.Errorf("it ended after %v, before its time was over", took)
			}
			for _, want := range []string{"did not close within " + timeout.String(), " not written", "all acknowledged events are kept"} {
				if !strings.Contains(p.stderr.String(), want) {
					t.Errorf("standard error does not say %q:\n%s", want, p.stderr)
				}
			}
			p = start(t, dir, args...)
			p.ask(`{"op":"wait_idle"}`)
			if got := p.stateOf("counts")["count/all"]; got != "1" {
				t.Errorf("it has counted %s, want the one that was acknowledged", got)
			}
			p.in.Close()
			if code := p.wait(); code != exitOK {
				t.Errorf("exit code %d\n%s", code, p.stderr)
			}
		})
	}
}
