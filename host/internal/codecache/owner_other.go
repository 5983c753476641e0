//go:build !unix

package codecache

import "io/fs"

// unfit returns why a file or directory must not hold executable code, or "" if it may.
// The owner of a file is unknown on this platform; the location of the directory and the
// tags protect it.
func unfit(info fs.FileInfo, kind fs.FileMode) string {
	if info.Mode().Type() != kind {
		return "is not of the right type"
	}
	return ""
}

func ownedByUser(fs.FileInfo) bool { return false }

func replaceable(fs.FileInfo) string { return "" }
