//go:build !unix

package files

import "io/fs"

// NoFollow is 0 where the system has no way to refuse symbolic links.
const NoFollow = 0

// names is how many names a file has, where the system says so.
func names(fs.FileInfo) uint64 { return 1 }
