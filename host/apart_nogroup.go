//go:build !unix

package host

import "syscall"

// ofItsOwn knows of no groups of processes here.
func ofItsOwn() *syscall.SysProcAttr { return nil }
