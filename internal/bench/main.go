package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

func main() {
	count := flag.Int("count", 1, "how many times each benchmark runs; the median counts")
	run := flag.String("run", ".", "only comparisons whose name matches this regular expression")
	benchtime := flag.String("benchtime", "1s", "as for go test")
	growth := flag.Bool("growth", false, "measure only how the topology's operations grow from 10,000 to 1,000,000 creatures; needs 8 GB and some minutes")
	flag.Parse()
	if err := compare(os.Stdout, *run, *count, *benchtime, *growth); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// comparison is one line of the result: a benchmark beside its reference.
type comparison struct {
	what            string
	pkg, bench      string
	refPkg, refName string // empty: no reference
	metric          string
	more            string // the meaning of a larger number: "better" or "worse"
	note            string
}

const (
	benchPkg = "./internal/bench"
	hostPkg  = "./host"
	storePkg = "./sqlitestore"
	hclPkg   = "./recipes"
	lawPkg   = "./recipes/policy"
	topoPkg  = "./engine/topology"
	meterPkg = "./host/wasmbin/meter"
	outerPkg = "./internal/outsidetest"
	doorPkg  = "./serve"
	// peersPkg is a Go module of its own, which is left out if it does not build.
	peersPkg = "./internal/bench/peers"
)

// comparisons lists the figures that make bench prints.
var comparisons = []comparison{
	{"turn of a guest, host alone", hostPkg, "Handle/caller_that_never_ends", hostPkg, "BareCall", "ns/op", "worse", "target: at most 3 x"},
	{"delivery, one creature, no store", benchPkg, "Delivery", hostPkg, "BareCall", "ns/op", "worse", "target: at most 3 x"},
	{"three creatures in a row, 100 bytes", benchPkg, "Row", peersPkg, "Protocol/row", "ns/op", "worse", "target: 1,200 ns; beside guests of the waPC protocol"},
	{"ring of 2", benchPkg, "Ring/wasm/2", benchPkg, "Ring/goroutines/2", "M/s", "better", ""},
	{"ring of 10", benchPkg, "Ring/wasm/10", benchPkg, "Ring/goroutines/10", "M/s", "better", ""},
	{"ring of 1,000", benchPkg, "Ring/wasm/1000", benchPkg, "Ring/goroutines/1000", "M/s", "better", "target: 3 M/s"},
	{"ring of 10,000", benchPkg, "Ring/wasm/10000", benchPkg, "Ring/goroutines/10000", "M/s", "better", "target: 2 M/s"},
	{"ring of 1,000, engine without Wasm", benchPkg, "Ring/engine/1000", benchPkg, "Ring/goroutines/1000", "M/s", "better", ""},
	{"ring of 10,000, engine without Wasm", benchPkg, "Ring/engine/10000", benchPkg, "Ring/goroutines/10000", "M/s", "better", ""},
	{"ring of 10, logged, a subscriber that reads", benchPkg, "Watched/reading", benchPkg, "Watched/nobody", "M/s", "better", ""},
	{"ring of 10, logged, one that never reads", benchPkg, "Watched/never_reading", benchPkg, "Watched/nobody", "M/s", "better", "target: 1 x"},
	{"10,000 events a second, 50 subscribers over HTTP of whom 10 are slow: turns", doorPkg, "TurnsWithSubscribers/40+10", doorPkg, "TurnsWithSubscribers/0+0", "turns/s", "better", "target: 0.95 x; beside none"},
	{"these: from message to end of turn, median", doorPkg, "TurnsWithSubscribers/40+10", doorPkg, "TurnsWithSubscribers/0+0", "µs-p50", "worse", ""},
	{"these: from message to end of turn, p99", doorPkg, "TurnsWithSubscribers/40+10", doorPkg, "TurnsWithSubscribers/0+0", "µs-p99", "worse", "40 readers run on the same cores"},
	{"turns whose spans are exported, as fast as they are sent: processor time", benchPkg, "Exported/unpaced/exported", benchPkg, "Exported/unpaced/alone", "cpu-us/turn", "worse", "beside turns without spans"},
	{"turns whose spans are exported, 1,000 a second: processor time", benchPkg, "Exported/1000/exported", benchPkg, "Exported/1000/alone", "cpu-us/turn", "worse", ""},
	{"fan-out 1 to 1,000", benchPkg, "FanOut/wasm", benchPkg, "FanOut/engine", "M/s", "better", "target: 4 M/s"},
	{"idle creature wakes and handles", benchPkg, "Wake", hostPkg, "BareCall", "ns/op", "worse", "target: 20,000 ns"},
	{"request of 100 bytes and back", benchPkg, "Request/bytes=100/into=false", peersPkg, "Extism/bytes=100", "ns/op", "worse", "target: 1,000 ns; beside Extism"},
	{"request of 100 bytes and back, with memory for the reply", benchPkg, "Request/bytes=100/into=true", peersPkg, "Extism/bytes=100", "ns/op", "worse", ""},
	{"request of 100 bytes: allocations", benchPkg, "Request/bytes=100/into=false", peersPkg, "Extism/bytes=100", "allocs/op", "worse", "target: 4"},
	{"request of 100 bytes and back, beside a guest of the waPC protocol", benchPkg, "Request/bytes=100/into=true", peersPkg, "Protocol/bytes=100", "ns/op", "worse", ""},
	{"request of 64 KiB and back, beside one", benchPkg, "Request/bytes=65536/into=true", peersPkg, "Protocol/bytes=65536", "ns/op", "worse", ""},
	{"requests of 64 callers, beside one", benchPkg, "Request/callers=64", peersPkg, "Protocol/callers=64", "M/s", "better", ""},
	{"request of 64 KiB and back", benchPkg, "Request/bytes=65536/into=false", peersPkg, "Extism/bytes=65536", "ns/op", "worse", ""},
	{"request of 64 KiB and back, with memory for the reply", benchPkg, "Request/bytes=65536/into=true", peersPkg, "Extism/bytes=65536", "ns/op", "worse", "target: 4,000 ns"},
	{"requests of 64 callers", benchPkg, "Request/callers=64", peersPkg, "Extism/callers=64", "M/s", "better", "target: 1.5 M/s"},
	{"requests of 64 callers, beside one caller", benchPkg, "Request/callers=64", benchPkg, "Request/callers=1", "M/s", "better", "target: 1.5 x on two cores"},
	{"message in, and its answer read on a channel", benchPkg, "SendRead", peersPkg, "Extism/bytes=100", "ns/op", "worse", ""},
	{"durable requests of 64 callers, normal", benchPkg, "DurableRequest/normal", benchPkg, "Request/callers=64", "M/s", "better", "target: 0.06 M/s"},
	{"durable requests of 64 callers, full", benchPkg, "DurableRequest/full", benchPkg, "Request/callers=64", "M/s", "better", "target: 0.015 M/s"},
	{"http requests to a local server, no store", outerPkg, "Requests/stored=false", "", "", "requests/s", "better", "target: 5,000"},
	{"http requests to a local server, normal", outerPkg, "Requests/stored=true", "", "", "requests/s", "better", "target: 5,000"},
	{"mqtt: messages in, durable", outerPkg, "MQTT", "", "", "messages/s", "better", "target: 20,000"},
	{"mqtt: processor time of a message", outerPkg, "MQTT", "", "", "cpu-us/message", "worse", ""},
	{"spawn and remove, small module", benchPkg, "Spawn", "", "", "ns/op", "worse", "target: 25,000 ns"},
	{"memory of a live creature", benchPkg, "Memory", "", "", "KB/creature", "worse", "target: 16 KB; the guest's one page is 64"},
	{"10,000 hibernated creatures of one graph: heap of each", benchPkg, "Hibernated/one_graph/hibernated", benchPkg, "Hibernated/one_graph/awake", "B/creature", "worse", "target: 2,000 B, and its state; beside creatures that are only idle"},
	{"these, each alone: heap of each", benchPkg, "Hibernated/apart/hibernated", benchPkg, "Hibernated/apart/awake", "B/creature", "worse", "target: 2,000 B, and its state"},
	{"these, of one graph: memory of the process for each", benchPkg, "Hibernated/one_graph/hibernated", benchPkg, "Hibernated/one_graph/awake", "resident-B/creature", "worse", ""},
	{"a hibernated creature wakes and answers", benchPkg, "Hibernated/one_graph/hibernated", benchPkg, "Hibernated/one_graph/awake", "ns/wake", "worse", "target: 50,000 ns; beside one that is awake"},
	{"connect and part one creature, a graph of 10,000, no store", benchPkg, "ConnectAndPart/10000", benchPkg, "ConnectAndPart/100", "ns/op", "worse", "target: as with 100"},
	{"a recipe of 10,000 creatures, written out: apply", benchPkg, "LargeRecipe/written", "", "", "apply-ms", "worse", "target: 1,500 ms"},
	{"this: plan while it runs", benchPkg, "LargeRecipe/written", "", "", "plan-ms", "worse", "target: 1,000 ms"},
	{"this: apply it with one creature more", benchPkg, "LargeRecipe/written", "", "", "one-more-ms", "worse", "target: 500 ms"},
	{"this: memory", benchPkg, "LargeRecipe/written", "", "", "peak-MB", "worse", "target: 300 MB; twice what is live"},
	{"a recipe of 10,000 creatures by for_each: apply", benchPkg, "LargeRecipe/repeated", benchPkg, "LargeRecipe/written", "apply-ms", "worse", "target: 900 ms to load it"},
	{"turns with a store, normal", benchPkg, "Durable/normal", benchPkg, "Durable/none", "M/s", "better", "target: 0.1 M/s"},
	{"turns with a store, full", benchPkg, "Durable/full", benchPkg, "Durable/none", "M/s", "better", "target: 0.05 M/s"},
	{"open and resume 100 creatures, 1,000,000 events", benchPkg, "Resume/terrarium", benchPkg, "Resume/sqlite", "ns/op", "worse", "target: 200,000,000 ns; beside reading the same rows"},
	{"after 1,000 merges and 1,000 splits: list the sessions", benchPkg, "Old/list", "", "", "ns/op", "worse", "target: 500,000,000 ns"},
	{"after these: the lineage of a live one", benchPkg, "Old/lineage", "", "", "ns/op", "worse", "target: 500,000,000 ns"},
	{"after these: verify it", benchPkg, "Old/verify", "", "", "ns/op", "worse", "target: 2,000,000,000 ns"},
	{"after these: files", benchPkg, "Old/list", "", "", "files", "worse", "two graphs live"},
	{"after these: bytes", benchPkg, "Old/list", "", "", "MB", "worse", ""},
	{"1,000 creatures, each with a store: add", benchPkg, "Unjoined", "", "", "add-ms", "worse", "target: 1,000 ms"},
	{"1,000 creatures, each with a store: close", benchPkg, "Unjoined", "", "", "close-ms", "worse", "target: 1,000 ms"},
	{"1,000 creatures, each with a store: memory", benchPkg, "Unjoined", "", "", "peak-MB", "worse", "target: 120 MB"},
	{"1,000 creatures, each with a store: on disk", benchPkg, "Unjoined", "", "", "MB", "worse", "target: 40 MB"},
	{"replace a module, no store: what the creature notices, p99", benchPkg, "Replace/none/compiled", benchPkg, "Replace/none/calm", "itself-p99-ms", "worse", "target: 5 ms; beside no replacement"},
	{"replace a module, no store: what a neighbour notices, p99", benchPkg, "Replace/none/compiled", benchPkg, "Replace/none/calm", "neighbour-p99-ms", "worse", "target: 5 ms"},
	{"replace a module, normal: what the creature notices, median", benchPkg, "Replace/normal/compiled", benchPkg, "Replace/normal/calm", "itself-p50-ms", "worse", "target: 5 ms"},
	{"replace a module, normal: what the creature notices, p99", benchPkg, "Replace/normal/compiled", benchPkg, "Replace/normal/calm", "itself-p99-ms", "worse", ""},
	{"replace a module, normal: what a neighbour notices, p99", benchPkg, "Replace/normal/compiled", benchPkg, "Replace/normal/calm", "neighbour-p99-ms", "worse", ""},
	{"replace a module that is not compiled yet, normal: what the creature notices, median", benchPkg, "Replace/normal/new", benchPkg, "Replace/normal/calm", "itself-p50-ms", "worse", "target: 5 ms"},
	{"replace a module, full: what the creature notices, median", benchPkg, "Replace/full/compiled", benchPkg, "Replace/full/calm", "itself-p50-ms", "worse", "target: 5 ms"},
	{"replay 1,000,000 turns", benchPkg, "Replay", "", "", "ns/op", "worse", "target: 60,000,000,000 ns"},
	{"replay 1,000,000 turns: processor time", benchPkg, "Replay", "", "", "cpu-s", "worse", ""},
	{"a recipe of 1,000 creatures, channels and policies, as validate reads it", hclPkg, "Validate/1000", hclPkg, "Validate/100", "ns/op", "worse", "target: 500,000,000 ns"},
	{"policy: a decision, no objection", lawPkg, "Decision/allow", lawPkg, "BareScript/allow", "ns/op", "worse", "target: 5,000 ns; beside the script alone"},
	{"policy: match is false", lawPkg, "Decision/match=false", lawPkg, "BareScript/match=false", "ns/op", "worse", "target: 1,000 ns"},
	{"policy: deny", lawPkg, "Decision/deny", lawPkg, "BareScript/deny", "ns/op", "worse", "target: 5,000 ns"},
	{"policy: patch", lawPkg, "Decision/patch", lawPkg, "BareScript/patch", "ns/op", "worse", "target: 5,000 ns"},
	{"policy: reads and writes ctx.state", lawPkg, "Decision/state", lawPkg, "BareScript/state", "ns/op", "worse", "target: 5,000 ns"},
	{"policy: reads and writes ctx.state, of 16 KiB", lawPkg, "Decision/state/16KiB", lawPkg, "BareScript/state/16KiB", "ns/op", "worse", ""},
	{"policy: looks for creatures among 10", lawPkg, "Decision/graph/10", lawPkg, "BareScript/graph/10", "ns/op", "worse", "target: 5,000 ns"},
	{"policy: looks for creatures among 1,000", lawPkg, "Decision/graph/1000", lawPkg, "BareScript/graph/1000", "ns/op", "worse", "target: 5,000 ns"},
	{"policy: a decision, in a separate process", lawPkg, "Decision/process", lawPkg, "Decision/allow", "ns/op", "worse", "beside the same without one"},
	{"store: appended turns, 256 producers, full", storePkg, "Append/durability=full/producers=256", storePkg, "Append/durability=full/producers=1", "turns/s", "better", "each waits until it is durable"},
	{"store: appended turns, 256 producers, normal", storePkg, "Append/durability=normal/producers=256", storePkg, "Append/durability=normal/producers=1", "turns/s", "better", "each waits until it is written"},
	{"store: checksums of events, part of the writer's time", storePkg, "Sums", "", "", "sums-%", "worse", "target: 3 %"},
	{"compile a large module in a separate process", hostPkg, "Compile/apart", hostPkg, "Compile/here", "ns/op", "worse", "beside the same process"},
	{"store: pause of a cut at 1,000,000 events, median", storePkg, "Pause/events=1000000/calm", storePkg, "Pause/events=1000/calm", "p50-ms", "worse", "target: as at 1,000"},
	{"store: pause of a cut at 1,000,000 events, p99", storePkg, "Pause/events=1000000/calm", storePkg, "Pause/events=1000/calm", "p99-ms", "worse", "target: 5 ms"},
	{"store: arithmetic that takes about as long, meanwhile, p99", storePkg, "Pause/events=1000000/calm", storePkg, "Pause/events=1000/calm", "arithmetic-p99-ms", "worse", "the machine alone"},
	{"store: pause with full, 1,000,000 events, median", storePkg, "Pause/events=1000000/full", storePkg, "Pause/events=1000/full", "p50-ms", "worse", "target: as at 1,000"},
	{"store: pause with full, 1,000,000 events, p99", storePkg, "Pause/events=1000000/full", storePkg, "Pause/events=1000/full", "p99-ms", "worse", "target: 5 ms"},
	{"store: from a cut with full to the first event acknowledged, median", storePkg, "Pause/events=1000000/full", storePkg, "Pause/events=1000/full", "acknowledged-p50-ms", "worse", "creatures continue meanwhile"},
	{"store: from a cut with full to the first event acknowledged, p99", storePkg, "Pause/events=1000000/full", storePkg, "Pause/events=1000/full", "acknowledged-p99-ms", "worse", ""},
	{"store: two syncs of the disk, meanwhile, p99", storePkg, "Pause/events=1000000/full", storePkg, "Pause/events=1000/full", "syncs-p99-ms", "worse", "what that waits for, at least"},
	{"store: cuts without a break, 1,000,000 events, median", storePkg, "Pause/events=1000000/storm", storePkg, "Pause/events=1000/storm", "p50-ms", "worse", ""},
	{"store: history of a split, 1,000,000 events", storePkg, "History/kind=split", "", "", "x-cp", "worse", "target: 2 x a copy that is synced"},
	{"store: history of a merge", storePkg, "History/kind=merge", "", "", "events/s", "better", "target: 300,000"},
	{"store: appends while a merge is copied, p99", storePkg, "History/kind=merge", "", "", "append-p99-ms", "worse", "target: 6 ms"},
	{"search in 1,000,000 events, p99", storePkg, "Search/index", storePkg, "Search/scan", "p99-ms", "worse", "target: 50 ms; the reference is a LIKE scan"},
	{"search in 1,000,000 events, median", storePkg, "Search/index", storePkg, "Search/scan", "p50-ms", "worse", ""},
	{"search: making the index of 1,000,000 events", storePkg, "Search/index", "", "", "build-s", "worse", ""},
	{"search: its size", storePkg, "Search/index", "", "", "index-MB", "worse", ""},
	{"store: appends while an index is made", storePkg, "AppendIndexed/index=true", storePkg, "AppendIndexed/index=false", "events/s", "better", "target: 1 x"},
}

// paces are the rates of the comparisons of paced requests, in requests per second.
var paces = []int{500, 1000, 2500, 5000}

func init() {
	for _, pace := range paces {
		bench := fmt.Sprintf("PacedRequests/%d/", pace)
		for _, store := range []struct{ what, name string }{{"no store", "stored=false"}, {"normal", "stored=true"}} {
			what := fmt.Sprintf("http, %d requests a second, %s: ", pace, store.what)
			add := func(name, metric, note string) {
				comparisons = append(comparisons, comparison{what + name, outerPkg, bench + store.name, outerPkg, bench + "bare", metric, "worse", note})
			}
			goal := ""
			if pace == 5000 {
				goal = "target: 1 ms; "
			}
			add("the engine's own share, median", "own-p50-ms", "")
			add("the engine's own share, p99", "own-p99-ms", goal+"beside waking four goroutines")
			add("that of a bare client at the same moments, p99", "beside-p99-ms", "what the machine adds")
			add("from message to result, p99", "total-p99-ms", "beside the bare client")
			add("processor time of a request", "cpu-us/request", "beside the bare client; with the server")
		}
	}
}

// metered lists the workloads of the metering comparisons. Each is measured in
// three ways.
var metered = []struct{ name, what string }{
	{"loop", "a tight loop"}, {"memory", "memory traffic"}, {"recursion", "recursion"},
	{"sort", "sorting, in WAT"}, {"csort", "sorting, in C"}, {"go", "a workload in Go"},
}

func init() {
	for _, m := range metered {
		without := "Metering/" + m.name + "/unmetered"
		comparisons = append(comparisons,
			comparison{"metering: " + m.what, meterPkg, "Metering/" + m.name + "/metered", meterPkg, without, "ns/op", "worse", "target: at most 1.4 x"},
			comparison{"metering: " + m.what + ", by close-on-context-done", meterPkg, "Metering/" + m.name + "/close-on-context-done", meterPkg, without, "ns/op", "worse", ""})
	}
}

// results holds benchmark figures: package, name and metric map to one value
// for each run.
type results map[string][]float64

func key(pkg, name, metric string) string { return pkg + " " + name + " " + metric }

func compare(w io.Writer, pattern string, count int, benchtime string, growth bool) error {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if growth {
		return topologyTables(w, wanted, count, growth)
	}
	chosen := slices.DeleteFunc(slices.Clone(comparisons), func(c comparison) bool { return !wanted.MatchString(c.what) })
	got := results{}
	for _, pkg := range packagesOf(chosen) {
		names := benchmarksOf(chosen, pkg)
		err := measure(w, got, pkg, names, count, benchtime)
		if err != nil && pkg == peersPkg {
			fmt.Fprintln(w, "The peers are left out:", err)
		} else if err != nil {
			return err
		}
	}
	if len(chosen) > 0 {
		print(w, chosen, got)
	}
	if err := kitsTable(w, wanted, count, benchtime); err != nil {
		return err
	}
	return topologyTables(w, wanted, count, growth)
}

// packagesOf lists the packages of the benchmarks that the comparisons need.
func packagesOf(chosen []comparison) (all []string) {
	for _, c := range chosen {
		for _, pkg := range []string{c.pkg, c.refPkg} {
			if pkg != "" && !slices.Contains(all, pkg) {
				all = append(all, pkg)
			}
		}
	}
	return all
}

// benchmarksOf lists the top-level benchmarks that the comparisons need.
func benchmarksOf(chosen []comparison, pkg string) []string {
	var names []string
	add := func(p, name string) {
		top, _, _ := strings.Cut(name, "/")
		if p == pkg && !slices.Contains(names, top) {
			names = append(names, top)
		}
	}
	for _, c := range chosen {
		add(c.pkg, c.bench)
		add(c.refPkg, c.refName)
	}
	return names
}

// measure runs benchmarks of one package, with env added to the environment,
// and collects their results.
func measure(w io.Writer, got results, pkg string, names []string, count int, benchtime string, env ...string) error {
	expr := "^Benchmark(" + strings.Join(names, "|") + ")$"
	dir, in := ".", pkg
	if pkg == peersPkg {
		dir, in = pkg, "."
	}
	cmd := exec.Command("go", "test", "-C", dir, "-run", "^$", "-bench", expr, "-benchtime", benchtime, "-count", strconv.Itoa(count), "-timeout", "1h", in)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, w)
	cmd.Stderr = w
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				k := key(pkg, name, fields[i+1])
				got[k] = append(got[k], v)
			}
		}
	}
	return nil
}

func median(list []float64) (float64, bool) {
	if len(list) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2], true
}

func print(w io.Writer, chosen []comparison, got results) {
	t := newTable(w, "", "measured", "reference", "ratio", "unit", "note")
	for _, c := range chosen {
		v, ok := median(got[key(c.pkg, c.bench, c.metric)])
		if !ok {
			t.AppendRow(table.Row{c.what, "not measured", "", "", c.metric, c.note})
			continue
		}
		row := table.Row{c.what, number(v), "", "", c.metric, c.note}
		if ref, ok := median(got[key(c.refPkg, c.refName, c.metric)]); ok && ref != 0 {
			row[2], row[3] = number(ref), fmt.Sprintf("%.2f", v/ref)
		}
		t.AppendRow(row)
	}
	t.Render()
}

func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
