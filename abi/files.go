package abi

import (
	"errors"
	"syscall"
)

// FilesRemedy is the remedy when too many files are open.
const FilesRemedy = "raise the limit of open files (ulimit -n), and try again"

// TooManyFiles returns an error with the code [Unavailable] if err says that
// the process or the system has too many files open, which is easily mistaken
// for a missing file; else nil.
func TooManyFiles(err error) *Error {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return nil
	}
	return &Error{Code: Unavailable, Message: "a file cannot be opened: too many files are open", Remedy: FilesRemedy, Err: err}
}
