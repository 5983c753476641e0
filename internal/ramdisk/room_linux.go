package ramdisk

import "syscall"

const (
	where      = "/dev/shm"
	magic      = 0x01021994 // of a tmpfs; see statfs(2)
	enoughRoom = 4 << 30    // bytes; the tests of a package need some hundred million
)

// roomy reports whether a directory is in memory, has room for the tests of several
// packages at once, and lets them run the programs that they build in it.
func roomy(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && int64(s.Type) == magic && s.Flags&syscall.MS_NOEXEC == 0 &&
		s.Bavail >= enoughRoom/uint64(s.Bsize)
}
