//go:build unix

package host

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/codecache"
)

// strangersCache is a cache directory filled by an attacker: with the code of
// one module, and with the code of another module under the attacker's key.
type strangersCache struct {
	t       *testing.T
	entry   string // below dir, of the module to compile
	foreign []byte // code that must not run instead
	dir     string // with the entries
}

func newStrangersCache(t *testing.T) (s strangersCache, named string) {
	t.Helper()
	own := os.Getenv("XDG_CONFIG_HOME")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir, entry := compiledInto(t, "init_traps")
	s = strangersCache{t: t, foreign: readFile(t, filepath.Join(dir, codecache.Subdir, entry))}
	t.Setenv("XDG_CONFIG_HOME", own)
	named, s.entry = compiledInto(t, "echo")
	s.dir = filepath.Join(named, codecache.Subdir)
	return s, named
}

// compiledInto makes a cache that has a module, and returns the name of its
// entry.
func compiledInto(t *testing.T, name string) (dir, entry string) {
	t.Helper()
	dir = t.TempDir()
	h, err := New(t.Context(), Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	before, err := h.cache.Entries()
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Compile(t.Context(), readModule(t, name))
	if err != nil {
		t.Fatal(err)
	}
	after, err := h.cache.Entries()
	if err := errors.Join(err, m.Close(t.Context()), h.Close(t.Context())); err != nil || len(after) != len(before)+1 {
		t.Fatalf("%d entries, then %d: %v", len(before), len(after), err)
	}
	known := map[string]bool{}
	for _, e := range before {
		known[e.Name] = true
	}
	for _, e := range after {
		if !known[e.Name] {
			entry = e.Name
		}
	}
	return dir, entry
}

func (s strangersCache) must(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s strangersCache) at(name string) string { return filepath.Join(s.dir, name) }

// replace replaces a file or directory of the cache.
func (s strangersCache) replace(name string, put func(path string) error) {
	s.t.Helper()
	s.must(os.RemoveAll(s.at(name)), put(s.at(name)))
}

func (s strangersCache) tag() string {
	return filepath.Join(codecache.Tags, strings.ReplaceAll(s.entry, string(filepath.Separator), "+"))
}

func (s strangersCache) module() string {
	return filepath.Join(codecache.Modules, hexSum([32]byte{1}))
}

func pipe(path string) error      { return syscall.Mkfifo(path, 0o600) }
func directory(path string) error { return os.MkdirAll(filepath.Join(path, "deep"), 0o700) }

// sparse makes a file that would take minutes to read.
func sparse(path string) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
}

func (s strangersCache) elsewhere(content []byte) (path string) {
	s.t.Helper()
	path = filepath.Join(s.t.TempDir(), "precious")
	s.must(os.WriteFile(path, content, 0o600))
	return path
}

// strangersCaches are the attacks.
var strangersCaches = map[string]func(s strangersCache){
	"foreign code": func(s strangersCache) { s.must(os.WriteFile(s.at(s.entry), s.foreign, 0o600)) },
	"foreign code without a tag": func(s strangersCache) {
		s.must(os.WriteFile(s.at(s.entry), s.foreign, 0o600), os.Remove(s.at(s.tag())))
	},
	"an entry that is a link to foreign code": func(s strangersCache) {
		to := s.elsewhere(s.foreign)
		s.replace(s.entry, func(path string) error { return os.Symlink(to, path) })
	},
	"an entry that is a pipe":      func(s strangersCache) { s.replace(s.entry, pipe) },
	"an entry that is a directory": func(s strangersCache) { s.replace(s.entry, directory) },
	"an entry that is huge":        func(s strangersCache) { s.replace(s.entry, sparse) },
	"an entry cut short":           func(s strangersCache) { s.must(os.Truncate(s.at(s.entry), 100)) },
	"an entry others can write":    func(s strangersCache) { s.must(os.Chmod(s.at(s.entry), 0o666)) },
	"entry and tag under the name of another module": func(s strangersCache) {
		other := filepath.Join(filepath.Dir(s.entry), strings.Repeat("0", 64))
		o := s
		o.entry = other
		s.must(os.Rename(s.at(s.entry), s.at(other)), os.Rename(s.at(s.tag()), s.at(o.tag())))
	},
	"a tag that is a pipe": func(s strangersCache) { s.replace(s.tag(), pipe) },
	"a tag that is a link": func(s strangersCache) {
		s.replace(s.tag(), func(path string) error { return os.Symlink("/dev/zero", path) })
	},
	"a tag that is huge": func(s strangersCache) { s.replace(s.tag(), sparse) },
	"tags that are a file": func(s strangersCache) {
		s.replace(codecache.Tags, func(path string) error { return os.WriteFile(path, nil, 0o600) })
	},
	"tags others can reach": func(s strangersCache) { s.must(os.Chmod(s.at(codecache.Tags), 0o701)) },
	"modules that are a link": func(s strangersCache) {
		to := filepath.Dir(s.elsewhere(nil))
		s.replace(codecache.Modules, func(path string) error { return os.Symlink(to, path) })
	},
	"a module that is a pipe": func(s strangersCache) { s.replace(s.module(), pipe) },
	"a module that is huge":   func(s strangersCache) { s.replace(s.module(), sparse) },
	"a lock that is a link elsewhere": func(s strangersCache) {
		to := filepath.Join(s.t.TempDir(), "made")
		s.t.Cleanup(func() {
			if exists(to) {
				s.t.Error("a file was made elsewhere")
			}
		})
		s.replace(codecache.Lock, func(path string) error { return os.Symlink(to, path) })
	},
	"a lock that is a pipe":      func(s strangersCache) { s.replace(codecache.Lock, pipe) },
	"a lock that is a directory": func(s strangersCache) { s.replace(codecache.Lock, directory) },
	"an old key that is a directory": func(s strangersCache) {
		s.replace(codecache.OldKey, directory)
	},
	"a directory of entries that is a link": func(s strangersCache) {
		to := s.t.TempDir()
		s.must(os.Chmod(to, 0o700), os.WriteFile(filepath.Join(to, filepath.Base(s.entry)), s.foreign, 0o600))
		s.replace(filepath.Dir(s.entry), func(path string) error { return os.Symlink(to, path) })
	},
}

// TestStrangersCaches opens each of these caches and runs a module. Foreign code never
// runs, nothing hangs or is written elsewhere, and the cache works again.
func TestStrangersCaches(t *testing.T) {
	for name, attack := range strangersCaches {
		t.Run(name, func(t *testing.T) {
			s, dir := newStrangersCache(t)
			attack(s)
			h := newHost(t, Options{CacheDir: dir})
			m := compile(t, h, readModule(t, "echo"))
			instantiate(t, m, &abi.Limits{}) // the foreign module traps
			if code := readFile(t, s.at(s.entry)); string(code) == string(s.foreign) {
				t.Error("the code of the stranger is in use")
			}
			if refused := refusedBy(t, dir); len(refused) != 0 {
				t.Errorf("opened again, it refuses %v", refused)
			}
		})
	}
}

// refusedBy opens a cache, and returns the entries that it refuses.
func refusedBy(t *testing.T, dir string) []error {
	t.Helper()
	c, err := codecache.Open(t.Context(), dir, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	return c.Refused()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
