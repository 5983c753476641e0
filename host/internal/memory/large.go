//go:build linux && (386 || arm || mips || mipsle)

package memory

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// With addresses of 32 bits, the Go runtime finds no room for some large slice, and ends the
// process. So large memories are mapped here, where the system can refuse one.
const (
	largeBytes = 16 << 20
	// spared are addresses that have to remain after a large memory is mapped, for everything
	// else that the process needs.
	spared = 256 << 20
)

// mapLarge maps zeroes, or returns nil if there are too few addresses.
func mapLarge(size uint64) []byte {
	if size > math.MaxInt-spared {
		return nil
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size+spared), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	// It fails only for arguments that are not a mapping, as below.
	_ = unix.MunmapPtr(unsafe.Add(p, size), spared)
	return unsafe.Slice((*byte)(p), size)
}

func unmapLarge(b []byte) { _ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))) }
