//go:build !unix

package scratch

import "io/fs"

// privateDirectory cannot be told here, so nothing is swept.
func privateDirectory(fs.FileInfo) bool { return false }
