//go:build unix

package scratch

import (
	"io/fs"
	"os"
	"syscall"
)

// privateDirectory reports whether something is a directory that this user has made
// for itself alone, as os.MkdirTemp does.
func privateDirectory(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode() == fs.ModeDir|0o700 && int(st.Uid) == os.Geteuid()
}
