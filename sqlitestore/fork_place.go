package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/seed47132306/terrarium/abi"
)

// unfinishedFork is what the lock of a directory says that is to become a fork. Who
// opens a session directory writes something else there.
const unfinishedFork = "an unfinished fork\n"

// forkPlace is where a fork is to appear. It is made beside, in a directory whose
// name has a number behind it, and gets its name when it is whole.
type forkPlace struct {
	dir   string
	hooks hooks
}

// placeOfFork checks where a fork is to be made, and removes what attempts to make it
// there have left that were killed.
func (k *catalog) placeOfFork(dir string) (p forkPlace, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return p, storageError("fork", dir, err)
	}
	if inside(dir, filepath.Dir(k.path)) {
		return p, &abi.Error{
			Code: abi.InvalidArgument, Op: "fork", Message: fmt.Sprintf("%s is in the session directory that is forked", dir),
			Remedy: "name a directory outside of it", IDs: map[string]string{"path": dir},
		}
	}
	p = forkPlace{dir, k.hooks}
	if err := p.clear(); err != nil {
		return p, unwritable("fork", dir, err)
	}
	if files, err := os.ReadDir(dir); err == nil && len(files) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		return p, exists("fork", dir)
	}
	return p, nil
}

// inside reports whether a path, of which the end may not exist yet, is a directory or
// in it, by whatever links it is reached.
func inside(path, dir string) bool {
	top, err := os.Stat(dir)
	if err != nil {
		return false
	}
	path = behindLinks(path)
	for ; ; path = filepath.Dir(path) {
		if at, err := os.Stat(path); err == nil && os.SameFile(at, top) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

// behindLinks is the path with the links resolved that its existing beginning has.
func behindLinks(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// clear removes unfinished forks of which nobody is at work any more. Anything else
// that is called like one stays.
func (p forkPlace) clear() error {
	paths, err := filepath.Glob(globEscape(p.dir) + partialSuffix + "*")
	if err != nil {
		return err
	}
	for _, path := range paths {
		number := strings.TrimPrefix(path, p.dir+partialSuffix)
		if number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if err := clearUnfinished(path); err != nil {
			return err
		}
	}
	return nil
}

// clearUnfinished removes one. Its process may have been killed before there was a lock,
// or before that said what the directory is: then there is nothing else in it.
func clearUnfinished(path string) error {
	lockPath := filepath.Join(path, lockName)
	content, err := os.ReadFile(lockPath)
	if errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(path) // which does nothing if there is anything in it
		return nil
	}
	files, readErr := os.ReadDir(path)
	if err != nil || readErr != nil || string(content) != unfinishedFork && (len(content) > 0 || len(files) > 1) {
		return nil
	}
	lock := flock.New(lockPath)
	locked, err := lock.TryLock()
	if err == nil && locked {
		err = os.RemoveAll(path)
	}
	return errors.Join(err, lock.Close())
}

// fill has the directory made, and gives it its name. Until then, whoever makes it
// holds its lock, which tells it from one that a killed process has left.
func (p forkPlace) fill(plant func(dir string) error) error {
	partial, err := os.MkdirTemp(filepath.Dir(p.dir), filepath.Base(p.dir)+partialSuffix)
	if err != nil {
		return unwritable("fork", p.dir, err)
	}
	lock, err := lockUnfinished(partial)
	if err != nil {
		return errors.Join(unwritable("fork", p.dir, err), os.RemoveAll(partial))
	}
	defer func() { _ = lock.Close() }()
	if err = p.hooks.at(pointPlanting, partial); err == nil {
		err = plant(partial)
	}
	if err == nil {
		err = p.install(partial)
	}
	if err != nil {
		return errors.Join(storageError("fork", p.dir, err), os.RemoveAll(partial))
	}
	// It says nothing wrong any more, and does no harm if it does.
	_ = os.WriteFile(filepath.Join(p.dir, lockName), ownerOfLock(), 0o644)
	return nil
}

// lockUnfinished takes the lock of a directory that was just made.
func lockUnfinished(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockName)
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s is locked", path)
	}
	if err == nil {
		err = os.WriteFile(path, []byte(unfinishedFork), 0o644)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// install gives a directory that is whole its name.
func (p forkPlace) install(partial string) error {
	if err := errors.Join(os.Chmod(partial, 0o755), p.hooks.at(pointForking, partial)); err != nil {
		return err
	}
	// An empty directory may be there; what is not empty stays.
	if err := os.Remove(p.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(partial, p.dir); err != nil {
		return err
	}
	return errors.Join(p.hooks.syncDirectory(filepath.Dir(p.dir)), p.hooks.at(pointForked, p.dir))
}
