package main

import (
	"strings"
	"testing"
)

func TestKitsAreJudged(t *testing.T) {
	got := results{}
	add := func(language, what, metric string, value float64) {
		got[key(kitsPkg, "Kits/"+language+"/"+what, metric)] = []float64{value}
	}
	for language, turn := range map[string]float64{bare: 100, "C": 130, "Go": 401} {
		add(language, "turn", "cpu-ns/op", turn)
		add(language, "size", "B/module", turn*10)
	}
	add("C", "first", "cpu-ns/op", 1_500_000)
	var out strings.Builder
	printKits(&out, got)
	rows := strings.Split(out.String(), "\n")[3:]
	for i, want := range [][]string{
		{bare, " 1000 ", " 1.00 "},
		{"C", " 1300 ", " 1.5 ", " 1.30 ", "at most 1.3", " met "},
		{"Go", " 4010 ", "not measured", " 4.01 ", "at most 4.0", " missed "},
	} {
		for _, part := range want {
			if !strings.Contains(rows[i], part) {
				t.Errorf("row %d should have %q:\n%s", i, part, out.String())
			}
		}
	}
}
