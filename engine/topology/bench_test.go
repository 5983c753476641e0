package topology_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// sizes lists the numbers of creatures at which operations are measured.
var sizes = []int{1_000, 10_000, 100_000}

// growth is the pair of sizes between which costs may grow threefold. A state
// of the larger one needs some gigabytes and half a minute to make, so they
// are measured only on request.
var growth = []int{10_000, 1_000_000}

func growthOnly() bool { return os.Getenv("TERRARIUM_GROWTH") != "" }

// bench is a state under measurement.
type bench struct {
	*State
	ids   counted
	n     int
	ties  []Disconnect // unused operations that remove tree links
	naive *naive       // follows the state; nil until needed
}

func (b *bench) must(tb testing.TB, ops ...Op) []Delta {
	deltas, err := b.Apply(&b.ids, ops...)
	if err != nil {
		tb.Fatal(err)
	}
	return deltas
}

// try is Try for operations that must succeed.
func (b *bench) try(tb testing.TB, ops ...Op) ([]Delta, func()) {
	deltas, undo, err := b.Try(&b.ids, ops...)
	if err != nil {
		tb.Fatal(err)
	}
	return deltas, undo
}

// BenchmarkOperation measures every operation beside the naive way to derive
// graphs: the mean, the median and the 99th percentile of the operation alone,
// without its preparation and undo.
func BenchmarkOperation(b *testing.B) {
	for _, n := range sizesToMeasure() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for _, shape := range shapes {
				shape.measure(b, n)
			}
		})
	}
}

// measure runs the workloads of a shape on one state, which becomes garbage
// before the next one is made. The references run after all of them, because
// collecting their garbage would slow the workloads down.
func (shape *shape) measure(b *testing.B, n int) {
	var s *bench
	for _, way := range waysToMeasure() {
		for _, w := range workloads {
			if w.shape != shape || way == "search" && !w.searched {
				continue
			}
			b.Run(w.name+"/"+way, func(b *testing.B) {
				if s == nil {
					s = shape.make(b, n)
				}
				w.ops(s, 0) // finds what it will need, which may take long
				touchMemory()
				ways[way](&w, b, s)
			})
		}
	}
}

// touchMemory provides the collector with memory that has been used: the
// machine may be slow to provide a page for the first time, and that is not
// part of the cost of an operation.
func touchMemory() {
	const page, size = 4096, 256 << 20
	memory := make([]byte, size)
	for i := 0; i < size; i += page {
		memory[i] = 1
	}
	runtime.KeepAlive(memory)
	memory = nil
	runtime.GC()
}

// ways lists the variants that BenchmarkOperation measures: the forest of this
// package, with and without the garbage collector, the naive way, and for some
// a search from both ends.
var ways = map[string]func(*workload, *testing.B, *bench){
	"forest": (*workload).measure, "uncollected": (*workload).measureUncollected,
	"naive": (*workload).measureNaive, "search": (*workload).measureSearch,
}

func waysToMeasure() []string {
	if growthOnly() {
		return []string{"forest"}
	}
	return []string{"forest", "uncollected", "naive", "search"}
}

func sizesToMeasure() []int {
	if growthOnly() {
		return growth
	}
	return sizes
}

// measure times the operation on the state. Some workloads keep their changes,
// so that the state grows to twice its size before it is rebuilt. They drop
// the undo functions, as callers do after applying a change: otherwise these
// would be half of the memory that the collector scans.
func (w *workload) measure(b *testing.B, s *bench) {
	var times []time.Duration
	grown := 0
	for i := 0; b.Loop(); i++ {
		ops := w.ops(s, i)
		start := time.Now()
		deltas, undo := s.try(b, ops...)
		if w.undone {
			undo()
		}
		times = append(times, time.Since(start))
		w.check(b, deltas)
		switch {
		case w.undone:
		case !w.grows:
			undo()
		default:
			if grown++; grown == s.n {
				b.StopTimer()
				w.renew(b, s)
				grown = 0
				b.StartTimer()
			}
		}
	}
	if grown > 0 {
		w.renew(b, s)
	}
	report(b, times)
}

// renew rebuilds the initial state.
func (w *workload) renew(b *testing.B, s *bench) {
	n := s.n
	*s = bench{} // one at a time
	*s = *w.shape.make(b, n)
	runtime.GC()
}

// follow makes the naive counterpart of the state if necessary.
func (b *bench) follow() {
	if b.naive == nil {
		b.naive = newNaive(b.Snapshot())
	}
}

// measureNaive times following the same operation by changing lists of edges
// and recomputing all components.
func (w *workload) measureNaive(b *testing.B, s *bench) {
	s.follow()
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		deltas, undo := s.try(b, w.ops(s, i)...)
		start := time.Now()
		s.naive.follow(deltas)
		components := s.naive.components()
		times = append(times, time.Since(start))
		if _, _, graphs := s.Counts(); graphs != components {
			b.Fatalf("%d graphs, search finds %d", graphs, components)
		}
		s.naive.unfollow(deltas)
		undo()
	}
	report(b, times)
}

// check verifies that the measured operation is the one that the workload
// names.
func (w *workload) check(tb testing.TB, deltas []Delta) {
	d := deltas[len(deltas)-1]
	if d.Kind != w.kind || w.affected > 0 && len(d.Affected) != w.affected {
		tb.Fatalf("%s: %s of %d creatures", w.name, d.Kind, len(d.Affected))
	}
}

// report replaces the mean, which would include untimed work, and adds the
// median and the 99th percentile.
func report(b *testing.B, times []time.Duration) {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	slices.Sort(times)
	b.ReportMetric(float64(sum.Nanoseconds())/float64(len(times)), "ns/op")
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
}
