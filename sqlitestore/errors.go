package sqlitestore

import (
	"errors"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
)

// storageError describes an error of SQLite about a file in plain words; see
// [catalog.Error].
func storageError(op, path string, err error) error { return catalog.Error(op, path, err) }

// unwritten is the error of a store that was closed before everything queued was in its
// file. No later writer writes the rest, so the error does not promise that.
func unwritten(path string, err error) error {
	err = storageError("close", path, err)
	var typed *abi.Error
	if !errors.As(err, &typed) {
		return err
	}
	final := *typed
	final.Remedy = "fix the cause, and continue with the directory: acknowledged events are there, and events that were still queued have not happened"
	return &final
}

func invalid(op, message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: message, Remedy: remedy}
}

func stopped(op, path string) *abi.Error {
	return &abi.Error{
		Code:    abi.Stopped,
		Op:      op,
		Message: path + " has been closed",
		Remedy:  "use the current store of its graph",
		IDs:     map[string]string{"path": path},
	}
}
