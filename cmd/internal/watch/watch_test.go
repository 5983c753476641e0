package watch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/ramdisk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(ramdisk.Tests(m)) }

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sum(t *testing.T, s Set) Sum {
	t.Helper()
	sum, _, err := s.Sum()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// sources is a set of the files of a tree that end in .c, and of one more.
func sources(dir string) Set {
	return Set{Tree: filepath.Join(dir, "tree"), Match: func(name string) bool { return strings.HasSuffix(name, ".c") }, Files: []string{filepath.Join(dir, "frog.hcl")}}
}

func TestSum(t *testing.T) {
	dir := t.TempDir()
	s, file := sources(dir), filepath.Join(dir, "tree", "a.c")
	put(t, file, "frog")
	first := sum(t, s)
	for _, step := range []struct {
		name   string
		do     func() error
		counts bool
	}{
		{"nothing", func() error { return nil }, false},
		{"written again", func() error { put(t, file, "frog"); return nil }, false},
		{"edited", func() error { put(t, file, "newt"); return nil }, true},
		{"a rename over it", func() error { put(t, file+"~", "toad"); return os.Rename(file+"~", file) }, true},
		{"another kind", func() error { put(t, filepath.Join(dir, "tree", "a.wasm"), "frog"); return nil }, false},
		{"in a new folder", func() error { put(t, filepath.Join(dir, "tree", "sub", "sub", "b.c"), "frog"); return nil }, true},
		{"renamed", func() error { return os.Rename(file, filepath.Join(dir, "tree", "c.c")) }, true},
		{"a build tool", func() error { put(t, filepath.Join(dir, "tree", "target", "b.c"), "frog"); return nil }, false},
		{"the lock of an editor", func() error { return os.Symlink("frog@pond.1", filepath.Join(dir, "tree", ".#a.c")) }, false},
		{"a link in its place", func() error {
			return errors.Join(os.Rename(filepath.Join(dir, "tree"), filepath.Join(dir, "real")), os.Symlink("real", filepath.Join(dir, "tree")))
		}, true},
		{"behind the link", func() error { put(t, filepath.Join(dir, "real", "sub", "c.c"), "frog"); return nil }, true},
		{"of git", func() error { put(t, filepath.Join(dir, "tree", ".git", "b.c"), "frog"); return nil }, false},
		{"the other file appears", func() error { put(t, filepath.Join(dir, "frog.hcl"), ""); return nil }, true},
		{"a pipe, which would block", func() error { return syscall.Mkfifo(filepath.Join(dir, "tree", "pipe.c"), 0o600) }, true},
		{"its folder goes", func() error { return os.RemoveAll(filepath.Join(dir, "tree")) }, true},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if next := sum(t, s); (next != first) != step.counts {
			t.Errorf("%s: the sum differs: %t", step.name, next != first)
		} else {
			first = next
		}
	}
}

// TestSumIsBounded hashes a file that is larger than a set may be.
func TestSumIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.c")
	put(t, file, "")
	if err := os.Truncate(file, maxBytes+1); err != nil { // a hole, which takes no space
		t.Fatal(err)
	}
	if _, _, err := (Set{Files: []string{file}}).Sum(); abi.CodeOf(err) != abi.TooLarge {
		t.Errorf("the error is %v", err)
	}
}

// TestWatcher changes files in every way in which editors change them. After each change a
// value arrives, and the sum differs.
func TestWatcher(t *testing.T) {
	for name, change := range map[string]func(dir, file string) error{
		"writes":       func(_, file string) error { return os.WriteFile(file, []byte("newt"), 0o644) },
		"renames over": func(_, file string) error { put(t, file+"~", "toad"); return os.Rename(file+"~", file) },
		"moves out and in": func(_, file string) error {
			put(t, file+"~", "olm")
			return errors.Join(os.Remove(file), os.Rename(file+"~", file))
		},
		"removes":           func(_, file string) error { return os.Remove(file) },
		"makes folders":     func(dir, _ string) error { put(t, filepath.Join(dir, "tree", "a", "b", "c.c"), "frog"); return nil },
		"makes a file":      func(dir, _ string) error { put(t, filepath.Join(dir, "frog.hcl"), "frog"); return nil },
		"replaces a folder": func(dir, _ string) error { put(t, filepath.Join(dir, "new", "c.c"), ""); return replaceFolder(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, file := sources(dir), filepath.Join(dir, "tree", "a.c")
			put(t, file, "frog")
			w, err := New()
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}()
			known, dirs, err := s.Sum()
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{dir, filepath.Join(dir, "tree")}; !slices.Equal(dirs, want) {
				t.Errorf("the folders are %v, want %v", dirs, want)
			}
			if added, err := w.Watch(append(dirs, filepath.Join(dir, "missing"))); err != nil || !added {
				t.Errorf("new folders: %t, %v", added, err)
			}
			if added, err := w.Watch(dirs); err != nil || added {
				t.Errorf("the same folders: %t, %v", added, err)
			}
			if err := change(dir, file); err != nil {
				t.Fatal(err)
			}
			awaitChange(t, w, s, known)
			// Whatever happened to the folder, it is watched from then on.
			known = sum(t, s)
			put(t, filepath.Join(dir, "tree", "later.c"), name)
			awaitChange(t, w, s, known)
		})
	}
}

