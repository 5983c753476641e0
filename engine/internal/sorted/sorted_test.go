package sorted_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/sorted"
)

func TestOrder(t *testing.T) {
	m := map[string]int{"b": 1, "a": 3, "c": 2}
	if got := sorted.Keys(m); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("keys %v", got)
	}
	if got := sorted.KeysFunc(m, func(a, b string) int { return cmp.Compare(m[a], m[b]) }); !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("keys by value %v", got)
	}
	if got := sorted.ValuesFunc(m, cmp.Compare[int]); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("values %v", got)
	}
}

func TestEmptyMapsCostNothing(t *testing.T) {
	m := map[string]int{}
	if n := testing.AllocsPerRun(100, func() {
		sorted.Keys(m)
		sorted.ValuesFunc(m, cmp.Compare[int])
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
