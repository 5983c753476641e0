//go:build unix

package files

import "golang.org/x/sys/unix"

// Writable reports whether this process may make files in a directory.
func Writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }
