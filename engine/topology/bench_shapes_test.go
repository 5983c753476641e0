package topology_test

import (
	"fmt"
	"testing"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// handful is the size of the small parts of every shape.
const handful = 5

// hubEdges is how many edges the hub of a mesh has.
const hubEdges = 100

// shape makes states of about n creatures.
type shape struct {
	make func(tb testing.TB, n int) *bench
}

var (
	sparse = &shape{ring}
	twoWay = &shape{twoWayRing}
	chain  = &shape{chainOf}
	halves = &shape{chainsApart}
	mesh   = &shape{meshOf}
	shapes = []*shape{mesh, sparse, twoWay, chain, halves}
)

func member(i int) CreatureID { return CreatureID(fmt.Sprintf("c%d", i)) }

// chainOf makes a chain of n creatures, each of which sends to the next.
func chainOf(tb testing.TB, n int) *bench {
	b := &bench{State: New(), n: n}
	b.must(tb, AddCreature{ID: member(0), Name: "n0", Root: true})
	b.hang(tb, "c", 1, n, member(0))
	return b
}

// hang adds a chain of creatures after parent, named by prefix and number.
func (b *bench) hang(tb testing.TB, prefix string, from, to int, parent CreatureID) {
	g := b.GraphOf(parent)
	for i := from; i < to; i++ {
		id := CreatureID(fmt.Sprint(prefix, i))
		b.must(tb, AddCreature{ID: id, Name: fmt.Sprint("n", id), Join: g, Parent: parent})
		parent = id
	}
}

// ring closes a chain.
func ring(tb testing.TB, n int) *bench {
	b := chainOf(tb, n)
	b.must(tb, Connect{From: member(n - 1), To: member(0), Name: "closing"})
	return b
}

// twoWayRing is a ring in which each creature also sends back: every second
// link is a spare one, and there is no short way round.
func twoWayRing(tb testing.TB, n int) *bench {
	b := ring(tb, n)
	for i := range n {
		b.must(tb, Connect{From: member((i + 1) % n), To: member(i), Name: fmt.Sprint("back", i)})
	}
	return b
}

// chainsApart makes two chains of n/2 creatures.
func chainsApart(tb testing.TB, n int) *bench {
	b := chainOf(tb, n)
	b.must(tb, Disconnect{From: member(n/2 - 1), To: member(n / 2)})
	return b
}

// meshOf makes a ring with n/2 chords, which has three edges for every
// creature; a short tail; a hub; and an unconnected island.
func meshOf(tb testing.TB, n int) *bench {
	b := ring(tb, n)
	for i := range n / 2 {
		from, to := chordEnds(n, i)
		b.must(tb, Connect{From: from, To: to, Name: chord(i)})
	}
	b.hang(tb, "tail", 0, handful, member(0))
	b.hang(tb, "hub", 0, 1, member(0))
	for i := range hubEdges {
		b.must(tb, Connect{From: "hub0", To: member(i * n / hubEdges), Name: fmt.Sprint("spoke", i)})
	}
	b.must(tb, AddCreature{ID: "island", Name: "island"})
	b.hang(tb, "island", 1, handful, "island")
	return b
}

func chord(i int) string { return fmt.Sprint("chord", i) }

func chordEnds(n, i int) (from, to CreatureID) {
	return member(i * 7919 % n), member((i*104729 + n/2) % n)
}

// chordChannel returns one of the chords of a mesh.
func (b *bench) chordChannel(i int) ChannelID {
	ch, _ := b.FindChannel(b.GraphOf(member(0)), chord(i))
	return ch
}
