// Package gcpace makes a busy process with a small heap collect garbage less often.
//
// The Go runtime collects when the heap has grown by as much as was live after the last
// collection (GOGC=100). A process that keeps 5 MB and produces 60 MB of garbage a second
// collects a dozen times a second, and whatever happens during a collection takes longer: with
// two processors, that decides the 99th percentile. A higher GOGC helps, but it is a factor, so
// it also applies to a heap of gigabytes. This package lets the heap grow by a number of bytes
// instead, and only while collections are frequent.
package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	frequent = 500 * time.Millisecond // collections at shorter intervals are too many
	rare     = 10 * time.Second       // at longer ones, the room is not needed
	// least is the heap at which the runtime collects first with GOGC=100, and the first room.
	least = 4 << 20
)

// Usual is the default of GOGC.
const Usual = 100

// Start lets the heap grow by up to room bytes from one collection to the next, if collections
// are frequent. It does nothing if the environment variable GOGC is set, because then the
// operator has decided. The function that it returns ends this, and restores the default of
// the runtime. It may be called more than once. A process has one pace, so Start is for
// programs, not for libraries. While a program has set GOGC itself, Start leaves that as it is;
// such a program must set it to [Usual] afterwards, because an earlier value was for an earlier
// size of the heap.
func Start(room int64) (stop func()) {
	if os.Getenv("GOGC") != "" || room <= least {
		return func() {}
	}
	p := &pacer{most: room, last: time.Now(), set: Usual}
	p.await()
	return p.stop
}

// pacer adapts the pace after each collection.
type pacer struct {
	mu      sync.Mutex
	most    int64
	room    int64
	last    time.Time // of the last collection
	set     int64     // GOGC as it was set last
	stopped bool
}

// await calls collected after the next collection, which finds that a new object is unused.
func (p *pacer) await() {
	// With a pointer, the object does not share its memory with others.
	unused := new(struct{ _ *byte })
	runtime.AddCleanup(unused, (*pacer).collected, p)
}

func (p *pacer) collected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	now := time.Now()
	p.room = next(p.room, p.most, now.Sub(p.last))
	p.last = now
	p.adapt()
	p.await()
}

// adapt sets GOGC for the heap as it is now, unless the program has set another value meanwhile.
func (p *pacer) adapt() {
	has := read("/gc/gogc:percent")
	if has != p.set && has != Usual {
		return
	}
	used := read("/gc/heap/live:bytes") + read("/gc/scan/stack:bytes") + read("/gc/scan/globals:bytes")
	if want := percent(p.room, used); want > has+has/8 || want < has-has/8 {
		debug.SetGCPercent(int(want)) // which stops all goroutines for a moment, so not for little
		p.set = want
	}
}

func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.stopped = true
		debug.SetGCPercent(Usual)
	}
}

// next returns the room after a collection: four times as much if collections are frequent, half
// as much if they are rare.
func next(room, most int64, interval time.Duration) int64 {
	switch {
	case interval < frequent:
		return min(most, max(least, 4*room))
	case interval < rare:
		return room
	case room <= least:
		return 0
	}
	return room / 2
}

// percent returns the GOGC with which the heap grows by room bytes, if the collector finds so
// many in use. It is never below the default.
func percent(room, used int64) int64 {
	// The first threshold of the runtime, 4 MB, is multiplied by GOGC too.
	return max(Usual, room*100/max(least, used))
}

func read(name string) int64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
