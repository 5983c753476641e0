package topology

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
)

// TestIndexPartsAgainstMap moves random shares of the entries of an index to another one.
func TestIndexPartsAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		var from, into index[string, int]
		stay, leave := map[string]int{}, map[string]int{}
		for i := range random.IntN(600) {
			key := strconv.Itoa(i)
			from.set(key, i)
			stay[key] = i
		}
		for i := range random.IntN(20) * random.IntN(2) {
			into.set(fmt.Sprint("other ", i), -i)
			leave[fmt.Sprint("other ", i)] = -i
		}
		share := random.IntN(101)
		for key := range maps.Clone(stay) {
			if random.IntN(100) < share {
				leave[key] = stay[key]
				delete(stay, key)
			}
		}
		from.part(&into, func(i int) bool { _, leaves := leave[strconv.Itoa(i)]; return leaves })
		if from.count != len(stay) || into.count != len(leave) {
			t.Fatalf("%d entries stay and %d leave, want %d and %d", from.count, into.count, len(stay), len(leave))
		}
		checkIndex(t, &from, stay)
		for key, value := range leave {
			if got := into.get(key); got != value {
				t.Fatalf("%s is %d, want %d", key, got, value)
			}
		}
	}
}

// TestManyMove merges chains whose members have the same names, and parts them again, with and
// without undoing it.
func TestManyMove(t *testing.T) {
	s := New()
	ids := &freshIDs{}
	apply := func(ops ...Op) {
		t.Helper()
		if _, err := s.Apply(ids, ops...); err != nil {
			t.Fatal(err)
		}
	}
	const chains, length = 4, 60
	id := func(chain, i int) CreatureID { return CreatureID(fmt.Sprint("c", chain, ".", i)) }
	for chain := range chains {
		for i := range length {
			apply(AddCreature{ID: id(chain, i), Name: fmt.Sprint("name", i%(length/2), "-", i/(length/2)), Privileged: i%3 == 0, Root: i%7 == 0})
			if i > 0 {
				apply(Connect{From: id(chain, i-1), To: id(chain, i), Name: fmt.Sprint("link", i)})
			}
		}
	}
	for chain := range chains - 2 {
		apply(Connect{From: id(chain, length-1), To: id(chain+1, 0), Name: fmt.Sprint("joint", chain), OnCollision: Rename})
	}
	const last = chains - 1
	join := Connect{From: id(last-1, length-1), To: id(last, 0), Name: "joint", OnCollision: Rename}
	apart := s.Snapshot()
	_, undo, err := s.Try(ids, join)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckInternals(); err != nil {
		t.Fatal(err)
	}
	undo()
	if err := s.CheckInternals(); err != nil {
		t.Fatal(err)
	}
	if now := s.Snapshot(); !reflect.DeepEqual(now, apart) {
		t.Errorf("after undoing a merge the state is\n%+v\nwant\n%+v", now, apart)
	}
	apply(join)
	whole := s.Snapshot()
	for at := range length - 1 {
		cut := Disconnect{From: id(last, at), To: id(last, at+1)}
		deltas, undo, err := s.Try(ids, cut)
		if err != nil {
			t.Fatal(err)
		}
		if want := length - 1 - at; deltas[0].Kind != Split || len(deltas[0].Affected) != want {
			t.Fatalf("cutting off %d is a %s of %d", want, deltas[0].Kind, len(deltas[0].Affected))
		}
		if err := s.CheckInternals(); err != nil {
			t.Fatalf("after cutting off %d: %v", length-1-at, err)
		}
		undo()
		if err := s.CheckInternals(); err != nil {
			t.Fatalf("after undoing it: %v", err)
		}
		if now := s.Snapshot(); !reflect.DeepEqual(now, whole) {
			t.Fatalf("after undoing it the state is\n%+v\nwant\n%+v", now, whole)
		}
	}
	// Names that have become free are given again, in all pieces.
	for chain := range last {
		apply(Disconnect{From: id(chain, length-1), To: id(chain+1, 0)})
	}
	for chain := range chains {
		apply(SetNames{Names: []Naming{{ID: id(chain, 3), Name: fmt.Sprint("name", 3, "-0")}}})
		if c, _ := s.Creature(id(chain, 3)); c.Name != "name3-0" {
			t.Errorf("%s is called %s, although its name is free", id(chain, 3), c.Name)
		}
	}
	if err := s.CheckInternals(); err != nil {
		t.Fatal(err)
	}
}

// freshIDs counts ids up.
type freshIDs struct{ n int }

func (f *freshIDs) NewGraph() GraphID {
	f.n++
	return GraphID(fmt.Sprint("g", f.n))
}

func (f *freshIDs) NewChannel() ChannelID {
	f.n++
	return ChannelID(fmt.Sprint("made", f.n))
}
