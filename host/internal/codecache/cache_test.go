//go:build unix

package codecache

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/scratch"
	"github.com/tetratelabs/wazero"
)

func openAt(ctx context.Context, dir, key string) (*Cache, error) {
	return Open(ctx, dir, key, slog.New(slog.DiscardHandler))
}

// openCache opens a cache below dir and closes it with the test.
func openCache(t *testing.T, dir string) *Cache {
	t.Helper()
	c, err := openAt(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// compileWith compiles a module with a cache and seals the entry.
func compileWith(t *testing.T, c *Cache, wasm []byte) {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(c.Wazero))
	if _, err := r.CompileModule(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// filled returns a directory with a cache of one entry, and the path of the
// entry.
func filled(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	c, err := openAt(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	compileWith(t, c, readModule(t, "echo"))
	entries, err := c.Entries()
	if err != nil || len(entries) != 1 {
		t.Fatalf("there are %d entries: %v", len(entries), err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(c.Dir, entries[0].Name)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestCacheKeepsEntries(t *testing.T) {
	dir, path := filled(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	c := openCache(t, dir)
	if r := c.Refused(); len(r) != 0 {
		t.Fatalf("a sound entry is refused: %v", r)
	}
	compileWith(t, c, readModule(t, "echo"))
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the entry was compiled again: %v", err)
	}
	compileWith(t, c, readModule(t, "script"))
	if entries, _ := openCache(t, dir).Entries(); len(entries) != 2 {
		t.Errorf("there are %d entries of two modules", len(entries))
	}
}

// A manipulated entry is removed before wazero could load it, and the error
// says which one and why.
func TestCacheRefusesEntries(t *testing.T) {
	edit := func(f func([]byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	root := func(path string) string { return filepath.Dir(filepath.Dir(path)) }
	for _, c := range []struct {
		name, why string
		spoil     func(t *testing.T, path string)
	}{
		{"a changed byte", "does not match its tag", edit(func(b []byte) []byte { b[len(b)/2] ^= 1; return b })},
		{"a byte more", "does not match its tag", edit(func(b []byte) []byte { return append(b, 0) })},
		{"cut off", "does not match its tag", edit(func(b []byte) []byte { return b[:len(b)/2] })},
		{"empty", "does not match its tag", edit(func([]byte) []byte { return nil })},
		{"another version", "does not match its tag", edit(func(b []byte) []byte {
			i := bytes.IndexByte(b, 'O') + 2 // behind the magic and the length of the version
			b[i] ^= 3
			return b
		})},
		{"under another name", "has no tag", func(t *testing.T, path string) {
			must(t, os.Rename(path, filepath.Join(filepath.Dir(path), strings.Repeat("0", 64))))
		}},
		{"in the directory of another version", "has no tag", func(t *testing.T, path string) {
			other := filepath.Join(root(path), "wazero-v0.0.0-amd64-linux")
			must(t, os.Mkdir(other, 0o700), os.Rename(path, filepath.Join(other, filepath.Base(path))))
		}},
		{"without a tag", "has no tag", func(t *testing.T, path string) {
			must(t, os.RemoveAll(filepath.Join(root(path), Tags)))
		}},
		{"with another key", "does not match its tag", func(t *testing.T, path string) { t.Setenv("XDG_CONFIG_HOME", t.TempDir()) }},
		{"with a torn key", "does not match its tag", func(t *testing.T, path string) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			key, err := keyPath()
			must(t, err, os.MkdirAll(filepath.Dir(key), 0o700), os.WriteFile(key, []byte("torn"), 0o600))
		}},
		{"readable by others", "can be reached by other users (mode 0644)", func(t *testing.T, path string) { must(t, os.Chmod(path, 0o644)) }},
		{"writable by others", "can be reached by other users (mode 0606)", func(t *testing.T, path string) { must(t, os.Chmod(path, 0o606)) }},
		{"a symbolic link", "is a symbolic link", func(t *testing.T, path string) {
			elsewhere := filepath.Join(t.TempDir(), "code")
			must(t, os.Rename(path, elsewhere), os.Symlink(elsewhere, path))
		}},
		{"a second name", "has another name elsewhere", func(t *testing.T, path string) {
			must(t, os.Link(path, filepath.Join(t.TempDir(), "code")))
		}},
		{"a directory", "is a directory", func(t *testing.T, path string) {
			must(t, os.Remove(path), os.MkdirAll(filepath.Join(path, "deep"), 0o700))
		}},
		{"behind a linked directory", "is a symbolic link", func(t *testing.T, path string) {
			elsewhere := filepath.Join(t.TempDir(), "wazero")
			must(t, os.Rename(filepath.Dir(path), elsewhere), os.Symlink(elsewhere, filepath.Dir(path)))
		}},
		{"in an open directory", "can be reached by other users (mode 0755)", func(t *testing.T, path string) {
			must(t, os.Chmod(filepath.Dir(path), 0o755))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, path := filled(t)
			c.spoil(t, path)
			cache := openCache(t, dir)
			refused := cache.Refused()
			if len(refused) != 1 || abi.CodeOf(refused[0]) != abi.Denied || !strings.Contains(refused[0].Error(), c.why) {
				t.Fatalf("refused is %v, want one that %s", refused, c.why)
			}
			if entries, err := cache.Entries(); err != nil || len(entries) != 0 || exists(path) {
				t.Errorf("%d entries are left: %v", len(entries), err)
			}
			compileWith(t, cache, readModule(t, "echo"))
			if again := openCache(t, dir); !exists(path) || len(again.Refused()) != 0 {
				t.Error("the entry that was compiled again does not verify")
			}
		})
	}
}

// A directory that other users can access or replace is not used, and the
// error says what to do.
func TestCacheRefusesDirectories(t *testing.T) {
	for _, c := range []struct {
		name, why string
		code      abi.Code
		spoil     func(dir string) error
	}{
		{"open", "can be reached by other users (mode 0750)", abi.Denied, func(dir string) error {
			return os.Chmod(filepath.Join(dir, Subdir), 0o750)
		}},
		{"open above", "can be written by other users (mode 0777)", abi.Denied, func(dir string) error { return os.Chmod(dir, 0o777) }},
		{"a link", "is a symbolic link", abi.Denied, func(dir string) error {
			moved := filepath.Join(dir, "moved")
			return errors.Join(os.Rename(filepath.Join(dir, Subdir), moved), os.Symlink(moved, filepath.Join(dir, Subdir)))
		}},
		{"a file", "is a file", abi.Denied, func(dir string) error {
			path := filepath.Join(dir, Subdir)
			return errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600))
		}},
		{"another's", "belongs to another user", abi.Denied, func(dir string) error {
			return os.Chown(filepath.Join(dir, Subdir), 12345, -1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, _ := filled(t)
			if err := c.spoil(dir); errors.Is(err, os.ErrPermission) {
				t.Skip("only root can give a file to another user")
			} else if err != nil {
				t.Fatal(err)
			}
			_, err := openAt(t.Context(), dir, "")
			var e *abi.Error
			if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Message, c.why) || e.Remedy == "" || e.IDs["path"] == "" {
				t.Fatalf("the error is %v", err)
			}
			if mode := "chmod 700 " + filepath.Join(dir, Subdir); c.name == "open" != strings.Contains(e.Remedy, mode) {
				t.Errorf("the remedy is %q", e.Remedy)
			} else if c.name == "open" { // which helps
				if err := os.Chmod(filepath.Join(dir, Subdir), 0o700); err != nil {
					t.Fatal(err)
				}
				if again := openCache(t, dir); len(again.Refused()) != 0 {
					t.Error("what was sound is refused")
				}
			}
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAt(t.Context(), file, ""); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("a file in the place of the directory answers %v", err)
	}
}

// An entry damaged while the cache is open fails the compilation; after
// Recheck the next one succeeds.
func TestCacheRecheck(t *testing.T) {
	dir, path := filled(t)
	c := openCache(t, dir)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(c.Wazero))
	_, err := r.CompileModule(t.Context(), readModule(t, "echo"))
	if err == nil || !Fault(err) {
		t.Fatalf("a damaged entry answers %v", err)
	}
	if err := c.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.Refused(); len(got) != 1 || len(c.Refused()) != 0 {
		t.Errorf("refused is %v", got)
	}
	if _, err := r.CompileModule(t.Context(), readModule(t, "echo")); err != nil {
		t.Errorf("the second attempt answers %v", err)
	}
	_, err = r.CompileModule(t.Context(), []byte("no module"))
	if err == nil || Fault(err) {
		t.Errorf("a bad module is told as a fault of the cache: %v", err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Unfinished entries of a crash are removed. They are not reported, since they are no sign of an attack.
func TestCacheUnfinishedEntries(t *testing.T) {
	dir, path := filled(t)
	half, work := path+".1.tmp", filepath.Join(dir, Subdir, "work-1")
	if err := errors.Join(os.WriteFile(half, []byte("half"), 0o600), os.Mkdir(work, 0o700)); err != nil {
		t.Fatal(err)
	}
	c := openCache(t, dir)
	if exists(half) || exists(work) || !exists(path) || len(c.Refused()) != 0 {
		t.Errorf("half %v, work %v, finished %v", exists(half), exists(work), exists(path))
	}
}

// A process that has compiled a module keeps the entry of another one, which has compiled
// it meanwhile. A third one that opens the cache at any time refuses nothing. The order is
// one in which a check between two steps of the first process once found a wrong tag.
func TestCacheOfTwoThatCompileTheSame(t *testing.T) {
	dir := t.TempDir()
	first, second := openCache(t, dir), openCache(t, dir)
	sound := func(when string, want int) {
		t.Helper()
		c := openCache(t, dir)
		entries, err := c.Entries()
		if refused := c.Refused(); len(refused) != 0 || len(entries) != want || err != nil {
			t.Errorf("%s: %d entries, refused %v, %v", when, len(entries), refused, err)
		}
	}
	for _, c := range []*Cache{first, second} {
		r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(c.Wazero))
		if _, err := r.CompileModule(t.Context(), readModule(t, "echo")); err != nil {
			t.Fatal(err)
		}
		defer r.Close(t.Context())
		sound("after compiling", 0)
	}
	mine, err := first.made()
	if err != nil || len(mine) != 1 {
		t.Fatalf("made %v, %v", mine, err)
	}
	// The bytes of another compilation differ now and then; so that they do here:
	path := filepath.Join(first.own.Path, mine[0])
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(content, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Cache{second, first} {
		if err := c.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		sound("after adding", 1)
	}
	kept, err := os.ReadFile(filepath.Join(first.own.Path, mine[0]))
	if err != nil || len(kept) != len(content) {
		t.Errorf("the first process uses %d bytes, %v", len(kept), err)
	}
}

// A process uses what another one compiled after it had opened the cache, and compiles again
// what another one has removed.
func TestCacheRefresh(t *testing.T) {
	dir := t.TempDir()
	first, second := openCache(t, dir), openCache(t, dir)
	compileWith(t, first, readModule(t, "echo"))
	if err := second.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := second.Entries()
	if err != nil || len(entries) != 1 || !second.known[entries[0].Name] {
		t.Fatalf("entries %v, known %v, %v", entries, second.known, err)
	}
	shared, own := filepath.Join(second.Dir, entries[0].Name), filepath.Join(second.own.Path, entries[0].Name)
	if to, err := os.Readlink(own); err != nil || to != shared {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if err := os.Remove(shared); err != nil {
		t.Fatal(err)
	}
	compileWith(t, second, readModule(t, "echo"))
	if again := openCache(t, dir); !exists(shared) || len(again.Refused()) != 0 {
		t.Errorf("there again %v, refused %v", exists(shared), again.Refused())
	}
}

// A killed process leaves its directory, which a later one removes.
func TestCacheRemovesDirectoriesOfKilledProcesses(t *testing.T) {
	dir, path := filled(t)
	left := filepath.Join(dir, Subdir, scratch.Cache+"123")
	past := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "in-use.lock"), nil, 0o600),
		os.Symlink(path, filepath.Join(left, "link")), os.Chtimes(left, past, past)); err != nil {
		t.Fatal(err)
	}
	openCache(t, dir)
	if exists(left) || !exists(path) {
		t.Errorf("left %v, the entry %v", exists(left), exists(path))
	}
}

// The oldest entries are removed when the cache is too large.
func TestCacheEvicts(t *testing.T) {
	dir, path := filled(t)
	c := openCache(t, dir)
	compileWith(t, c, readModule(t, "script"))
	name, err := filepath.Rel(c.Dir, path)
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Minute)
	if err := errors.Join(os.Truncate(path, cacheBytes), os.Chtimes(path, past, past)); err != nil { // a hole, but it counts
		t.Fatal(err)
	}
	compileWith(t, c, readModule(t, "behave"))
	entries, err := c.Entries()
	if err != nil || len(entries) != 2 || exists(path) || exists(c.tagPath(name)) {
		t.Errorf("%d entries are left, the old one %v: %v", len(entries), exists(path), err)
	}
}

// Many goroutines open, fill and check one directory at once, each with its
// own handles like separate processes. None fails, and the remaining entries
// verify.
func TestCacheShared(t *testing.T) {
	dir := t.TempDir()
	names := []string{"echo", "script", "behave", "tables"}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			c, err := openAt(t.Context(), dir, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(c.Wazero))
			for i := range names {
				if _, err := r.CompileModule(t.Context(), readModule(t, names[(i+n)%len(names)])); err != nil {
					t.Error(err)
				}
				if err := c.Seal(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c := openCache(t, dir)
	if entries, err := c.Entries(); err != nil || len(entries) > len(names) {
		t.Errorf("%d entries of %d modules: %v", len(entries), len(names), err)
	}
	compileWith(t, c, readModule(t, "echo"))
	if again := openCache(t, dir); len(again.Refused()) != 0 {
		t.Errorf("refused: %v", again.Refused())
	}
}

// A holder of the lock delays the process but does not block it forever.
func TestLockIsHeld(t *testing.T) {
	dir, _ := filled(t)
	holder := openCache(t, dir)
	if _, err := holder.lock.TryLock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockRetry)
	defer cancel()
	if _, err := openAt(ctx, dir, ""); abi.CodeOf(err) != abi.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if err := holder.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	openCache(t, dir)
}

// A cache that brings its own key counts as empty.
func TestCacheFromElsewhere(t *testing.T) {
	dir, path := filled(t) // with the key of another user, in effect
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, name := range []string{OldKey, "cache.key"} {
		if err := os.WriteFile(filepath.Join(dir, Subdir, name), make([]byte, 32), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := openCache(t, dir)
	if r := c.Refused(); len(r) != 1 || exists(path) || exists(filepath.Join(dir, Subdir, OldKey)) {
		t.Errorf("refused: %v", r)
	}
}

// The key is private to the user, and not in the cache.
func TestCacheRefusesKeys(t *testing.T) {
	for _, c := range []struct {
		name, why string
		key       func(dir string) (string, error)
	}{
		{"open", "can be reached by other users (mode 0640)", func(dir string) (string, error) {
			path := filepath.Join(t.TempDir(), "key")
			return path, os.WriteFile(path, make([]byte, 32), 0o640)
		}},
		{"a link", "is a symbolic link", func(dir string) (string, error) {
			path := filepath.Join(t.TempDir(), "key")
			return path, errors.Join(os.WriteFile(path+"2", make([]byte, 32), 0o600), os.Symlink(path+"2", path))
		}},
		{"a directory", "is a directory", func(dir string) (string, error) { return t.TempDir(), nil }},
		{"in the cache", "lies in the directory that it protects", func(dir string) (string, error) { return filepath.Join(dir, "key"), nil }},
		{"below the cache", "lies in the directory that it protects", func(dir string) (string, error) { return filepath.Join(dir, "a", "key"), nil }},
		{"in a directory that is open", "can be written by other users", func(dir string) (string, error) {
			open := t.TempDir()
			return filepath.Join(open, "key"), os.Chmod(open, 0o777)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			key, err := c.key(dir)
			if err != nil {
				t.Fatal(err)
			}
			_, err = openAt(t.Context(), dir, key)
			var e *abi.Error
			if !errors.As(err, &e) || e.Code != abi.Denied || !strings.Contains(e.Message, c.why) || e.Remedy == "" {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// readModule reads one of the modules that the tests of package host compile.
func readModule(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("..", "..", "testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
