package sqlitestore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/seed47132306/terrarium/abi"
)

// lockDirectory takes a session directory for this process. The file stays
// when the lock goes: removing it would race with the next owner.
func lockDirectory(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockName)
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, errors.Join(storageError("open", path, err), lock.Close())
	}
	if !locked {
		return nil, errors.Join(inUse(dir, path), lock.Close())
	}
	if err := os.WriteFile(path, ownerOfLock(), 0o644); err != nil {
		return nil, errors.Join(storageError("open", path, err), lock.Close())
	}
	return lock, nil
}

// ownerOfLock is what a lock says of this process.
func ownerOfLock() []byte { return fmt.Appendln(nil, os.Getpid(), filepath.Base(os.Args[0])) }

func inUse(dir, path string) error {
	owner := "another process"
	ids := map[string]string{"path": dir}
	if content, err := os.ReadFile(path); err == nil {
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
		Remedy:  "end that process, or use another session directory; reading it is possible meanwhile",
		IDs:     ids,
	}
}
