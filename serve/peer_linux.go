package serve

import (
	"net"
	"slices"

	"golang.org/x/sys/unix"
)

// isOf reports whether the process at the other end belongs to one of the users, or to root.
func isOf(conn net.Conn, users ...int) bool {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		is = err == nil && (cred.Uid == 0 || slices.Contains(users, int(cred.Uid)))
	})
	return err == nil && is
}
