package topology

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestFreeNamesAgainstTrying compares what names remember with trying every
// number, while names come and go.
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

// TestFreeNamesAreRemembered proves that the numbers of a name are not tried
// again and again.
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

// Names are given all at once: who wants the name of another that gets a new one has
// it, and only a name of a creature that keeps its own is numbered.
func TestSetNames(t *testing.T) {
	s := New()
	ids := &counted{}
	var ops []Op
	for _, name := range []string{"a", "b", "c", "d"} {
		ops = append(ops, AddCreature{ID: CreatureID(name), Name: name})
	}
	ops = append(ops, Connect{From: "a", To: "b"}, Connect{From: "b", To: "c"}, Connect{From: "c", To: "d"})
	if _, err := s.Apply(ids, ops...); err != nil {
		t.Fatal(err)
	}
	names := func() (out string) {
		for _, id := range []CreatureID{"a", "b", "c", "d"} {
			c, _ := s.Creature(id)
			out += c.Name + " "
		}
		return out
	}
	_, undo, err := s.Try(ids, SetNames{[]Naming{{"a", "b"}, {"b", "a"}, {"c", "d"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "b a d~2 d " {
		t.Errorf("names are %s", got)
	}
	undo()
	if got := names(); got != "a b c d " {
		t.Errorf("after undo they are %s", got)
	}
	for _, op := range []SetNames{{[]Naming{{"x", "y"}}}, {[]Naming{{"a", "z"}, {"b", ""}}}} {
		if _, err := s.Apply(ids, op); err == nil || names() != "a b c d " {
			t.Errorf("%v answers %v, and names are %s", op, err, names())
		}
	}
}
