//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/files"
)

// TestSourceSeesRotation rotates a file while nothing runs, moves another file to the path and
// back, and rewrites a file while it is followed: each line is taken once.
func TestSourceSeesRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	p := connectortest.NewPort()
	settings := map[string]any{"path": path}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	put(t, path, "a1\n")
	stop := started(t, files.Source{}, p, settings)
	wait(t, p, sent(1))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	put(t, path, "a2\n")
	rename(path, path+".1")
	put(t, path, "b1\n")
	stop = started(t, files.Source{}, p, settings)
	wait(t, p, sent(3))
	rename(path, path+".2")
	put(t, path, "c1\n")
	wait(t, p, sent(4))
	rename(path, path+".3")
	rename(path+".2", path)
	put(t, path, "b2\n")
	wait(t, p, sent(5))
	if err := os.WriteFile(path, []byte("d1 is longer than what was there\nd2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := wait(t, p, sent(7))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a1", "a2", "b1", "c1", "b2", "d1 is longer than what was there", "d2"}; !slices.Equal(v.Payloads(), want) {
		t.Errorf("the source sends %q, want %q", v.Payloads(), want)
	}
}
