//go:build unix

package files

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileIdentity names a file within the machine.
func fileIdentity(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d-%d", s.Dev, s.Ino)
	}
	return noIdentity
}