// awaitChange waits for a change of a set as a user of a watcher does.
func awaitChange(t *testing.T, w *Watcher, s Set, known Sum) {
	t.Helper()
	for range w.Changed() {
		next, dirs, err := s.Sum()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Watch(dirs); err != nil {
			t.Fatal(err)
		}
		if next != known {
			return
		}
	}
}

func replaceFolder(dir string) error {
	return errors.Join(os.Rename(filepath.Join(dir, "tree"), filepath.Join(dir, "old")), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "tree")))
}

// TestWatcherOfMissingFolders makes a folder, and one in it, of which neither exists when
// they are watched.
func TestWatcherOfMissingFolders(t *testing.T) {
	dir := t.TempDir()
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := Set{Files: []string{filepath.Join(dir, "a", "b", "c.hcl")}}
	before := sum(t, s)
	for _, missing := range []string{"a", filepath.Join("a", "b"), filepath.Join("a", "b", "c.hcl")} {
		_, dirs, err := s.Sum()
		if err != nil {
			t.Fatal(err)
		}
		if added, err := w.Watch(dirs); err != nil || !added {
			t.Fatalf("before %s there is, a new folder is watched: %t, %v", missing, added, err)
		}
		if path := filepath.Join(dir, missing); filepath.Ext(missing) == "" {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-w.Changed()
	}
	if sum(t, s) == before {
		t.Error("the sum is the same with the file")
	}
}

// TestSumTellsWhereToLook expects the folders of a set that is too large, so that a change
// that makes the set smaller is noticed.
func TestSumTellsWhereToLook(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.c")
	put(t, file, "")
	if err := os.Truncate(file, maxBytes+1); err != nil {
		t.Fatal(err)
	}
	s := Set{Tree: dir, Match: func(string) bool { return true }, Files: []string{filepath.Join(dir, "b", "x.hcl")}}
	if _, dirs, err := s.Sum(); abi.CodeOf(err) != abi.TooLarge || !slices.Equal(dirs, []string{dir, filepath.Join(dir, "b")}) {
		t.Errorf("the folders are %v, the error is %v", dirs, err)
	}
}

// A folder that another one of the same name replaces is new: it may have changed before it
// was watched.
func TestReplacedFolderIsNew(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	put(t, filepath.Join(tree, "a.c"), "frog")
	put(t, filepath.Join(dir, "next", "a.c"), "newt")
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for _, want := range []bool{true, false} {
		if added, err := w.Watch([]string{tree}); err != nil || added != want {
			t.Fatalf("Watch: %v, %v; want %v", added, err, want)
		}
	}
	if err := errors.Join(os.Rename(tree, filepath.Join(dir, "before")), os.Rename(filepath.Join(dir, "next"), tree)); err != nil {
		t.Fatal(err)
	}
	if added, err := w.Watch([]string{tree}); err != nil || !added {
		t.Errorf("after it was replaced: %v, %v", added, err)
	}
}

// TestOneFolderOfSeveralNames watches a folder by a relative and an absolute name, and by a
// link. The system keeps only one of the names.
func TestOneFolderOfSeveralNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Symlink(".", "link"); err != nil {
		t.Skipf("the file system has no links: %v", err)
	}
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i, names := range [][]string{{".", dir, "link"}, {".", dir, "link"}, {dir, "."}, {dir, "."}} {
		added, err := w.Watch(names)
		if err != nil || added != (i == 0 || i == 2) { // in round 2, another name comes first
			t.Errorf("round %d: added %t, %v", i, added, err)
		}
	}
	if _, err := w.Watch([]string{".", dir}); err != nil { // as soon as the name has changed, too
		t.Fatal(err)
	}
	select {
	case <-w.Changed():
	default:
	}
	put(t, filepath.Join(dir, "frog.hcl"), "frog")
	<-w.Changed()
}
