package ramdisk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tempDirs is a run of tests that records the directory for temporary files.
type tempDirs struct{ dir *string }

func (d tempDirs) Run() int {
	*d.dir = os.TempDir()
	if err := os.WriteFile(filepath.Join(*d.dir, "left-over"), nil, 0o600); err != nil {
		return 1
	}
	return 7
}

// TestNothingIsLeft runs tests that leave a file: the file is removed, the
// result is returned, and the directory for temporary files is restored.
func TestNothingIsLeft(t *testing.T) {
	t.Setenv("TMPDIR", "")
	before := os.TempDir()
	var dir string
	if code := Tests(tempDirs{&dir}).Run(); code != 7 {
		t.Errorf("the result is %d, want 7", code)
	}
	if after := os.TempDir(); after != before {
		t.Errorf("temporary files are in %s, want %s", after, before)
	}
	if !roomy(where) {
		if dir != before {
			t.Errorf("without memory, files are in %s, want %s", dir, before)
		}
		if err := os.Remove(filepath.Join(dir, "left-over")); err != nil {
			t.Error(err)
		}
		return
	}
	if !strings.HasPrefix(dir, where) {
		t.Errorf("files are in %s, want them in %s", dir, where)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// TestWhoChoosesIsObeyed proves that TMPDIR takes precedence.
func TestWhoChoosesIsObeyed(t *testing.T) {
	chosen := t.TempDir()
	t.Setenv("TMPDIR", chosen)
	var dir string
	if Tests(tempDirs{&dir}).Run(); dir != chosen {
		t.Errorf("files are in %s, want %s", dir, chosen)
	}
	if _, err := os.Stat(filepath.Join(chosen, "left-over")); err != nil {
		t.Error(err)
	}
}
