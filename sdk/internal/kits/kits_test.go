package kits

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// workshop is a repository with a kit whose builds a test decides.
type workshop struct {
	t      *testing.T
	root   string
	kit    Kit
	builds atomic.Int32
	build  func(out string) error
}

func newWorkshop(t *testing.T) *workshop {
	w := &workshop{t: t, root: t.TempDir(), build: writeAll}
	w.kit = Kit{
		Language: "Test",
		Dirs:     []string{"sdk/test"},
		Tool:     func(string) ([]string, string) { return nil, "" },
		Build: func(_ context.Context, _, out string) error {
			w.builds.Add(1)
			return w.build(out)
		},
	}
	w.write("sdk/internal/kits/kits.go", "")
	w.write("sdk/test/shout", "first")
	return w
}

func writeAll(out string) error {
	var errs []error
	for _, name := range Creatures {
		errs = append(errs, os.WriteFile(filepath.Join(out, name+".wasm"), []byte("\x00asm"), 0o644))
	}
	return errors.Join(errs...)
}

func (w *workshop) write(name, text string) {
	path := filepath.Join(w.root, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) modules() string {
	dir, err := w.kit.Modules(w.t.Context(), w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := complete(dir); err != nil {
		w.t.Error(err)
	}
	return filepath.Base(dir)
}

func (w *workshop) wantBuilds(n int32) {
	w.t.Helper()
	if got := w.builds.Load(); got != n {
		w.t.Errorf("%d builds, want %d", got, n)
	}
}

// kept returns the names of the folders of builds.
func (w *workshop) kept() (names []string) {
	entries, err := os.ReadDir(filepath.Join(w.root, "bin", "kits"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestLastBuildIsKept proves that a build is used again, and that a changed source replaces
// it. Other languages keep theirs.
func TestLastBuildIsKept(t *testing.T) {
	w := newWorkshop(t)
	w.write("bin/kits/test++-1/shout.wasm", "")
	first := w.modules()
	if w.modules() != first {
		t.Error("the same sources are in two folders")
	}
	w.wantBuilds(1)
	w.write("sdk/test/shout", "second")
	second := w.modules()
	w.wantBuilds(2)
	if want := []string{"test++-1", second}; !slices.Equal(w.kept(), want) || first == second {
		t.Errorf("bin/kits has %v, want %v", w.kept(), want)
	}
}

// TestIncompleteBuilds proves that a build that failed, that wrote something else than
// modules, or that has lost a file, is not used.
func TestIncompleteBuilds(t *testing.T) {
	w := newWorkshop(t)
	for _, build := range []func(string) error{
		func(string) error { return nil },
		func(out string) error { return errors.Join(writeAll(out), errors.New("interrupted")) },
		func(out string) error {
			return errors.Join(writeAll(out), os.WriteFile(filepath.Join(out, "picky.wasm"), []byte("garbage"), 0o644))
		},
	} {
		w.build = build
		if _, err := w.kit.Modules(t.Context(), w.root); err == nil {
			t.Error("an incomplete build is no error")
		}
	}
	if len(w.kept()) != 0 {
		t.Errorf("bin/kits has %v, want nothing", w.kept())
	}
	w.build = writeAll
	dir := w.modules()
	if err := os.Remove(filepath.Join(w.root, "bin", "kits", dir, "tally.wasm")); err != nil {
		t.Fatal(err)
	}
	w.modules()
	w.wantBuilds(5)
}

// TestKilledBuilds proves that the folder of a killed build is removed in the end, and that
// of another process's running build is not.
func TestKilledBuilds(t *testing.T) {
	w := newWorkshop(t)
	w.write("bin/kits/building-1/shout.wasm", "")
	w.write("bin/kits/building-2/shout.wasm", "")
	old := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(filepath.Join(w.root, "bin", "kits", "building-1"), old, old); err != nil {
		t.Fatal(err)
	}
	dir := w.modules()
	if want := []string{"building-2", dir}; !slices.Equal(w.kept(), want) {
		t.Errorf("bin/kits has %v, want %v", w.kept(), want)
	}
}

// TestTwoBuildsAtOnce proves that the second of two processes waits for the first, which
// is building, and uses what it has built.
func TestTwoBuildsAtOnce(t *testing.T) {
	w := newWorkshop(t)
	second := make(chan error, 1)
	w.build = func(out string) error {
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := w.kit.Modules(impatient, w.root); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another process, while this one is building: %v", err)
		}
		go func() {
			_, err := w.kit.Modules(t.Context(), w.root)
			second <- err
		}()
		return writeAll(out)
	}
	w.modules()
	if err := <-second; err != nil {
		t.Error(err)
	}
	w.wantBuilds(1)
	if kept := w.kept(); len(kept) != 1 || !strings.HasPrefix(kept[0], "test-") {
		t.Errorf("bin/kits has %v, want one build", kept)
	}
}

// TestReadOnlyRepository proves that a repository that cannot be written to is an error.
func TestReadOnlyRepository(t *testing.T) {
	w := newWorkshop(t)
	w.write("bin", "not a folder")
	if _, err := w.kit.Modules(t.Context(), w.root); err == nil {
		t.Error("the build is kept in a folder that cannot be made")
	}
	w.wantBuilds(0)
}

// TestNoTools proves that every kit says what is missing.
func TestNoTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, k := range All {
		if k.Missing(t.TempDir()) == "" {
			t.Errorf("%s: nothing is missing without any program", k.Language)
		}
	}
}
