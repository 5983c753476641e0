package hostile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hostile"
	"github.com/seed47132306/terrarium/plugins"
)

// deadline is the limit of the measured runaways: long enough to show the time
// after it.
const deadline = 20 * time.Millisecond

// BenchmarkHostile measures for every guest that does not return the time from
// its deadline to its end, how long its fuel lasts, how long the neighbours'
// messages take meanwhile, and how long it delays the garbage collector and
// the closing of the engine.
//
//	go test -run - -bench Hostile -benchtime 10x ./conformance/hostile
//
// The first one, quiet, is not an attack: it is the reference for the others.
func BenchmarkHostile(b *testing.B) {
	pending := readPending(b)
	quiet := hostile.Module{Build: func() []byte {
		echo, err := plugins.Get("echo")
		if err != nil {
			b.Fatal(err)
		}
		return echo
	}}
	b.Run("quiet", func(b *testing.B) {
		b.Run("end", func(b *testing.B) { benchmarkRun(b, &quiet, &hostile.End{}, 0) })
		b.Run("collector", func(b *testing.B) { benchmarkCollector(b, &quiet, &hostile.End{}) })
		b.Run("close", func(b *testing.B) { benchmarkClose(b, &quiet) })
	})
	for _, m := range hostile.Modules() {
		if m.Ends[0].In != abi.ExportHandle || m.Ends[0].Code != abi.OutOfFuel {
			continue
		}
		byFuel, byDeadline := m.Ends[0], m.Ends[1]
		byDeadline.Limits.Deadline = deadline
		b.Run(m.Name, func(b *testing.B) {
			if why, ok := pending[m.Name]; ok {
				b.Skip(why)
			}
			b.Run("deadline", func(b *testing.B) { benchmarkRun(b, &m, &byDeadline, deadline) })
			b.Run("fuel", func(b *testing.B) {
				if why, ok := pending[m.Name+"/fuel"]; ok {
					b.Skip(why)
				}
				benchmarkRun(b, &m, &byFuel, 0)
			})
			b.Run("collector", func(b *testing.B) { benchmarkCollector(b, &m, &byDeadline) })
			b.Run("close", func(b *testing.B) { benchmarkClose(b, &m) })
		})
	}
}

// benchmarkRun reports the time from the limit to the end, or just to the end,
// and the effect on the neighbours.
func benchmarkRun(b *testing.B, m *hostile.Module, end *hostile.End, limit time.Duration) {
	stage := newStage(b)
	var over, median, worst []time.Duration
	for b.Loop() {
		report := run(b, stage, m, end)
		over = append(over, report.Took-limit)
		median = append(median, report.Neighbours.Median)
		worst = append(worst, report.Neighbours.Worst)
	}
	what := "end"
	if limit > 0 {
		what = "over"
	}
	tell(b, what, over)
	b.ReportMetric(micros(middle(median)), "µs-neighbour-p50")
	b.ReportMetric(micros(slices.Max(worst)), "µs-neighbour-worst")
	b.ReportMetric(0, "ns/op") // mostly the time that the module was allowed
}

// benchmarkCollector reports the longest garbage collection.
func benchmarkCollector(b *testing.B, m *hostile.Module, end *hostile.End) {
	stage := newStage(b)
	stage.CollectGarbage = true
	var worst []time.Duration
	for b.Loop() {
		worst = append(worst, run(b, stage, m, end).Collection)
	}
	tell(b, "collection", worst)
	b.ReportMetric(0, "ns/op")
}

// benchmarkClose reports how long it takes to close an engine without waiting.
func benchmarkClose(b *testing.B, m *hostile.Module) {
	var times []time.Duration
	for b.Loop() {
		stage, err := hostile.NewStage(b.Context(), "")
		if err != nil {
			b.Fatal(err)
		}
		took, err := stage.CloseDuring(b.Context(), m)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, took)
	}
	tell(b, "close", times)
	b.ReportMetric(0, "ns/op")
}

func newStage(b *testing.B) *hostile.Stage {
	b.Helper()
	stage, err := hostile.NewStage(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := stage.Close(b.Context()); err != nil {
			b.Error(err)
		}
	})
	return stage
}

func run(b *testing.B, stage *hostile.Stage, m *hostile.Module, end *hostile.End) *hostile.Report {
	b.Helper()
	report, err := stage.Run(b.Context(), m, end)
	if err != nil {
		b.Fatal(err)
	}
	if report.Code != end.Code {
		b.Fatalf("it ended with %v: %s", report.Code, report.Text)
	}
	return report
}

// tell reports the median and the maximum of some times.
func tell(b *testing.B, what string, times []time.Duration) {
	b.ReportMetric(micros(middle(times)), "µs-"+what+"-p50")
	b.ReportMetric(micros(slices.Max(times)), "µs-"+what+"-worst")
}

func middle(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
