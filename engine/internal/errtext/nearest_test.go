package errtext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

func TestNearest(t *testing.T) {
	for wanted, want := range map[string]string{
		"report":  "reports Report-2 zebra orders ann",
		"REPORTS": "reports Report-2 zebra orders ann",
		"oders":   "orders zebra reports Report-2 ann",
		"annie":   "ann zebra orders reports Report-2",
		"":        "zebra orders reports Report-2 ann",
		"zzz":     "zebra orders reports Report-2 ann",
	} {
		all := strings.Fields("zebra orders reports Report-2 ann")
		for most := range len(all) + 2 {
			asked := 0
			got := errtext.Nearest(wanted, most, all, func(name string) string { asked++; return name })
			if want := strings.Fields(want); !slices.Equal(got, want[:min(most, len(want))]) {
				t.Errorf("%q, at most %d: %v, want %v", wanted, most, got, want)
			}
			if asked != len(all) {
				t.Errorf("%q: %d names were compared", wanted, asked)
			}
		}
	}
}

func TestNotSpawnableListsTheNearest(t *testing.T) {
	var all []string
	for n := range 40 {
		all = append(all, strings.Repeat("x", n+3))
	}
	all = append(all, "clerk")
	err := errtext.NotSpawnable("", "clerks", all)
	if !strings.Contains(err.Error(), "these may be spawned: clerk, xxx, xxxx, ") || !strings.HasSuffix(err.Error(), ", and 25 more") {
		t.Error(err)
	}
}
