package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// Suffixes are the suffixes of the files that make up one database.
var Suffixes = []string{"", "-wal", "-shm"}

// DiskSize returns the size of a database with its auxiliary files.
func DiskSize(path string) (n int64) {
	for _, suffix := range Suffixes {
		n += files.Size(path + suffix)
	}
	return n
}

// Remove removes a database with its auxiliary files. The database is removed last: as
// long as it exists, the others can be identified.
func Remove(h failpoint.Hooks, path string) error {
	for _, suffix := range slices.Backward(Suffixes) {
		if err := h.At(failpoint.Removing, path+suffix); err != nil {
			return err
		}
		if err := files.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := h.At(failpoint.Removed, path+suffix); err != nil {
			return err
		}
	}
	return nil
}

// PutAside renames a database to an unused name. The database itself is renamed first:
// without its log, it must not be taken for the original. A log without its database is
// renamed at the next attempt.
func PutAside(path string, h failpoint.Hooks) (kept string, err error) {
	log := "-wal"
	if files.Size(path+log) > 0 || !files.Missing(path) {
		aside := path + files.OrphanSuffix
		for n := 2; ; n++ {
			used, err := files.Used(aside, aside+log)
			if err != nil {
				return "", err
			}
			if !used {
				break
			}
			aside = fmt.Sprintf("%s%s.%d", path, files.OrphanSuffix, n)
		}
		for _, suffix := range []string{"", log} {
			moved, err := giveName(h, path+suffix, aside+suffix)
			if err != nil {
				return "", err
			}
			if moved && kept == "" {
				kept = aside + suffix
			}
		}
	}
	return kept, Remove(h, path) // an empty log, and the shared memory, which have no content
}

// giveName renames a file, and returns false if it does not exist.
func giveName(h failpoint.Hooks, from, to string) (bool, error) {
	if err := h.At(failpoint.SettingAside, from); err != nil {
		return false, err
	}
	if err := files.Rename(from, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, h.At(failpoint.SetAside, to)
}

// AtRest makes sure that the file itself has everything that was written to it, not only
// its write-ahead log. It returns false while a reader prevents that.
func AtRest(path string) (bool, error) {
	c, err := Open(path, ReadWrite)
	if err != nil {
		return false, err
	}
	rest := false
	err = c.Query("PRAGMA wal_checkpoint(PASSIVE)", nil, func(v []driver.Value) error {
		busy, _ := v[0].(int64)
		frames, _ := v[1].(int64)
		moved, _ := v[2].(int64)
		rest = busy == 0 && frames == moved
		return nil
	})
	return rest, errors.Join(err, c.Close())
}

// Checkpoint copies what it can from the write-ahead log to the database, without waiting
// for readers or writers. Its errors do not matter: the log stays complete, and problems
// with the disk show where a caller waits for it.
func Checkpoint(path string) {
	c, err := Open(path, ReadWrite)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDurable(true)
	_ = c.Exec("PRAGMA wal_checkpoint(PASSIVE)")
}
