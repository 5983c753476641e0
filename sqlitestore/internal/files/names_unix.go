//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// NoFollow is the flag with which opening a symbolic link is refused.
const NoFollow = syscall.O_NOFOLLOW

// names is how many names a file has.
func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}
