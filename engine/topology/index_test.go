package topology

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestIndexAgainstMap grows and shrinks an index and a map in step.
func TestIndexAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var x index[string, int]
	want := map[string]int{}
	for i := range 40_000 {
		key := strconv.Itoa(random.IntN(2_000))
		if random.IntN(100) < 20+60*(i/10_000%2) {
			x.set(key, i)
			want[key] = i
		} else {
			x.remove(key)
			delete(want, key)
		}
		if got := x.get(key); got != want[key] || x.count != len(want) {
			t.Fatalf("step %d: %s is %d of %d, want %d of %d", i, key, got, x.count, want[key], len(want))
		}
		if i%500 == 0 {
			checkIndex(t, &x, want)
		}
	}
	checkIndex(t, &x, want)
}

func checkIndex(t *testing.T, x *index[string, int], want map[string]int) {
	t.Helper()
	for key, value := range want {
		if got := x.get(key); got != value {
			t.Fatalf("%s is %d, want %d", key, got, value)
		}
	}
	got, all := slices.Sorted(x.values()), slices.Sorted(maps.Values(want))
	if !slices.Equal(got, all) {
		t.Fatalf("values are %v, want %v", got, all)
	}
	if most := 1 + len(want)/emptyBucket; x.buckets.size > most {
		t.Fatalf("%d entries keep %d buckets, want at most %d", len(want), x.buckets.size, most)
	}
}

// TestIndexMovesLittle proves the purpose of an index: no insertion moves more
// than the entries of a bucket.
func TestIndexMovesLittle(t *testing.T) {
	var x index[string, int]
	for i := range 20_000 {
		before := x.buckets.size
		x.set(strconv.Itoa(i), i)
		if x.buckets.size > max(before, 1)+1 {
			t.Fatalf("insertion %d made %d buckets of %d", i, x.buckets.size, before)
		}
	}
	largest := slices.MaxFunc(slices.Collect(x.buckets.all()), func(a, b bucket[string, int]) int { return len(a.entries) - len(b.entries) })
	if len(largest.entries) > 10*fullBucket {
		t.Errorf("one bucket has %d entries where the average is below %d", len(largest.entries), fullBucket)
	}
}

func TestEmptyIndex(t *testing.T) {
	var x index[string, int]
	x.remove("a")
	if x.get("a") != 0 || x.count != 0 || len(slices.Collect(x.values())) != 0 {
		t.Errorf("an index without entries has %+v", x)
	}
	(*index[string, int])(nil).remove("a")
}
