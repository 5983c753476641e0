//go:build unix

package host

import "syscall"

// ofItsOwn makes a process the first of its group: what a terminal or a supervisor sends
// to the group of this process does not reach it.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
