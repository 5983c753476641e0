package topology_test

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"time"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// BenchmarkNothing measures the 99th percentile of the machine: arithmetic of
// about ten microseconds, which only interrupts and other load stretch.
func BenchmarkNothing(b *testing.B) {
	var times []time.Duration
	x := uint64(1)
	for b.Loop() {
		start := time.Now()
		for range 8000 {
			x = x*6364136223846793005 + 1
		}
		times = append(times, time.Since(start))
	}
	if x == 0 {
		b.Fatal("an odd number times an odd number, plus one, was zero")
	}
	report(b, times)
}

// BenchmarkMachine measures the machine's cost of a larger state, without any
// topology. Most of the cost of an operation is waiting for memory, and
// uncached memory is slow, and sometimes much slower.
func BenchmarkMachine(b *testing.B) {
	for _, n := range sizesToMeasure() {
		b.Run(fmt.Sprint(n, "/reads"), func(b *testing.B) { measureReads(b, n) })
		b.Run(fmt.Sprint(n, "/map"), func(b *testing.B) { measureMap(b, n) })
	}
}

const (
	lineSize = 64 // bytes of a cache line
	// bytesPerCreature is roughly the memory of a creature in a mesh.
	bytesPerCreature = 1400
	// readsAtOnce is roughly how many times an operation waits for memory.
	readsAtOnce   = 20
	lookUpsAtOnce = 4
)

// line is the unit of memory that the machine reads at once. It points to
// another one.
type line [lineSize / 4]uint32

// measureReads times dependent reads, each of which yields the address of the
// next, over as much memory as a mesh of n creatures takes.
func measureReads(b *testing.B, n int) {
	lines := make([]line, n*bytesPerCreature/lineSize)
	random := rand.New(rand.NewPCG(1, 0))
	for i := range lines {
		lines[i][0] = uint32(i)
	}
	for i := len(lines) - 1; i > 0; i-- { // Sattolo's shuffle gives a single cycle
		j := random.IntN(i)
		lines[i][0], lines[j][0] = lines[j][0], lines[i][0]
	}
	var times []time.Duration
	var at uint32
	for b.Loop() {
		start := time.Now()
		for range readsAtOnce {
			at = lines[at][0]
		}
		times = append(times, time.Since(start))
	}
	if int(at) >= len(lines) {
		b.Fatalf("%d leads out of %d lines", at, len(lines))
	}
	report(b, times)
}

// measureMap times finding creatures by id in a Go map, and reading a field of
// each.
func measureMap(b *testing.B, n int) {
	type thing [bytesPerCreature / 8]uint64
	things := make(map[CreatureID]*thing, n)
	for i := range n {
		things[member(i)] = &thing{uint64(i)}
	}
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		var ids [lookUpsAtOnce]CreatureID
		var sum, want uint64
		for j := range ids {
			at := (i*lookUpsAtOnce + j) * 7919 % n
			ids[j], want = member(at), want+uint64(at)
		}
		start := time.Now()
		for _, id := range ids {
			sum += things[id][0]
		}
		times = append(times, time.Since(start))
		if sum != want {
			b.Fatalf("round %d found %d, want %d", i, sum, want)
		}
	}
	report(b, times)
}

// measureUncollected measures without the garbage collector, which otherwise
// scans a large state during the measurement.
func (w *workload) measureUncollected(b *testing.B, s *bench) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	w.measure(b, s)
}
