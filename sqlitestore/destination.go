package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// destination is where a directory or a file will appear: a fork, or an export. It is made
// under a temporary name, and gets its own when it is complete and durable. So an attempt
// that is killed, or interrupted by a power failure, can be repeated.
type destination struct {
	op, path string
	hooks    failpoint.Hooks
}

// destinationOf is a destination for a copy from the session directory. It is outside of
// that directory.
func (k *sessions) destinationOf(op, path string) (destination, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return destination{}, storageError(op, path, err)
	}
	if inside(path, k.Dir()) {
		return destination{}, &abi.Error{
			Code: abi.InvalidArgument, Op: op, Message: fmt.Sprintf("%s is inside the session directory that is copied", path),
			Remedy: "name a place outside of it", IDs: map[string]string{"path": path},
		}
	}
	return destination{op, path, k.hooks}, nil
}

// clear removes what killed attempts have left, and checks that the place is free: if a
// directory is to be made, an empty directory counts as free.
func (p destination) clear(directory bool) error {
	if err := clearAsides(p.path, p.hooks); err != nil {
		return unwritable(p.op, p.path, err)
	}
	_, err := os.Lstat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritable(p.op, p.path, err)
	}
	if files, err := os.ReadDir(p.path); directory && err == nil && len(files) == 0 {
		return nil
	}
	return exists(p.op, p.path)
}

// inside reports whether a path is a directory or in it, even through links. The end of
// the path need not exist yet.
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

// behindLinks resolves the links in the existing beginning of a path.
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

// makeDirectory makes a directory with the given content under a temporary name, and
// renames it.
func (p destination) makeDirectory(fill func(dir string) error) error {
	a, err := setAside(p.path, p.hooks)
	if err != nil {
		return unwritable(p.op, p.path, err)
	}
	if err = p.hooks.At(failpoint.Planting, a.dir); err == nil {
		err = fill(a.dir)
	}
	if err == nil {
		err = p.installDirectory(a.dir)
	}
	if err != nil {
		return errors.Join(storageError(p.op, p.path, err), a.remove())
	}
	defer a.keep()
	if err := p.arrived(failpoint.Forked); err != nil {
		return err
	}
	// The lock need no longer mark the directory as unfinished. Before the new name was
	// durable, the mark was needed in case the old name came back. A failure does no harm.
	_ = files.WriteFile(filepath.Join(p.path, lockName), ownerOfLock())
	return nil
}

// installDirectory gives a complete directory its name.
func (p destination) installDirectory(made string) error {
	if err := errors.Join(os.Chmod(made, 0o755), p.hooks.At(failpoint.Forking, made)); err != nil {
		return err
	}
	// An empty directory may have the name already. One with content is not removed.
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.hooks.Rename(made, p.path)
}

// makeFile makes a file with the given content under a temporary name, and then gives it
// its own.
func (p destination) makeFile(fill func(path string) error) error {
	a, err := setAside(p.path, p.hooks)
	if err != nil {
		return unwritable(p.op, p.path, err)
	}
	made := filepath.Join(a.dir, "made")
	if err = fill(made); err == nil {
		err = p.hooks.At(failpoint.Exporting, made)
	}
	if err == nil {
		err = p.installFile(made)
	}
	return errors.Join(storageError(p.op, p.path, err), storageError(p.op, p.path, a.remove()))
}

// installFile gives a complete file its name.
func (p destination) installFile(made string) error {
	// Unlike a rename, a link does not replace what another process has put there.
	err := p.hooks.Link(made, p.path)
	if errors.Is(err, fs.ErrExist) {
		return exists(p.op, p.path)
	}
	if err != nil {
		return err
	}
	return p.arrived(failpoint.Exported)
}

// arrived makes the name of a durable file or directory durable.
func (p destination) arrived(point failpoint.Point) error {
	err := errors.Join(p.hooks.SyncDirectory(filepath.Dir(p.path)), p.hooks.At(point, p.path))
	return storageError(p.op, p.path, err)
}
