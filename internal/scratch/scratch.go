// Package scratch makes directories for temporary files. If a process is
// killed, the next one removes its directories.
package scratch

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

// Dir is a temporary directory. A file in it, which its process has locked, shows other
// processes that it is in use.
type Dir struct {
	Path string
	lock *flock.Flock
}

// Prefixes of the names of directories, by their content.
const (
	Sessions = "terrarium-scratch-"
	Code     = "terrarium-code-"
	Cache    = "terrarium-cache-"
)

const (
	lockName = "in-use.lock"
	// age is how old a directory without a lock holder must be to count as
	// abandoned: a younger process may be about to take the lock.
	age = time.Minute
)

var names = regexp.MustCompile(`^(` + Sessions + `|` + Code + `|` + Cache + `)[0-9]+$`)

// Make makes a directory in the system's directory for temporary files, after it has
// removed the directories of killed processes.
func Make(prefix string, log *slog.Logger) (*Dir, error) { return MakeIn(os.TempDir(), prefix, log) }

// MakeIn is Make for another parent directory.
func MakeIn(parent, prefix string, log *slog.Logger) (*Dir, error) {
	sweepIn(parent, log)
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, noRoom(err)
	}
	d := &Dir{Path: path, lock: flock.New(filepath.Join(path, lockName), flock.SetPermissions(0o600))}
	if err := d.lock.Lock(); err != nil {
		return nil, noRoom(errors.Join(err, d.Remove()))
	}
	return d, nil
}

func noRoom(err error) error {
	return &abi.Error{Code: abi.Storage, Message: "temporary files cannot be made", Remedy: "set TMPDIR to a directory that is writable and has space", Err: err}
}

// Remove removes the directory and its content.
func (d *Dir) Remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// Sweep removes the directories of killed processes of this user. It only logs
// failures.
func Sweep(log *slog.Logger) { sweepIn(os.TempDir(), log) }

func sweepIn(parent string, log *slog.Logger) {
	if err := sweep(parent, time.Now()); err != nil {
		log.Debug("temporary files of killed processes cannot be removed", "error", err)
	}
}

// sweep removes the directories in tmp that were made by Make for this user
// and that no process holds. It follows no links, and does not touch anything
// else.
func sweep(tmp string, now time.Time) (err error) {
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.IsDir() && names.MatchString(e.Name()) {
			err = errors.Join(err, sweepOne(root, e.Name(), now))
		}
	}
	return err
}

func sweepOne(root *os.Root, name string, now time.Time) (err error) {
	before, err := root.Lstat(name)
	if err != nil || !privateDirectory(before) || now.Sub(before.ModTime()) < age {
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
	lock, err := dir.Lstat(lockName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone(root.Remove(name)) // only if it is empty
	case err != nil || !lock.Mode().IsRegular():
		return err
	}
	held := flock.New(filepath.Join(root.Name(), name, lockName), flock.SetFlag(os.O_RDWR))
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

// gone returns nil for an error about a missing file, because another process
// may sweep too, and else err.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
