package main

import (
	"strings"
	"testing"
)

// measured puts one figure of package topology where the tables look for it.
func measured(size, way, metric string, value float64) results {
	return results{key(topoPkg, "Operation/"+size+"/join/"+way, metric): {value}}
}

func TestTargetsAreJudged(t *testing.T) {
	join := []operation{{name: "join", p99: addTarget}}
	for value, want := range map[float64]string{addTarget: "met", addTarget + 1: "missed"} {
		got := measured(targetSize, "forest", "p99-ns", value)
		got[key(topoPkg, "Operation/"+targetSize+"/join/forest", "ns/op")] = []float64{1000}
		got[key(topoPkg, "Operation/"+targetSize+"/join/naive", "ns/op")] = []float64{5_000_000}
		var out strings.Builder
		printOperations(&out, join, got)
		if text := out.String(); !strings.Contains(text, want+" ") || !strings.Contains(text, " 5000 ") {
			t.Errorf("a p99 of %v should be %s, 5000 times faster:\n%s", value, want, text)
		}
	}
}

func TestGrowthIsJudged(t *testing.T) {
	for value, want := range map[float64]string{2_900: "met", 3_100: "missed"} {
		got := measured("10000", "forest", "p50-ns", 1_000)
		for k, v := range measured("1000000", "forest", "p50-ns", value) {
			got[k] = v
		}
		var out strings.Builder
		printGrowth(&out, []operation{{name: "join"}}, got)
		if text := out.String(); !strings.Contains(text, want+" ") {
			t.Errorf("growth to %v should be %s:\n%s", value, want, text)
		}
	}
}
