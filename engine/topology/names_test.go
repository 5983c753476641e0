package topology

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestFreeNamesAgainstTrying compares the remembered numbers with trying every
// number, while names are added and removed.
func TestFreeNamesAgainstTrying(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	bases := []string{"a", "a~2", "b", "~3", "c~x"}
	var one, other names[*creature]
	for i := range 20_000 {
		x := []*names[*creature]{&one, &other}[random.IntN(2)]
		base := bases[random.IntN(len(bases))]
		if random.IntN(100) < 30+40*(i/2_000%2) {
			x.remove(numberedName(base, random.IntN(12)))
			x.remove(base)
			continue
		}
		got := freeIn(base, x)
		if want := free(base, func(name string) bool { return x.get(name) != nil }); got != want {
			t.Fatalf("step %d: %s is free for %s, want %s", i, got, base, want)
		}
		x.set(got, &creature{})
		both := func(name string) bool { return one.get(name) != nil || other.get(name) != nil }
		if got, want := freeIn(base, &one, &other), free(base, both); got != want {
			t.Fatalf("step %d: %s is free for %s in both, want %s", i, got, base, want)
		}
	}
}

// TestFreeNamesAreRemembered proves that taken numbers of a name are not tried
// again.
func TestFreeNamesAreRemembered(t *testing.T) {
	var x names[*creature]
	for i := range 5_000 {
		name := freeIn("worker", &x)
		if i > 0 && name != "worker~"+strconv.Itoa(i+1) {
			t.Fatalf("creature %d is called %s", i, name)
		}
		x.set(name, &creature{})
		if full := x.full.get("worker"); i > 1 && full < i {
			t.Fatalf("creature %d has to try from number %d", i, full)
		}
	}
}
