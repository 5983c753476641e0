package codecache

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/scratch"
	"github.com/tetratelabs/wazero"
)

// Cache is the directory that keeps compiled code between processes. wazero
// maps the files it finds there as executable and checks little of them, so
// this package controls what wazero finds:
//
//   - The directory and all entries belong to the user of the process and are
//     not accessible to other users; no link leads elsewhere.
//   - Every entry has a tag, an HMAC over its name and its bytes with a key
//     that only the user can read and that lies outside the directory: a cache
//     unpacked from an archive, even with a key, does not verify. An entry
//     without the right tag, because it was torn, altered, or copied from
//     elsewhere, is removed before wazero opens the directory.
//
// A program that can write to the directory as the same user can also trace
// the process; no file protects against that.
//
// Processes share the directory, but wazero reads and writes only a directory of its
// process, which lies below it and has links to the entries that were checked. Entries
// are tagged, put in place and checked while a file lock keeps others out. So no process
// finds an entry that another one has not tagged yet, and none replaces an entry of
// another one. All methods may be called from any goroutine.
type Cache struct {
	Dir    string // absolute, below the given directory
	key    []byte
	lock   *flock.Flock
	own    *scratch.Dir // the directory of this process
	Wazero wazero.CompilationCache

	mu       sync.Mutex
	known    map[string]bool // entries that have a tag, and to which own has links
	refusals []error
}

const (
	Subdir  = "compiled" // below the given directory
	OldKey  = "key"      // where earlier versions kept the key
	Lock    = "lock"
	Tags    = "tags"
	Modules = "modules" // maps the sum of a module to the name of its entry

	// cacheBytes is how much compiled code is kept, in bytes. The oldest
	// entries are removed first. The whole cache is read when it is opened, at
	// about a gigabyte a second.
	cacheBytes = 512 << 20

	// smallBytes exceeds the size of any file that is not an entry. Such files
	// hold a tag or the name of an entry.
	smallBytes = 4096

	// lockRetry is the interval for retrying a lock that another process
	// holds.
	lockRetry = 10 * time.Millisecond
)

// Open checks the cache below dir, creates it if there is none, and opens it for wazero.
// It fails if the directory cannot be kept private. An entry that does not verify is only
// removed, and reported by Refused. Open waits for other processes that check the same
// directory, or until ctx is done.
func Open(ctx context.Context, dir, keyFile string, log *slog.Logger) (*Cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, unusable(dir, err)
	}
	c := &Cache{Dir: filepath.Join(abs, Subdir), known: map[string]bool{}}
	if err := c.makePrivate(); err != nil {
		return nil, err
	}
	if err := c.freeLock(); err != nil {
		return nil, unusable(c.Dir, err)
	}
	c.lock = flock.New(filepath.Join(c.Dir, Lock), flock.SetPermissions(0o600))
	err = c.locked(ctx, func() error {
		if err := c.makeParts(); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(c.Dir, OldKey)); err != nil {
			return err
		}
		if err := c.loadKey(ctx, keyFile); err != nil {
			return err
		}
		if c.own, err = scratch.MakeIn(c.Dir, scratch.Cache, log); err != nil {
			return err
		}
		if err := c.verify(); err != nil {
			return errors.Join(err, c.own.Remove())
		}
		if c.Wazero, err = wazero.NewCompilationCacheWithDir(c.own.Path); err != nil {
			return errors.Join(err, c.own.Remove())
		}
		return nil
	})
	if err != nil {
		return nil, unusable(c.Dir, err)
	}
	return c, nil
}

// Refresh finds the entries that other processes have added. Call it before a
// compilation, which then takes them.
func (c *Cache) Refresh(ctx context.Context) error {
	err := c.locked(ctx, func() error {
		entries, err := c.Entries()
		if err != nil {
			return err
		}
		return c.checkAll(slices.DeleteFunc(entries, func(e entry) bool { return c.known[e.Name] }))
	})
	if err != nil {
		return unusable(c.Dir, err)
	}
	return nil
}

// Seal adds what wazero has compiled since the last call. Call it after a compilation.
func (c *Cache) Seal(ctx context.Context) error {
	c.mu.Lock()
	made, err := c.made()
	c.mu.Unlock()
	if err != nil {
		return unusable(c.Dir, err)
	}
	if len(made) == 0 {
		return nil
	}
	err = c.locked(ctx, func() error {
		for _, name := range made {
			if err := c.add(name, filepath.Join(c.own.Path, name)); err != nil {
				return err
			}
		}
		return c.evict()
	})
	if err != nil {
		return unusable(c.Dir, err)
	}
	return nil
}

// WorkDir makes a directory for a compilation in another process. The directory is
// removed with this cache at the latest.
func (c *Cache) WorkDir() (string, error) { return os.MkdirTemp(c.own.Path, "work-") }

// Recheck checks all entries again and removes those that do not verify. Call
// it when a compilation failed because of an entry damaged after the cache was
// opened: the remaining entries are sound, and the next attempt compiles the
// module again.
func (c *Cache) Recheck(ctx context.Context) error {
	if err := c.locked(ctx, c.verify); err != nil {
		return unusable(c.Dir, err)
	}
	return nil
}

// Refused returns an error for each entry removed since the last call because
// it did not verify.
func (c *Cache) Refused() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.refusals
	c.refusals = nil
	return r
}

// Close ends the use of the directory. No runtime may use the cache
// afterwards.
func (c *Cache) Close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.Wazero.Close(ctx), c.own.Remove(), c.lock.Close())
}

// locked runs f while no other process, and no other user of this value,
// accesses the entries.
func (c *Cache) locked(ctx context.Context, f func() error) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.lock.TryLockContext(ctx, lockRetry); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.lock.Unlock()) }()
	return f()
}

