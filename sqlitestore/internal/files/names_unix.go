//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// NoFollow is the flag with which opening a symbolic link is refused.
const NoFollow = syscall.O_NOFOLLOW

// names returns the number of names of a file.
func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}
