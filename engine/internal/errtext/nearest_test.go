package errtext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

func TestNearestFirst(t *testing.T) {
	for wanted, want := range map[string]string{
		"report":  "reports Report-2 zebra orders ann",
		"REPORTS": "reports Report-2 zebra orders ann",
		"oders":   "orders zebra reports Report-2 ann",
		"annie":   "ann zebra orders reports Report-2",
		"":        "zebra orders reports Report-2 ann",
		"zzz":     "zebra orders reports Report-2 ann",
	} {
		got := strings.Fields("zebra orders reports Report-2 ann")
		errtext.NearestFirst(wanted, got, func(name string) string { return name })
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %v, want %s", wanted, got, want)
		}
	}
}
