package main

import (
	"maps"
	"strings"
	"testing"
)

// measured keeps one figure of package topology for the tables.
func measured(size, way, metric string, value float64) results {
	return results{key(topoPkg, "Operation/"+size+"/join/"+way, metric): {value}}
}

func TestTargetsAreJudged(t *testing.T) {
	join := []operation{{name: "join", p99: addTarget}}
	for _, c := range []struct {
		collected, calm float64
		want            string
	}{
		{addTarget, addTarget, "met "},
		{addTarget + 1, addTarget + 1, "missed "},
		{addTarget + 1, addTarget, "missed, met without the collector "},
	} {
		got := measured(targetSize, "forest", "p99-ns", c.collected)
		maps.Copy(got, measured(targetSize, "uncollected", "p99-ns", c.calm))
		maps.Copy(got, measured(targetSize, "forest", "ns/op", 1000))
		maps.Copy(got, measured(targetSize, "naive", "ns/op", 5_000_000))
		var out strings.Builder
		printOperations(&out, join, got)
		if text := out.String(); !strings.Contains(text, "│ "+c.want) || !strings.Contains(text, " 5000 ") {
			t.Errorf("a p99 of %v, and of %v without the collector, should be %s, 5000 times faster:\n%s", c.collected, c.calm, c.want, text)
		}
	}
}

func TestGrowthIsJudged(t *testing.T) {
	for value, want := range map[float64]string{2_900: "met", 3_100: "missed"} {
		got := measured("10000", "forest", "p50-ns", 1_000)
		maps.Copy(got, measured("1000000", "forest", "p50-ns", value))
		got[key(topoPkg, "Machine/10000/reads", "p50-ns")] = []float64{200}
		got[key(topoPkg, "Machine/1000000/reads", "p50-ns")] = []float64{1_400}
		var out strings.Builder
		printGrowth(&out, []operation{{name: "join"}}, got)
		if text := out.String(); !strings.Contains(text, want+" ") || !strings.Contains(text, " 7.00 ") {
			t.Errorf("growth to %v should be %s, beside a machine that grows sevenfold:\n%s", value, want, text)
		}
	}
}
