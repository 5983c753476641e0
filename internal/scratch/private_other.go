//go:build !unix

package scratch

import "io/fs"

// privateDirectory returns false: the owner is unknown on this platform, so
// nothing is swept.
func privateDirectory(fs.FileInfo) bool { return false }
