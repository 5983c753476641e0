//go:build !unix

package host

import "syscall"

// ofItsOwn returns nil: this platform has no process groups.
func ofItsOwn() *syscall.SysProcAttr { return nil }
