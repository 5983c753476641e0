//go:build unix

package serve

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// owned reports whether a file belongs to this user.
func owned(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

// refusedByPeer reports whether a socket is left over from a process that has ended.
func refusedByPeer(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
