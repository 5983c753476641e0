package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// garbage allocates so many bytes, keeps none of them, and returns how many collections there
// were.
func garbage(bytes int) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range bytes / len(kept) {
		kept = make([]byte, len(kept))
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

var kept = make([]byte, 64<<10)

// withoutGOGC lets the test decide about the collector.
func withoutGOGC(t *testing.T) {
	t.Helper()
	if before, set := os.LookupEnv("GOGC"); set {
		t.Cleanup(func() { _ = os.Setenv("GOGC", before) })
		_ = os.Unsetenv("GOGC")
	}
	before := debug.SetGCPercent(usual)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// TestStart compares the collections of a process with a small heap.
func TestStart(t *testing.T) {
	withoutGOGC(t)
	const much = 1 << 30
	usually := garbage(much)
	stop := Start(64 << 20)
	defer stop()
	garbage(much) // the room grows from collection to collection
	paced := garbage(much)
	if usually < 100 || paced > usually/4 {
		t.Errorf("there were %d collections, and %d with the room", usually, paced)
	}
	if stop(); read("/gc/gogc:percent") != usual {
		t.Errorf("GOGC is %d after the end", read("/gc/gogc:percent"))
	}
	runtime.GC()
	if again := garbage(much); again < usually/2 {
		t.Errorf("there were %d collections after the end, and %d before the beginning", again, usually)
	}
}

// TestGOGC proves that a value of the operator stays as it is.
func TestGOGC(t *testing.T) {
	withoutGOGC(t)
	t.Setenv("GOGC", "150")
	debug.SetGCPercent(150)
	defer Start(64 << 20)()
	garbage(256 << 20)
	if got := read("/gc/gogc:percent"); got != 150 {
		t.Errorf("GOGC is %d", got)
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
