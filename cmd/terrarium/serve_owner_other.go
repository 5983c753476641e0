//go:build !unix

package main

import "io/fs"

// othersCanUse cannot tell: the permissions of this system are not in the mode.
func othersCanUse(fs.FileInfo) bool { return false }
