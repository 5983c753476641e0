//go:build unix

package files

import "golang.org/x/sys/unix"

// Writable reports whether this process may write to a file, or make files in a directory.
func Writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
