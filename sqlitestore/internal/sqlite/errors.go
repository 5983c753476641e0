package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// Explained explains an SQLite error on a file in plain words. Errors that have a code
// already, and the end of a context, are passed on unchanged. The remedy may be "", for
// the usual one.
func Explained(op, path string, err error, remedy string) error {
	if err == nil {
		return nil
	}
	var typed *abi.Error
	if errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	message, usual := explain(path, err)
	if beside(path, err) {
		err = &unmade{err}
	}
	return &abi.Error{
		Code:    abi.Storage,
		Op:      op,
		Message: fmt.Sprintf("%s: %s", path, message),
		Remedy:  cmp.Or(remedy, usual),
		IDs:     map[string]string{"path": path},
		Err:     err,
	}
}

// beside reports whether SQLite could open a file, but not make the log beside it. SQLite then
// tries to open the log for reading, and only reports that there is none.
func beside(path string, err error) bool { return cannotOpen(err) && !files.Missing(path) }

// cannotOpen reports whether SQLite has found no file, perhaps no log.
func cannotOpen(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && se.Code == sqlite3.ErrCantOpen && se.SystemErrno == syscall.ENOENT
}

// unmade is an error of SQLite, which reports the file that it could not make as one that does
// not exist.
type unmade struct{ error }

func (e *unmade) Error() string { return "SQLite cannot make its log beside the file" }
func (e *unmade) Unwrap() error { return e.error }

// Failed reports whether an error is SQLite's.
func Failed(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se)
}

// Busy reports whether another process had a lock for too long.
func Busy(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && (se.Code == sqlite3.ErrBusy || se.Code == sqlite3.ErrLocked)
}

// FullDisk reports whether there was no space to write something.
func FullDisk(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && se.Code == sqlite3.ErrFull
}

// TooManyFiles reports whether one of the files at some paths could not be opened because
// too many are open. SQLite hides that if it cannot make a log, or if it opens a file for
// reading after it could not open it for writing. If all of the files exist and can be
// written, and their directories, too many open files are the most likely reason.
func TooManyFiles(err error, paths ...string) bool {
	if tooMany(err) {
		return true
	}
	if len(paths) == 0 || !cannotOpen(err) && !onlyRead(err) {
		return false
	}
	for _, path := range paths {
		if files.Missing(path) || !writable(path) {
			return false
		}
	}
	return true
}

func writable(path string) bool { return files.Writable(path) && files.Writable(filepath.Dir(path)) }

// onlyRead reports whether something was to be written with a connection that can only read.
func onlyRead(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && int(se.ExtendedCode) == int(sqlite3.ErrReadonly)
}

// tooMany reports whether an error says that too many files are open.
func tooMany(err error) bool {
	var se sqlite3.Error
	return abi.TooManyFiles(err) != nil || errors.As(err, &se) && abi.TooManyFiles(se.SystemErrno) != nil
}

// explainCrowd explains an error that probably means that too many files are open.
func explainCrowd(path, message string) (string, string) {
	if _, err := files.Stat(path); tooMany(err) { // it opens a directory
		return tooManyFiles, abi.FilesRemedy
	}
	return message, "check that the file system has room for more files, and that the limit of open files (ulimit -n) is not too low"
}

const tooManyFiles = "the file cannot be opened: too many files are open"

func explain(path string, err error) (message, remedy string) {
	var cell *cellError
	if errors.As(err, &cell) {
		return "the file is damaged", "restore it from a backup; it has been left as it is"
	}
	if tooMany(err) {
		return tooManyFiles, abi.FilesRemedy
	}
	switch unmade := beside(path, err); {
	case unmade && writable(path):
		return explainCrowd(path, "the file is there, but no other can be made beside it")
	case unmade:
		return "the file is there, but its directory cannot be written", "make the directory and its file system writable, or use a copy in a writable directory"
	case onlyRead(err) && writable(path):
		return explainCrowd(path, "the file may be written, but could only be opened for reading")
	}
	var se sqlite3.Error
	if !errors.As(err, &se) {
		return "the file cannot be used", "check that the path exists and may be read and written"
	}
	switch se.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return "another process holds a lock on the file", "close the program that has it open and try again"
	case sqlite3.ErrReadonly, sqlite3.ErrPerm, sqlite3.ErrAuth:
		return "the file is read-only", "make the file and its directory writable, or use another directory"
	case sqlite3.ErrFull:
		return "the disk is full", "free some space; what is queued is then written by itself"
	case sqlite3.ErrTooBig:
		return "a value in the file is larger than any that is written", "do not use the file unless you know where it comes from; it has been left as it is"
	case sqlite3.ErrCorrupt:
		return "the file is damaged", "restore it from a backup; it has been left as it is"
	case sqlite3.ErrNotADB:
		return "the file is not a SQLite database", "restore it from a backup; it has been left as it is"
	case sqlite3.ErrCantOpen:
		return "the file cannot be opened", "check that it exists, that it may be read and written, and that its directory is writable"
	case sqlite3.ErrConstraint:
		return "the file has values that no version of terrarium writes", "restore it from a backup; it has been left as it is"
	case sqlite3.ErrIoErr:
		return fmt.Sprintf("reading or writing the file failed (SQLite's code %d)", se.ExtendedCode), "check the disk and the file system"
	}
	return "the store failed", "check the disk and the file system"
}

// Damaged reports whether an error means that SQLite has found damage.
func Damaged(err error) bool {
	var se sqlite3.Error
	var cell *cellError
	return errors.As(err, &cell) || errors.As(err, &se) && (se.Code == sqlite3.ErrCorrupt || se.Code == sqlite3.ErrNotADB)
}
