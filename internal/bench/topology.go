package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// operation is a benchmark of package topology with its targets at 100,000
// creatures; zero means none.
type operation struct {
	name   string
	p99    float64 // at most, in nanoseconds
	p50    float64 // at most, in nanoseconds
	faster float64 // at least, than the naive way
	grows  bool    // with the state: its cost is that of the smaller side
}

// The targets. An addition takes at most 20 microseconds, an operation that
// splits off a few creatures is a thousand times faster than a search, and one
// that does not split stays within a millisecond even if there is only one way
// round. Between 10,000 and 1,000,000 creatures a cost grows at most
// threefold.
const (
	addTarget    = 20_000
	ringTarget   = 1_000_000
	splitTarget  = 1_000
	growthTarget = 3
)

// operations lists the benchmarks of package topology, in the order of the
// tables.
var operations = []operation{
	{name: "add creature", p99: addTarget},
	{name: "join", p99: addTarget},
	{name: "add creature on two channels", p99: addTarget},
	{name: "add channel", p99: addTarget},
	{name: "connect within", p99: addTarget},
	{name: "set listen on", p99: addTarget},
	{name: "set send on", p99: addTarget},
	{name: "set listen off", p99: addTarget},
	{name: "set send off", p99: addTarget},
	{name: "connect across, 5 merge", faster: splitTarget},
	{name: "connect across, halves merge", grows: true},
	{name: "disconnect, spare link", p50: ringTarget},
	{name: "disconnect, link of the tree", p50: ringTarget},
	{name: "disconnect, ring", p50: ringTarget},
	{name: "disconnect, two-way ring", p50: ringTarget},
	{name: "disconnect, 5 split off", faster: splitTarget},
	{name: "disconnect, splits in halves", grows: true},
	{name: "remove channel", p50: ringTarget},
	{name: "remove creature, leaf", faster: splitTarget},
	{name: "remove creature, inner", p50: ringTarget},
	{name: "remove creature, bridge to 4", faster: splitTarget},
	{name: "remove creature, hub of 100", p50: ringTarget},
	{name: "stop creature"},
	{name: "batch of 4, taken back"},
}

const (
	targetSize = "100000"
	// An operation takes microseconds, and there are a hundred and more
	// benchmarks; this is enough for thousands of times each.
	topoTime = "0.3s"
)

// topologyTables measures the operations whose name matches and prints them.
func topologyTables(w io.Writer, wanted *regexp.Regexp, count int, growth bool) error {
	chosen := slices.DeleteFunc(slices.Clone(operations), func(o operation) bool {
		return !wanted.MatchString("topology: " + o.name)
	})
	if len(chosen) == 0 {
		return nil
	}
	got := results{}
	names := []string{"Operation", "Machine", "Nothing"}
	var env []string
	if growth {
		names, env = names[:2], []string{"TERRARIUM_GROWTH=1"}
	}
	if err := measure(w, got, topoPkg, names, count, topoTime, env...); err != nil {
		return err
	}
	if growth {
		printGrowth(w, chosen, got)
		return nil
	}
	printOperations(w, chosen, got)
	printSearches(w, got)
	return nil
}

// figure returns a measured value, or 0.
func (r results) figure(size, name, way, metric string) float64 {
	return r.topology("Operation/"+size+"/"+strings.ReplaceAll(name, " ", "_")+"/"+way, metric)
}

func (r results) topology(benchmark, metric string) float64 {
	v, _ := median(r[key(topoPkg, benchmark, metric)])
	return v
}

// machine lists benchmarks of basic machine operations on a state of the same
// size: an operation can hardly be faster.
var machine = []struct{ name, what string }{
	{"reads", "this machine, 20 random reads"},
	{"map", "this machine, 4 lookups in a Go map"},
}

