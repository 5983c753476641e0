package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// withoutGOGC lets the test decide about the collector.
func withoutGOGC(t *testing.T) {
	t.Helper()
	if before, set := os.LookupEnv("GOGC"); set {
		t.Cleanup(func() { _ = os.Setenv("GOGC", before) })
		_ = os.Unsetenv("GOGC")
	}
	before := debug.SetGCPercent(Usual)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// collectUntil collects garbage until GOGC is as wanted, and reports whether it ever was.
func collectUntil(want func(percent int64) bool) bool {
	for range 100 {
		runtime.GC()
		time.Sleep(time.Millisecond) // the pace is adapted after the collection
		if want(read("/gc/gogc:percent")) {
			return true
		}
	}
	return false
}

// TestStart has collections that follow each other at once.
func TestStart(t *testing.T) {
	withoutGOGC(t)
	stop := Start(64 << 20)
	defer stop()
	if !collectUntil(func(percent int64) bool { return percent >= 400 }) { // few bytes are live here
		t.Errorf("GOGC is %d, although collections are frequent", read("/gc/gogc:percent"))
	}
	debug.SetGCPercent(300)
	if collectUntil(func(percent int64) bool { return percent != 300 }) {
		t.Errorf("GOGC is %d, although the program has set it to 300", read("/gc/gogc:percent"))
	}
	debug.SetGCPercent(Usual)
	if !collectUntil(func(percent int64) bool { return percent >= 400 }) {
		t.Errorf("GOGC is %d again", read("/gc/gogc:percent"))
	}
	stop()
	if collectUntil(func(percent int64) bool { return percent != Usual }) {
		t.Errorf("GOGC is %d after the end", read("/gc/gogc:percent"))
	}
}

// TestGOGC proves that a value of the operator stays as it is.
func TestGOGC(t *testing.T) {
	withoutGOGC(t)
	t.Setenv("GOGC", "150")
	debug.SetGCPercent(150)
	defer Start(64 << 20)()
	if collectUntil(func(percent int64) bool { return percent != 150 }) {
		t.Errorf("GOGC is %d", read("/gc/gogc:percent"))
	}
}

func TestNext(t *testing.T) {
	const mb = 1 << 20
	for _, tt := range []struct {
		room     int64
		interval time.Duration
		want     int64
	}{
		{0, time.Millisecond, 4 * mb}, {4 * mb, time.Millisecond, 16 * mb}, {48 * mb, 0, 64 * mb}, {64 * mb, 0, 64 * mb},
		{64 * mb, time.Second, 64 * mb}, {0, time.Second, 0},
		{64 * mb, time.Minute, 32 * mb}, {4 * mb, time.Minute, 0}, {0, time.Minute, 0},
	} {
		if got := next(tt.room, 64*mb, tt.interval); got != tt.want {
			t.Errorf("after %v, a room of %d becomes %d, want %d", tt.interval, tt.room, got, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	const mb = 1 << 20
	for _, tt := range []struct{ room, used, want int64 }{
		{0, 0, 100}, {64 * mb, 0, 1600}, {64 * mb, 8 * mb, 800}, {64 * mb, 40 * mb, 160}, {64 * mb, 1024 * mb, 100},
	} {
		if got := percent(tt.room, tt.used); got != tt.want {
			t.Errorf("with %d bytes in use, GOGC is %d for a room of %d, want %d", tt.used, got, tt.room, tt.want)
		}
	}
}
