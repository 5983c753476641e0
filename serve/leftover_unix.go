//go:build unix

package serve

import (
	"errors"
	"io/fs"
	"syscall"
)

// refusedByPeer reports whether a socket is left over from a process that has ended.
func refusedByPeer(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// ownerOf returns the user that owns a file, or -1 if that is not known.
func ownerOf(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
