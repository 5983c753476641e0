//go:build !unix

package files

import "io/fs"

// NoFollow is 0 where the system cannot be told not to follow a symbolic link.
const NoFollow = 0

// names is how many names a file has, where that can be told.
func names(fs.FileInfo) uint64 { return 1 }
