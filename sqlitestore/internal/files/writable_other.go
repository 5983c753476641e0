//go:build !unix

package files

// Writable reports whether this process may make files in a directory. Where the system has
// no way to find out without making one, it reports that it may not.
func Writable(string) bool { return false }
