//go:build linux || darwin || freebsd

package main

import "golang.org/x/sys/unix"

// freeSpace returns the bytes and inodes that are free for this user.
func freeSpace(dir string) (bytes, inodes int64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, false
	}
	inodes = int64(s.Ffree)
	if s.Files == 0 { // inodes are made as they are needed
		inodes = -1
	}
	return int64(s.Bavail) * int64(s.Bsize), inodes, true
}
