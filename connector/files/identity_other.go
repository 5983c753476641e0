//go:build !unix

package files

import "io/fs"

// fileIdentity leaves the identity to the beginning of the file.
func fileIdentity(fs.FileInfo) string { return noIdentity }
