//go:build !unix

package terrarium

import "io/fs"

// privateDirectory cannot be told here, so nothing is swept.
func privateDirectory(fs.FileInfo) bool { return false }
