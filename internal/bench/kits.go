package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

const (
	kitsPkg = "./sdk"
	// bare is the creature without a kit that the kits are compared with.
	bare = "WAT"
)

// kitTargets says how many times the processor time of the bare creature a turn
// may take, by language.
var kitTargets = map[string]float64{"Go": 4, "Rust": 1.3, "C": 1.3, "C++": 1.3, "Zig": 1.3, "AssemblyScript": 2}

// kitsTable measures the kits of sdk and prints what each language costs.
func kitsTable(w io.Writer, wanted *regexp.Regexp, count int, benchtime string) error {
	if !wanted.MatchString("kits") {
		return nil
	}
	got := results{}
	if err := measure(w, got, kitsPkg, []string{"Kits"}, count, benchtime); err != nil {
		return err
	}
	printKits(w, got)
	return nil
}

// kit returns a measured value of a language; ok is false if it was not
// measured, because its toolchain is missing.
func (r results) kit(language, what, metric string) (value float64, ok bool) {
	return median(r[key(kitsPkg, "Kits/"+language+"/"+what, metric)])
}

// kitTimes are the times in the table, with the nanoseconds in their unit.
var kitTimes = []struct {
	what string
	unit float64
}{{"first", 1e6}, {"cached", 1e6}, {"another", 1e3}, {"turn", 1e3}}

func printKits(w io.Writer, got results) {
	t := newTable(w, "kits, processor time", "module, bytes", "first start, ms", "from the cache, ms", "another instance, µs", "memory, KB",
		"turn, µs", "x bare", "target", "")
	floor, _ := got.kit(bare, "turn", "cpu-ns/op")
	for _, language := range languages(got) {
		size, _ := got.kit(language, "size", "B/module")
		row := table.Row{language, fmt.Sprintf("%.0f", size)}
		for _, c := range kitTimes {
			if c.what == "turn" {
				row = append(row, figure(got, language, "memory", "KB/instance", 1))
			}
			row = append(row, figure(got, language, c.what, "cpu-ns/op", c.unit))
		}
		turn, ok := got.kit(language, "turn", "cpu-ns/op")
		if ok && floor > 0 {
			row = append(row, fmt.Sprintf("%.2f", turn/floor))
			if target := kitTargets[language]; target > 0 {
				row = append(row, fmt.Sprintf("at most %.1f", target), verdictOf(turn <= target*floor))
			}
		}
		t.AppendRow(row)
	}
	t.Render()
}

func figure(got results, language, what, metric string, unit float64) string {
	if v, ok := got.kit(language, what, metric); ok {
		return fmt.Sprintf("%.3g", v/unit)
	}
	return "not measured"
}

// languages lists the measured languages, those with the smallest modules
// first.
func languages(got results) []string {
	const size = "/size B/module"
	var names []string
	for k := range got {
		if name, ok := strings.CutPrefix(k, kitsPkg+" Kits/"); ok && strings.HasSuffix(name, size) {
			names = append(names, strings.TrimSuffix(name, size))
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, _ := got.kit(a, "size", "B/module")
		y, _ := got.kit(b, "size", "B/module")
		return int(x - y)
	})
	return names
}
