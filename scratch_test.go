package terrarium

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestScratchGoesWithClose begins with what a killed process has left.
func TestScratchGoesWithClose(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	left := filepath.Join(tmp, "terrarium-scratch-1")
	noError(t, os.Mkdir(left, 0o700))
	noError(t, os.WriteFile(filepath.Join(left, "in-use.lock"), nil, 0o600))
	noError(t, os.Chtimes(left, time.Now(), time.Now().Add(-time.Hour)))
	tr, err := New(t.Context(), Options{Scratch: true})
	noError(t, err)
	if got := listed(t, tmp); len(got) != 1 || got[0] == filepath.Base(left) {
		t.Errorf("%v are there, want one that is new", got)
	}
	noError(t, tr.Close(t.Context()))
	if got := listed(t, tmp); len(got) != 0 {
		t.Errorf("%v are left", got)
	}
}

func listed(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	noError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
