//go:build !unix

package files

// Writable reports whether this process may write to a file, or make files in a directory.
// Where the system has no way to find out without doing it, the answer is no.
func Writable(string) bool { return false }
