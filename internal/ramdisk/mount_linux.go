package ramdisk

import (
	"fmt"
	"syscall"
)

// Mount mounts a file system in memory with that many bytes on a directory.
// Only root may do that.
func Mount(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, size(bytes))
}

// Resize changes the size of a directory mounted by [Mount].
func Resize(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, size(bytes))
}

// Freeze makes a directory mounted by [Mount] read-only.
func Freeze(dir string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

func size(bytes int) string { return fmt.Sprintf("size=%d", bytes) }

// Unmount unmounts a directory mounted by [Mount] and drops all its files.
func Unmount(dir string) error { return syscall.Unmount(dir, 0) }
