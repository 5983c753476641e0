//go:build linux || darwin || freebsd

package selflimit

import "golang.org/x/sys/unix"

// OpenFiles returns how many files this process may have open, or -1 if that is not known or
// not limited.
func OpenFiles() int64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || uint64(r.Cur) > 1<<62 {
		return -1
	}
	return int64(r.Cur)
}
