//go:build unix

package recipes

import (
	"io/fs"
	"os"
	"syscall"
)

// ownerOf returns the user who owns a file.
func ownerOf(info fs.FileInfo) (user uint32, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return s.Uid, true
}

func ourselves() uint32 { return uint32(os.Geteuid()) }
