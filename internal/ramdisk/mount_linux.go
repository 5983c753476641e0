package ramdisk

import (
	"fmt"
	"syscall"
)

// Mount makes a directory a file system of its own, in memory, that is full after so
// many bytes. Only root may do that.
func Mount(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, size(bytes))
}

// Resize gives a directory of [Mount] another size.
func Resize(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, size(bytes))
}

func size(bytes int) string { return fmt.Sprintf("size=%d", bytes) }

// Unmount takes away what [Mount] made, with all files in it.
func Unmount(dir string) error { return syscall.Unmount(dir, 0) }
