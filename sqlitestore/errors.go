package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mattn/go-sqlite3"

	"github.com/seed47132306/terrarium/abi"
)

// storageError says in plain words what SQLite said about a file. An error
// that has a code already, and the end of a context, are passed on as they are.
func storageError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var typed *abi.Error
	if errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	message, remedy := explain(err)
	if filepath.Base(path) == catalogName && damaged(err) {
		remedy = rebuildRemedy(filepath.Dir(path))
	}
	return &abi.Error{
		Code:    abi.Storage,
		Op:      op,
		Message: fmt.Sprintf("%s: %s", path, message),
		Remedy:  remedy,
		IDs:     map[string]string{"path": path},
		Err:     err,
	}
}

// unwritten says why a store was closed before all that was queued was in its
// file. Nobody writes it later, so that is not promised.
func unwritten(path string, err error) error {
	err = storageError("close", path, err)
	var typed *abi.Error
	if !errors.As(err, &typed) {
		return err
	}
	final := *typed
	final.Remedy = "mend that, and go on with the directory: what was acknowledged is there, and what was still queued has not happened"
	return &final
}

// fullDisk reports whether there was no room to write something.
func fullDisk(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && se.Code == sqlite3.ErrFull
}

func explain(err error) (message, remedy string) {
	var cell *cellError
	if errors.As(err, &cell) {
		return "the file is damaged", "restore it from a backup; it has been left as it is"
	}
	var se sqlite3.Error
	isSQLite := errors.As(err, &se)
	if abi.TooManyFiles(err) != nil || isSQLite && abi.TooManyFiles(se.SystemErrno) != nil {
		return "the file cannot be opened: too many are open", abi.FilesRemedy
	}
	if !isSQLite {
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
		return "the file is not a SQLite database", "move it away or restore it from a backup; it has been left as it is"
	case sqlite3.ErrCantOpen:
		return "the file cannot be opened", "check that it exists, that it may be read and written, and that its directory is writable"
	case sqlite3.ErrConstraint:
		return "the file has values that no version of terrarium writes", "restore it from a backup; it has been left as it is"
	case sqlite3.ErrIoErr:
		return "reading or writing the file failed", "check the disk and the file system"
	}
	return "the store failed", "check the disk and the file system"
}

func invalid(op, message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: message, Remedy: remedy}
}

func noSession(op, session string) *abi.Error {
	return &abi.Error{
		Code:    abi.NotFound,
		Op:      op,
		Message: fmt.Sprintf("the directory has no session %q", session),
		Remedy:  "list the sessions to see which there are",
		IDs:     map[string]string{"session": session},
	}
}

func stopped(op, path string) *abi.Error {
	return &abi.Error{
		Code:    abi.Stopped,
		Op:      op,
		Message: path + " has been closed",
		Remedy:  "use the store that its graph has now",
		IDs:     map[string]string{"path": path},
	}
}
