//go:build !linux

package ramdisk

import "errors"

// Mount is not supported on this system.
func Mount(string, int) error { return errors.ErrUnsupported }

// Resize is not supported on this system.
func Resize(string, int) error { return errors.ErrUnsupported }

// Freeze is not supported on this system.
func Freeze(string) error { return errors.ErrUnsupported }

// Unmount is not supported on this system.
func Unmount(string) error { return errors.ErrUnsupported }
