package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

func TestNamesArePlain(t *testing.T) {
	for _, good := range []string{"a", "0190.2.db", "x y.db", "ä.db", "..db", "a..b"} {
		if n, err := NameOf(good); err != nil || n.String() != good {
			t.Errorf("%q: %q, %v", good, n, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "/", "a/b", "../a", "/a", "a/", `a\b`, "c:a", "a\x00b", "a\nb", "a\x1bb", "a\u202eb", "\xff", strings.Repeat("a", 300)} {
		if n, err := NameOf(bad); abi.CodeOf(err) != abi.Storage || n != (Name{}) {
			t.Errorf("%q: %q, %v", bad, n, err)
		}
	}
}

// TestOnlyRegularFiles has every function refuse everything else, and leave it there.
func TestOnlyRegularFiles(t *testing.T) {
	for _, below := range []string{"", Stores} {
		dir := t.TempDir()
		if err := MakeStores(dir); err != nil {
			t.Fatal(err)
		}
		outside := filepath.Join(t.TempDir(), "outside")
		at := filepath.Join(dir, below)
		path, sound := filepath.Join(at, "x.db"), filepath.Join(at, "sound.db")
		if err := errors.Join(os.WriteFile(outside, []byte("precious"), 0o600), WriteFile(sound, []byte("s"))); err != nil {
			t.Fatal(err)
		}
		for name, make := range map[string]func() error{
			"link":      func() error { return os.Symlink(outside, path) },
			"dangling":  func() error { return os.Symlink(outside+"-none", path) },
			"directory": func() error { return os.Mkdir(path, 0o755) },
		} {
			if err := make(); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			for call, err := range map[string]error{
				"Stat":      errorOf(Stat(path)),
				"Open":      errorOf(Open(path)),
				"Create":    errorOf(OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)),
				"Exclusive": errorOf(OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY)),
				"WriteFile": WriteFile(path, nil),
				"ReadFile":  errorOf(ReadFile(path, 10)),
				"Remove":    Remove(path),
				"Rename":    Rename(path, filepath.Join(at, "y.db")),
				"Replace":   Rename(sound, path),
				"Sync":      Sync(path),
				"Database":  CheckDatabase(path, false),
				"Log":       CheckDatabase(strings.TrimSuffix(path, ".db"), false),
			} {
				if call == "Log" { // x has no x-wal
					if err != nil {
						t.Errorf("%s, %s: %v", name, call, err)
					}
				} else if abi.CodeOf(err) != abi.Storage {
					t.Errorf("%s, %s: %v", name, call, err)
				}
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || Missing(path) {
				t.Errorf("%s is not there any more: %v", name, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if content, err := os.ReadFile(outside); err != nil || string(content) != "precious" {
			t.Errorf("the file outside is %q, %v", content, err)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func TestHardLinksAreNotWrittenTo(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "x.db"), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, []byte("precious"), 0o600), os.Link(other, path)); err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{
		"WriteFile": WriteFile(path, nil), "OpenFile": errorOf(OpenFile(path, os.O_RDWR)), "CheckDatabase": CheckDatabase(path, true),
	} {
		if abi.CodeOf(err) != abi.Storage {
			t.Errorf("%s: %v", call, err)
		}
	}
	if content, err := ReadFile(path, 100); err != nil || string(content) != "precious" {
		t.Errorf("it is %q, %v", content, err)
	}
	if err := errors.Join(CheckDatabase(path, false), Remove(path)); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(other); err != nil || string(content) != "precious" {
		t.Errorf("the other name has %q, %v", content, err)
	}
}

func TestStoresIsADirectory(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(elsewhere, "x.db"), nil, 0o600), os.Symlink(elsewhere, filepath.Join(dir, Stores))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, Stores, "x.db")
	for call, err := range map[string]error{
		"Stat": errorOf(Stat(path)), "Remove": Remove(path), "ReadStores": errorOf(ReadStores(dir)), "MakeStores": MakeStores(dir), "CheckDatabase": CheckDatabase(path, false),
	} {
		if abi.CodeOf(err) != abi.Storage {
			t.Errorf("%s: %v", call, err)
		}
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "x.db")); err != nil {
		t.Error(err)
	}
}

func TestNoRollbackJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	if err := errors.Join(CheckDatabase(path, true), WriteFile(path, nil), WriteFile(path+"-journal", nil)); err != nil {
		t.Fatal(err)
	}
	if err := CheckDatabase(path, false); abi.CodeOf(err) != abi.Storage {
		t.Error(err)
	}
}

func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "x.db")
	if _, err := Open(path); !errors.Is(err, fs.ErrNotExist) || !Missing(path) || Size(path) != 0 {
		t.Error(err)
	}
}
