//go:build !unix

package sqlitestore

// freeSpace is not known here: a full disk shows when something is written.
func freeSpace(string) (int64, bool) { return 0, false }
