package scratch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// TestSweep makes the possible contents of a directory for temporary files,
// and checks which are swept.
func TestSweep(t *testing.T) {
	tmp, elsewhere := t.TempDir(), t.TempDir()
	now := time.Now()
	precious := filepath.Join(elsewhere, "precious")
	noError(t, os.WriteFile(precious, []byte("x"), 0o600))
	make := func(name string, mode os.FileMode, locked bool) string {
		dir := filepath.Join(tmp, name)
		noError(t, os.MkdirAll(filepath.Join(dir, "session"), 0o700))
		noError(t, os.Symlink(elsewhere, filepath.Join(dir, "session", "link")))
		noError(t, os.Symlink(precious, filepath.Join(dir, "link")))
		if locked {
			noError(t, os.WriteFile(filepath.Join(dir, lockName), nil, 0o600))
		}
		noError(t, os.Chmod(dir, mode))
		noError(t, os.Chtimes(dir, now, now.Add(-2*age)))
		return dir
	}
	make("terrarium-scratch-1", 0o700, true)
	make("terrarium-code-1", 0o700, true)

	held := flock.New(filepath.Join(make("terrarium-scratch-2", 0o700, true), lockName))
	noError(t, held.Lock())
	defer held.Close()
	make("terrarium-scratch-3", 0o755, true)          // not made by Make
	make("terrarium-scratch-mine", 0o700, true)       // nor this
	make("terrarium-scratch-4", 0o700, false)         // nor this, as it has no lock, and something else
	young := make("terrarium-scratch-5", 0o700, true) // its process may not have its lock yet
	noError(t, os.Chtimes(young, now, now.Add(-age/2)))
	noError(t, os.Symlink(make("elsewhere", 0o700, true), filepath.Join(tmp, "terrarium-scratch-6")))
	noError(t, os.WriteFile(filepath.Join(tmp, "terrarium-scratch-7"), nil, 0o600))
	linked := make("terrarium-scratch-8", 0o700, false)
	noError(t, os.Symlink(precious, filepath.Join(linked, lockName)))
	noError(t, os.Chtimes(linked, now, now.Add(-2*age)))
	noError(t, os.Mkdir(filepath.Join(tmp, "terrarium-scratch-9"), 0o700))
	noError(t, os.Chtimes(filepath.Join(tmp, "terrarium-scratch-9"), now, now.Add(-2*age)))

	before := listed(t, tmp)
	_ = sweep(tmp, now) // 4 is not empty, and is reported
	want := slices.DeleteFunc(before, func(name string) bool {
		return name == "terrarium-scratch-1" || name == "terrarium-code-1" || name == "terrarium-scratch-9"
	})
	if got := listed(t, tmp); !slices.Equal(got, want) {
		t.Errorf("%v are left, want %v", got, want)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "x" {
		t.Errorf("a file behind a link: %q, %v", text, err)
	}
	if got := listed(t, filepath.Join(tmp, "terrarium-scratch-4")); len(got) != 2 {
		t.Errorf("a directory that is not ours has %v", got)
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
