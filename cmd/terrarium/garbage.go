package main

import (
	"os"
	"runtime/debug"

	"github.com/seed47132306/terrarium/internal/gcpace"
)

const (
	// mostGarbage bounds by how much the heap may grow between two collections while
	// collections are frequent. With 5,000 requests a second, that is about one second.
	mostGarbage = 64 << 20
	// garbageShare is that part of the memory, at most.
	garbageShare = 16
)

// collectLess has garbage collected less often while collections are frequent, and returns a
// function that ends this. processMemory is the value of --process-memory, or 0.
func collectLess(processMemory int64) (stop func()) {
	return gcpace.Start(roomForGarbage(processMemory, debug.SetMemoryLimit(-1), memoryOf(os.DirFS("/"))))
}

// roomForGarbage returns mostGarbage, or less on a machine with little memory. Limits that are
// not above 0 are unknown.
func roomForGarbage(processMemory, goLimit int64, m memoryRecord) int64 {
	room := int64(mostGarbage)
	for _, limit := range []int64{processMemory, goLimit, m.TotalBytes, m.LimitBytes} {
		if limit > 0 {
			room = min(room, limit/garbageShare)
		}
	}
	return room
}
