package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
)

// delivering runs a sink until stop is called.
func delivering(t *testing.T, c connector.Connector, p *connectortest.Port) (until func(acked uint64), stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, p) }()
	until = func(acked uint64) {
		t.Helper()
		if _, err := p.Wait(t.Context(), func(v connectortest.View) bool { return v.Acked >= acked }); err != nil {
			t.Fatal(err)
		}
	}
	return until, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSinkAfterRename renames and removes the file between messages.
func TestSinkAfterRename(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	p := connectortest.NewPort()
	until, stop := delivering(t, &sink{Path: path, Format: "text"}, p)
	p.Deliver("one")
	until(1)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	p.Deliver("two")
	until(2)
	if old, now := content(t, path+".1"), content(t, path); old != "one\n" || now != "two\n" {
		t.Errorf("the renamed file has %q, the new one %q", old, now)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.Deliver("three")
	until(3)
	stop()
	if now := content(t, path); now != "three\n" {
		t.Errorf("after its removal, the file has %q", now)
	}
}

// TestSinkKnowsLongLines delivers messages above the size of the tail again, after a kill
// between them and in the middle of one.
func TestSinkKnowsLongLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	p := connectortest.NewPort()
	p.Deliver("one", strings.Repeat("x", tailBytes+1), "three")
	until, stop := delivering(t, &sink{Path: path, Format: "json"}, p)
	until(3)
	stop()
	whole := content(t, path)
	for _, size := range []int{len(whole), len(whole) - 200, len(whole) - 1<<20} {
		if err := os.Truncate(path, int64(size)); err != nil {
			t.Fatal(err)
		}
		p.Rewind(0)
		until, stop = delivering(t, &sink{Path: path, Format: "json"}, p)
		until(3)
		stop()
		if got := content(t, path); got != whole {
			t.Fatalf("with %d of %d bytes left, there are %d bytes", size, len(whole), len(got))
		}
	}
}

// full is a file on a disk that becomes full.
type full struct{ *os.File }

func (f full) Write(b []byte) (int, error) {
	n, _ := f.File.Write(b[:len(b)/2])
	return n, errors.New("no space left on device")
}

// TestSinkTakesPartsAway makes a write fail halfway: the part that was written is
// removed.
func TestSinkTakesPartsAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := &sink{Path: path, Format: "text"}
	if err := s.write(file, []byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.write(full{file}, []byte("two\nthree\n")); err == nil {
		t.Fatal("a failed write counts as done")
	}
	if err := s.write(file, []byte("two\nthree\n")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "one\ntwo\nthree\n" {
		t.Errorf("the file has %q", got)
	}
}
