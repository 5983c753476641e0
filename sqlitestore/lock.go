package sqlitestore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// mostOfLock bounds what is read of a lock file, which names its owner.
const mostOfLock = 256

// ownership keeps other processes out of a session directory: a lock on the file lock in
// it, and one on the directory itself. The file can be removed while it is locked, and
// then the next process would lock a new file of the same name; the directory stays.
type ownership struct {
	file, dir *flock.Flock
}

// Path returns the path of the lock file.
func (o *ownership) Path() string { return o.file.Path() }

// Close releases the locks.
func (o *ownership) Close() error { return errors.Join(o.file.Close(), o.dir.Close()) }

// lockDirectory locks a session directory for this process. The file stays when the lock
// is released: removing it would race with the next owner.
func lockDirectory(dir string) (*ownership, error) {
	path := filepath.Join(dir, lockName)
	if _, err := files.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, storageError("open", path, err)
	}
	own := &ownership{flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|files.NoFollow)), flock.New(dir, flock.SetFlag(os.O_RDONLY))}
	locked, err := own.file.TryLock()
	if err != nil {
		return nil, errors.Join(storageError("open", path, err), own.Close())
	}
	if locked {
		// Some file systems, and Windows, cannot lock a directory: then the file must be
		// enough.
		if whole, err := own.dir.TryLock(); err == nil {
			locked = whole
		}
	}
	if !locked {
		return nil, errors.Join(inUse(dir, path), own.Close())
	}
	if err := files.WriteFile(path, ownerOfLock()); err != nil {
		return nil, errors.Join(storageError("open", path, err), own.Close())
	}
	return own, nil
}

// ownerOfLock returns the content of a lock file that names this process as its owner.
func ownerOfLock() []byte { return fmt.Appendln(nil, os.Getpid(), filepath.Base(os.Args[0])) }

func inUse(dir, path string) error {
	owner := "another process"
	ids := map[string]string{"path": dir}
	if content, err := files.ReadFile(path, mostOfLock); err == nil {
		number, program, _ := strings.Cut(string(bytes.TrimSpace(content)), " ")
		if pid, err := strconv.Atoi(number); err == nil {
			owner = fmt.Sprintf("process %d", pid)
			ids["pid"] = strconv.Itoa(pid)
			if program != "" {
				owner += " (" + program + ")"
			}
		}
	}
	return &abi.Error{
		Code:    abi.Unavailable,
		Op:      "open",
		Message: fmt.Sprintf("%s is in use by %s", dir, owner),
		Remedy:  "end that process, or use another session directory; terrarium session can read this one while it is in use",
		IDs:     ids,
	}
}
