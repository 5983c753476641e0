//go:build unix

package sqlitestore

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes can be written to the disk of a directory.
func freeSpace(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(min(s.Bavail, 1<<40)) * int64(s.Bsize), true //nolint:unconvert // the types differ from system to system
}
