package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium/internal/ramdisk"
)

// answer is what exec answers to a request.
type answer struct {
	OK     bool
	Result json.RawMessage
	Error  struct{ Code, Remedy string }
}

// try sends a request to exec, which may refuse it.
func (p *process) try(request string) (a answer) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		p.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(p.line()), &a); err != nil {
		p.t.Fatal(err)
	}
	return a
}

// numberedLine is a durable send of a line of 64 kB, which has its number and is therefore
// unique.
func numberedLine(n int) string {
	return fmt.Sprintf(`{"op":"send","channel":"lines","payload":"all %d %s","durable":true,"producer":"p","offset":%d}`, n, strings.Repeat("x", 64000), n)
}

const (
	fullDisk  = 3 << 20  // bytes
	largeDisk = 64 << 20 // bytes
)

// smallDisk is a directory with room for few durable sends.
func smallDisk(t *testing.T) string {
	t.Helper()
	disk := t.TempDir()
	if err := ramdisk.Mount(disk, fullDisk); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := ramdisk.Unmount(disk); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// fill sends lines until the outcome of one is unknown, and returns the number of that line.
func (p *process) fill() (n int) {
	p.t.Helper()
	last := answer{OK: true}
	for ; last.OK && n < 200; n++ {
		last = p.try(numberedLine(n + 1))
	}
	if last.Error.Code != "unknown_outcome" || !strings.Contains(last.Error.Remedy, "same producer and offset") {
		p.t.Fatalf("send %d on a full disk answers %+v", n, last)
	}
	return n
}

// TestFullDisk fills a disk with durable sends. The first that does not fit has an unknown
// outcome, and so has its repetition. Once there is room, repeating it stores nothing twice:
// neither in the same process, nor in the next one if the first was killed while the disk was
// full.
func TestFullDisk(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			disk, dir := smallDisk(t), t.TempDir()
			write(t, dir, "count.hcl", relayAndCount)
			args := []string{"exec", "--session", filepath.Join(disk, "S"), "--recipe", "count.hcl"}
			p := start(t, dir, args...)
			n := p.fill()
			if again := p.try(numberedLine(n)); again.Error.Code != "unknown_outcome" {
				t.Errorf("sent again while the disk is full: %+v", again)
			}
			if killed {
				p.signal(syscall.SIGKILL)
			}
			if err := ramdisk.Resize(disk, largeDisk); err != nil {
				t.Fatal(err)
			}
			if killed {
				p = start(t, dir, args...)
			}
			again := p.try(numberedLine(n))
			for again.Error.Code == "unknown_outcome" { // what is queued is written a moment later
				again = p.try(numberedLine(n))
			}
			var sent struct{ Duplicate bool }
			if err := json.Unmarshal(again.Result, &sent); err != nil || !killed && !sent.Duplicate {
				t.Errorf("sent again when there is room: %+v, %v", again, err)
			}
			p.ask(numberedLine(n + 1))
			p.ask(`{"op":"wait_idle"}`)
			for _, creature := range []string{"counts", "again"} {
				if got, want := p.stateOf(creature)["count/all"], fmt.Sprint(n+1); got != want {
					t.Errorf("%s has counted %s, want %s", creature, got, want)
				}
			}
			p.in.Close()
			if code := p.wait(); code != exitOK {
				t.Errorf("exit code %d\n%s", code, p.stderr)
			}
		})
	}
}
