//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// othersCanUse reports whether other users can read or write a file, or own it.
func othersCanUse(info fs.FileInfo) bool {
	const others = 0o077
	if info.Mode().Perm()&others != 0 {
		return true
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) != os.Geteuid() && s.Uid != 0
}