// makePrivate creates the directory, or checks that it may hold executable
// code.
func (c *Cache) makePrivate() error {
	if err := os.MkdirAll(filepath.Dir(c.Dir), 0o700); err != nil {
		return unusable(c.Dir, err)
	}
	if err := checkAncestors(filepath.Dir(c.Dir)); err != nil {
		return err
	}
	if err := os.Mkdir(c.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unusable(c.Dir, err)
	}
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return unusable(c.Dir, err)
	}
	switch why := unfit(info, fs.ModeDir); {
	case why == "":
		return nil
	case info.IsDir() && ownedByUser(info):
		return cacheExposed(c.Dir, why, "make it private (chmod 700 "+c.Dir+"), after which every entry is checked, or use another directory for the cache")
	default:
		return cacheExposed(c.Dir, why, "use another directory for the cache; this one has not been changed")
	}
}

// freeLock removes anything that cannot be the lock: a link would create the
// lock elsewhere, and opening a named pipe blocks.
func (c *Cache) freeLock() error {
	info, err := os.Lstat(filepath.Join(c.Dir, Lock))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || info.Mode().IsRegular():
		return err
	}
	return c.refuse(Lock, "is a "+describe(info.Mode()))
}

// makeParts creates the directories for data about entries. Directories that
// are not private are replaced: compiling restores everything in them.
func (c *Cache) makeParts() error {
	for _, name := range []string{Tags, Modules} {
		path := filepath.Join(c.Dir, name)
		info, err := os.Lstat(path)
		if err == nil {
			if why := unfit(info, fs.ModeDir); why != "" {
				err = c.refuse(name, why)
			}
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// checkAncestors finds directories in which another user could replace the
// cache.
func checkAncestors(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return unusable(dir, err)
	}
	for {
		info, err := os.Lstat(dir)
		if err != nil {
			return unusable(dir, err)
		}
		if why := replaceable(info); why != "" {
			return cacheExposed(dir, why, "use a cache directory that only you can write to, all of its parents included")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

// keyPath returns the default path of the key.
func keyPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", &abi.Error{Code: abi.Unavailable, Op: "open compilation cache", Message: "there is no directory for the key of the compilation cache",
			Remedy: "set HOME, or use no cache", Err: err}
	}
	return filepath.Join(dir, "terrarium", "cache.key"), nil
}

// loadKey reads the key, or makes one. Without the old key no entry verifies.
func (c *Cache) loadKey(ctx context.Context, path string) (err error) {
	if path == "" {
		if path, err = keyPath(); err != nil {
			return err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return keyUnusable(path, err)
	}
	if err := checkAncestors(dir); err != nil {
		return err
	}
	if within(dir, filepath.Dir(c.Dir)) {
		return cacheExposed(path, "lies in the directory that it protects", "use another directory for the cache")
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600)) // other caches share the key
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return keyUnusable(path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.makeKey(path)
	case err != nil:
		return keyUnusable(path, err)
	}
	if why := unfit(info, 0); why != "" {
		return cacheExposed(path, why, "make it private (chmod 600), or move it away: then a new key is made, and modules are compiled again")
	}
	if c.key, err = os.ReadFile(path); err != nil {
		return keyUnusable(path, err)
	}
	if len(c.key) != sha256.Size {
		return c.makeKey(path)
	}
	return nil
}

// within reports whether a directory equals another or lies below it.
func within(dir, other string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	if other, err = filepath.EvalSymlinks(other); err != nil {
		return true
	}
	rel, err := filepath.Rel(other, dir)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

func keyUnusable(path string, err error) *abi.Error {
	return &abi.Error{Code: abi.Unavailable, Op: "open compilation cache", Message: "the key of the compilation cache cannot be read or made",
		Remedy: "set XDG_CONFIG_HOME (on Linux) or HOME to a directory that is writable and not in the cache, or use no cache", IDs: map[string]string{"path": path}, Err: err}
}

func (c *Cache) makeKey(path string) error {
	c.key = make([]byte, sha256.Size)
	rand.Read(c.key) // never fails
	if err := replaceFile(path, c.key); err != nil {
		return keyUnusable(path, err)
	}
	return nil
}

// mac returns the tag of an entry for the content of a file.
func (c *Cache) mac(name, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := hmac.New(sha256.New, c.key)
	fmt.Fprintf(h, "%d %s\n", len(name), name)
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// readSmall reads a tag or the record of a module. The cache writes only short
// regular files, so others are refused.
func readSmall(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > smallBytes {
		return nil, fmt.Errorf("%s was not written by a cache", path)
	}
	return os.ReadFile(path)
}

func (c *Cache) tagPath(name string) string {
	return filepath.Join(c.Dir, Tags, strings.ReplaceAll(name, string(filepath.Separator), "+"))
}

// replaceFile writes a private file atomically.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "*"+unfinished) // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Fault reports whether the cache, and not the module, made a compilation
// fail: a damaged entry, or a full disk.
func Fault(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link) || strings.HasPrefix(err.Error(), "compilationcache: ") // wazero's wording
}

func unusable(path string, err error) *abi.Error {
	var known *abi.Error
	if errors.As(err, &known) {
		return known
	}
	return &abi.Error{Code: abi.Unavailable, Op: "open compilation cache", Message: "the compilation cache cannot be used",
		Remedy: "use a writable directory, or no cache", IDs: map[string]string{"path": path}, Err: err}
}

func cacheExposed(path, why, remedy string) *abi.Error {
	return &abi.Error{Code: abi.Denied, Op: "open compilation cache",
		Message: fmt.Sprintf("%s %s, and it would hold executable code", path, why),
		Remedy:  remedy, IDs: map[string]string{"path": path}}
}
