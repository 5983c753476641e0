//go:build unix

package codecache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// unfit returns why a file or directory must not hold executable code, or "" if it may.
// It must be of the type kind: a directory or, with 0, a regular file. The user must own
// it, and no other user may read or write it.
func unfit(info fs.FileInfo, kind fs.FileMode) string {
	if info.Mode().Type() != kind {
		return "is a " + describe(info.Mode())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Sprintf("can be reached by other users (mode %04o)", info.Mode().Perm())
	}
	if !ownedByUser(info) {
		return "belongs to another user"
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && kind == 0 && st.Nlink != 1 {
		return "has another name elsewhere"
	}
	return ""
}

// ownedByUser reports whether the user of the process owns a file.
func ownedByUser(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// replaceable returns why another user could replace the content of a directory, or "" if
// none can.
func replaceable(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || (st.Uid != 0 && int(st.Uid) != os.Geteuid()) {
		return "belongs to another user"
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Sprintf("can be written by other users (mode %04o)", info.Mode().Perm())
	}
	return ""
}
