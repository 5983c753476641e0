package main

import (
	"math"
	"testing"
)

func TestRoomForGarbage(t *testing.T) {
	const mb, gb = 1 << 20, 1 << 30
	for name, tt := range map[string]struct {
		processMemory, goLimit int64
		m                      memoryRecord
		want                   int64
	}{
		"a server":         {0, math.MaxInt64, memoryRecord{TotalBytes: 16 * gb, AvailableBytes: 100 * mb, LimitBytes: -1}, 64 * mb},
		"unknown":          {0, math.MaxInt64, memoryRecord{-1, -1, -1}, 64 * mb},
		"a small machine":  {0, math.MaxInt64, memoryRecord{TotalBytes: 512 * mb, LimitBytes: -1}, 32 * mb},
		"a container":      {0, math.MaxInt64, memoryRecord{TotalBytes: 16 * gb, LimitBytes: 64 * mb}, 4 * mb},
		"--process-memory": {128 * mb, math.MaxInt64, memoryRecord{TotalBytes: 16 * gb, LimitBytes: -1}, 8 * mb},
		"GOMEMLIMIT":       {0, 256 * mb, memoryRecord{TotalBytes: 16 * gb, LimitBytes: -1}, 16 * mb},
	} {
		if got := roomForGarbage(tt.processMemory, tt.goLimit, tt.m); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}
