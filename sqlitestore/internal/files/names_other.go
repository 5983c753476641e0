//go:build !unix

package files

import "io/fs"

// NoFollow is 0 where the system has no way to refuse symbolic links.
const NoFollow = 0

// names returns the number of names of a file, on systems that report it. Here it is 1.
func names(fs.FileInfo) uint64 { return 1 }
