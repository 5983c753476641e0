//go:build unix

package host

import "syscall"

// ofItsOwn puts a process into a new process group: signals that a terminal or
// a supervisor sends to the group of this process do not reach it.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