func printOperations(w io.Writer, chosen []operation, got results) {
	t := newTable(w, "topology, in ns", "creatures", "mean", "p50", "p99", "p99, no collector", "naive", "times faster", "target", "")
	for _, o := range chosen {
		for _, size := range []string{"1000", "10000", targetSize} {
			mean, naive := got.figure(size, o.name, "forest", "ns/op"), got.figure(size, o.name, "naive", "ns/op")
			p50, p99 := got.figure(size, o.name, "forest", "p50-ns"), got.figure(size, o.name, "forest", "p99-ns")
			if mean == 0 {
				continue
			}
			calm := got.figure(size, o.name, "uncollected", "p99-ns")
			row := table.Row{o.name, size, number(mean), number(p50), number(p99), number(calm), number(naive), number(naive / mean), "", ""}
			if size == targetSize {
				row[8], row[9] = o.target(p50, p99, calm, naive/mean)
			}
			t.AppendRow(row)
		}
	}
	floor := func(what, size, benchmark string) {
		row := table.Row{what, size, "", "", "", "", "", "", "", ""}
		for i, metric := range []string{"ns/op", "p50-ns", "p99-ns"} {
			row[2+i] = number(got.topology(benchmark, metric))
		}
		t.AppendFooter(row)
	}
	for _, m := range machine {
		floor(m.what, targetSize, "Machine/"+targetSize+"/"+m.name)
	}
	floor("this machine, 10 µs of arithmetic", "", "Nothing")
	t.Render()
}

// target returns the target of an operation and whether it was met; calm is
// its p99 without the garbage collector.
func (o operation) target(p50, p99, calm, faster float64) (text, verdict string) {
	met := true
	switch {
	case o.p99 > 0 && p99 > o.p99 && calm <= o.p99:
		return "p99 at most " + number(o.p99), "missed, met without the collector"
	case o.p99 > 0:
		text, met = "p99 at most "+number(o.p99), p99 <= o.p99
	case o.p50 > 0:
		text, met = "p50 at most "+number(o.p50), p50 <= o.p50
	case o.faster > 0:
		text, met = "times faster: "+number(o.faster), faster >= o.faster
	case o.grows:
		return "with the smaller side", ""
	default:
		return "", ""
	}
	return text, verdictOf(met)
}

func verdictOf(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}

// printGrowth prints medians, because other load on the machine affects them
// least.
func printGrowth(w io.Writer, chosen []operation, got results) {
	t := newTable(w, "topology, p50 in ns", "10,000", "1,000,000", "ratio", "target", "")
	for _, o := range chosen {
		small, large := got.figure("10000", o.name, "forest", "p50-ns"), got.figure("1000000", o.name, "forest", "p50-ns")
		row := table.Row{o.name, number(small), number(large), fmt.Sprintf("%.2f", large/small), "with the smaller side", ""}
		if !o.grows {
			row[4], row[5] = fmt.Sprintf("at most %d", growthTarget), verdictOf(large <= growthTarget*small)
		}
		t.AppendRow(row)
	}
	for _, m := range machine {
		small, large := got.topology("Machine/10000/"+m.name, "p50-ns"), got.topology("Machine/1000000/"+m.name, "p50-ns")
		t.AppendFooter(table.Row{m.what, number(small), number(large), fmt.Sprintf("%.2f", large/small), "", ""})
	}
	t.Render()
}

// printSearches compares removals with the simpler structure: a search from
// both ends of the removed edge.
func printSearches(w io.Writer, got results) {
	t := newTable(w, "search from both ends, in ns", "creatures", "search", "forest", "ratio")
	for _, name := range []string{
		"disconnect, link of the tree", "disconnect, ring", "disconnect, two-way ring", "disconnect, 5 split off", "disconnect, splits in halves",
	} {
		search := got.figure(targetSize, name, "search", "ns/op")
		forest := got.figure(targetSize, name, "forest", "ns/op")
		t.AppendRow(table.Row{name, targetSize, number(search), number(forest), fmt.Sprintf("%.2f", search/forest)})
	}
	t.Render()
}

func newTable(w io.Writer, titles ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(titles)
	return t
}
