//go:build unix

package serve

import (
	"errors"
	"syscall"
)

// refusedByPeer reports whether a socket is left over from a process that has ended.
func refusedByPeer(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
