//go:build !linux

package ramdisk

import "errors"

// Mount makes a directory a file system of its own; on this system it cannot.
func Mount(string, int) error { return errors.ErrUnsupported }

// Resize gives a directory of [Mount] another size.
func Resize(string, int) error { return errors.ErrUnsupported }

// Unmount takes away what [Mount] made.
func Unmount(string) error { return errors.ErrUnsupported }
