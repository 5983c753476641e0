package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

const (
	// unfinishedMark is the content of the lock of a directory in which something is
	// being made. A process that opens a session directory writes something else there.
	unfinishedMark = "unfinished\n"
	// asideTries is how often an unfinished directory is made again after another process
	// has removed it because it seemed to be left by a killed one.
	asideTries = 10
)

// aside is a directory beside a place, in which new content for that place is made. Its
// name is that of the place with a suffix and a number. A lock in it, which the process
// that makes the content holds, distinguishes it from a directory that a killed process
// has left.
type aside struct {
	dir   string
	lock  *flock.Flock
	hooks failpoint.Hooks
}

// setAside makes such a directory. Its mark is durable before anything else is in it, so
// that the directory can be recognized even after a power loss.
func setAside(place string, h failpoint.Hooks) (*aside, error) {
	var last error
	for range asideTries {
		dir, err := os.MkdirTemp(filepath.Dir(place), filepath.Base(place)+files.PartialSuffix)
		if err != nil {
			return nil, err
		}
		lock, err := lockUnfinished(dir, h)
		if err == nil {
			return &aside{dir, lock, h}, nil
		}
		last = errors.Join(err, os.RemoveAll(dir))
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errLocked) {
			break
		}
	}
	return nil, last
}

var errLocked = errors.New("another process has the lock")

// lockUnfinished takes the lock of a directory that was just made.
func lockUnfinished(dir string, h failpoint.Hooks) (*flock.Flock, error) {
	path := filepath.Join(dir, lockName)
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|files.NoFollow))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s: %w", path, errLocked)
	}
	if err == nil {
		err = files.WriteFile(path, []byte(unfinishedMark))
	}
	if err == nil {
		err = errors.Join(h.SyncFile(path), h.SyncDirectory(dir))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// keep releases the directory, which has another name by now.
func (a *aside) keep() { _ = a.lock.Close() }

// remove removes the directory with what is in it.
func (a *aside) remove() error { return errors.Join(removeUnfinished(a.dir, a.hooks), a.lock.Close()) }

// removeUnfinished removes such a directory. The lock is removed last, so that the
// directory can be recognized as long as it has content.
func removeUnfinished(dir string, h failpoint.Hooks) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	if err := h.SyncDirectory(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// clearAsides removes the directories beside a place that killed processes have left.
// Anything else with such a name stays.
func clearAsides(place string, h failpoint.Hooks) error {
	paths, err := filepath.Glob(globEscape(place) + files.PartialSuffix + "*")
	if err != nil {
		return err
	}
	for _, path := range paths {
		number := strings.TrimPrefix(path, place+files.PartialSuffix)
		if number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if err := clearAside(path, h); err != nil {
			return err
		}
	}
	return nil
}

// clearAside removes one such directory. Its process may have been killed before the lock
// existed, or before the lock had its mark: then there is nothing else in the directory.
func clearAside(path string, h failpoint.Hooks) error {
	lockPath := filepath.Join(path, lockName)
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return nil // a link with such a name may lead anywhere
	}
	content, err := files.ReadFile(lockPath, mostOfLock)
	if errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(path) // which does nothing if there is anything in it
		return nil
	}
	listed, readErr := os.ReadDir(path)
	if err != nil || readErr != nil || string(content) != unfinishedMark && (len(content) > 0 || len(listed) > 1) {
		return nil
	}
	lock := flock.New(lockPath, flock.SetFlag(os.O_RDWR|files.NoFollow))
	locked, err := lock.TryLock()
	if err == nil && locked {
		err = removeUnfinished(path, h)
	}
	return errors.Join(err, lock.Close())
}
