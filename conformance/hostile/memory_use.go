package hostile

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

// Memory is the memory use of the process, in bytes. Figures that the platform
// does not provide are zero.
type Memory struct {
	Heap     int64 // live objects
	Resident int64 // resident memory of the process
}

// What may remain after an attack, in bytes. The heap is exact except for
// pools and tables that grew, and the dead letters that a graph keeps;
// resident memory depends on when the system reclaims pages, and on the
// runtime's own memory.
const (
	heapSlack     = 8 << 20
	residentSlack = 48 << 20
)

// exceededBy reports whether now exceeds m by more than the allowance.
func (m Memory) exceededBy(now Memory) bool {
	return now.Heap-m.Heap > heapSlack || now.Resident-m.Resident > residentSlack*instrumented
}

// measure collects garbage, releases free memory and measures the rest.
func measure() Memory {
	// Pools are emptied by the second collection, and finalizers run after the
	// first.
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory() // this is the second collection
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return Memory{Heap: int64(stats.HeapAlloc), Resident: procStatus("VmRSS:")}
}

// resetPeak restarts the measurement of peak.
func resetPeak() {
	// Only Linux has this; elsewhere there is no peak to reset.
	const resetPeakResident = "5"
	_ = os.WriteFile("/proc/self/clear_refs", []byte(resetPeakResident), 0)
}

// peak returns the most resident memory since resetPeak.
func peak() int64 { return procStatus("VmHWM:") }

// procStatus reads a size in kilobytes from the process status of Linux and
// returns it in bytes.
func procStatus(field string) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		rest, ok := bytes.CutPrefix(line, []byte(field))
		if !ok {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			return 0
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}

// collector collects garbage repeatedly, to measure how long a collection can
// be held up.
type collector struct {
	enough chan struct{}
	worst  chan time.Duration // gets one value, at the end
}

// startCollector returns nil unless CollectGarbage is set.
func (s *Stage) startCollector() *collector {
	if !s.CollectGarbage {
		return nil
	}
	c := &collector{enough: make(chan struct{}), worst: make(chan time.Duration, 1)}
	go func() {
		var worst time.Duration
		for {
			select {
			case <-c.enough:
				c.worst <- worst
				return
			default:
				began := time.Now()
				runtime.GC()
				worst = max(worst, time.Since(began))
			}
		}
	}()
	return c
}

// stop returns the duration of the longest collection.
func (c *collector) stop() time.Duration {
	if c == nil {
		return 0
	}
	close(c.enough)
	return <-c.worst
}
