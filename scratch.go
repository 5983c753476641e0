package terrarium

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed47132306/terrarium/abi"
)

// scratch is a temporary directory for session stores. Its process holds a lock in it,
// by which others see that it is in use.
type scratch struct {
	path string
	lock *flock.Flock
}

const (
	scratchPrefix = "terrarium-scratch-"
	scratchLock   = "in-use.lock"
	// scratchAge is how old a directory without a holder must be before it is taken
	// for abandoned: its process may be about to take the lock.
	scratchAge = time.Minute
)

var scratchName = regexp.MustCompile(`^` + scratchPrefix + `[0-9]+$`)

// makeScratch makes a directory, after removing those that killed processes have left.
func makeScratch(log *slog.Logger) (*scratch, error) {
	if err := sweepScratch(os.TempDir(), time.Now()); err != nil {
		log.Debug("temporary sessions of killed processes are left", "error", err)
	}
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return nil, noScratch(err)
	}
	s := &scratch{path: dir, lock: flock.New(filepath.Join(dir, scratchLock), flock.SetPermissions(0o600))}
	if err := s.lock.Lock(); err != nil {
		return nil, noScratch(errors.Join(err, s.remove()))
	}
	return s, nil
}

func noScratch(err error) error {
	return &abi.Error{Code: abi.Storage, Message: "there is no room for temporary session stores", Remedy: "set TMPDIR, or name a session directory", Err: err}
}

// sessions is the session directory.
func (s *scratch) sessions() string { return filepath.Join(s.path, "session") }

// remove removes the directory and what is in it.
func (s *scratch) remove() error {
	return errors.Join(os.RemoveAll(s.path), s.lock.Close())
}

// sweepScratch removes the directories in tmp that were made by makeScratch for this
// user and that no process holds. It follows no links, and leaves everything else.
func sweepScratch(tmp string, now time.Time) (err error) {
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.IsDir() && scratchName.MatchString(e.Name()) {
			err = errors.Join(err, sweepOne(root, e.Name(), now))
		}
	}
	return err
}

func sweepOne(root *os.Root, name string, now time.Time) (err error) {
	before, err := root.Lstat(name)
	if err != nil || !privateDirectory(before) || now.Sub(before.ModTime()) < scratchAge {
		return gone(err)
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return gone(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if opened, err := dir.Stat("."); err != nil || !os.SameFile(before, opened) {
		return gone(err)
	}
	lock, err := dir.Lstat(scratchLock)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone(root.Remove(name)) // only if nothing is in it
	case err != nil || !lock.Mode().IsRegular():
		return err
	}
	held := flock.New(filepath.Join(root.Name(), name, scratchLock), flock.SetFlag(os.O_RDWR))
	if free, err := held.TryLock(); err != nil || !free {
		return gone(err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	entries, err := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		err = errors.Join(err, dir.RemoveAll(e.Name()))
	}
	return errors.Join(err, gone(root.Remove(name)))
}

// gone leaves an error out that says that something is not there: another process
// sweeps too.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
