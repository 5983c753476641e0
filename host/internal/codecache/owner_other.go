//go:build !unix

package codecache

import "io/fs"

// unfit answers why something must not hold or be executable code, or nothing.
// Who owns a file is not told here; what protects it is where the user puts the
// directory, and its tag.
func unfit(info fs.FileInfo, kind fs.FileMode) string {
	if info.Mode().Type() != kind {
		return "is not of the right type"
	}
	return ""
}

func ownedByUser(fs.FileInfo) bool { return false }

func replaceable(fs.FileInfo) string { return "" }
