package hostile

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

// Memory is what the process needs, in bytes. What the platform does not tell
// is zero.
type Memory struct {
	Heap     int64 // live objects
	Resident int64 // all of the process that is in memory
}

// What may be left of an attack when it is over, in bytes. The heap is exact but
// for pools and tables that grew, and the dead letters that a graph keeps; what is resident depends on when the system
// takes pages back, and on the runtime's own memory.
const (
	heapSlack     = 8 << 20
	residentSlack = 48 << 20
)

// exceededBy reports whether more is needed now than what there was before
// accounts for.
func (m Memory) exceededBy(now Memory) bool {
	return now.Heap-m.Heap > heapSlack || now.Resident-m.Resident > residentSlack*instrumented
}

// measure collects the garbage, gives back what is free and looks what is left.
func measure() Memory {
	// What is in a pool goes with the second collection after it was put there,
	// and finalizers run after the first.
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory() // which is another
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return Memory{Heap: int64(stats.HeapAlloc), Resident: procStatus("VmRSS:")}
}

// resetPeak makes peak begin anew.
func resetPeak() {
	// Linux alone has this; elsewhere there is no peak to reset.
	const resetPeakResident = "5"
	_ = os.WriteFile("/proc/self/clear_refs", []byte(resetPeakResident), 0)
}

// peak is the most that was resident since resetPeak.
func peak() int64 { return procStatus("VmHWM:") }

// procStatus reads a size in kilobytes from what Linux tells of the process.
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

// collector collects garbage again and again, to find out how long that can be
// held up.
type collector struct {
	enough chan struct{}
	worst  chan time.Duration // gets one value, in the end
}

// startCollector returns nil unless the stage is to collect garbage.
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

// stop returns the longest that a collection took.
func (c *collector) stop() time.Duration {
	if c == nil {
		return 0
	}
	close(c.enough)
	return <-c.worst
}
