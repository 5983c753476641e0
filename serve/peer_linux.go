package serve

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sameUser reports whether the process at the other end has the same user, or is root's.
// Root may connect to everyone.
func sameUser(conn net.Conn, dialled bool) bool {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && (int(cred.Uid) == os.Geteuid() || cred.Uid == 0 || dialled && os.Geteuid() == 0)
	})
	return err == nil && same
}
