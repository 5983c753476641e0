//go:build unix

package scratch

import (
	"io/fs"
	"os"
	"syscall"
)

// privateDirectory reports whether info describes a private directory of this
// user, as made by os.MkdirTemp.
func privateDirectory(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode() == fs.ModeDir|0o700 && int(st.Uid) == os.Geteuid()
}
