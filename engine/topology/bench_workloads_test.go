package topology_test

import (
	"fmt"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// workload is one kind of operation on one shape. internal/bench has targets
// for these names.
type workload struct {
	name     string
	shape    *shape
	kind     DeltaKind
	affected int  // how many creatures change their graph; 0 means any number
	grows    bool // changes are kept, so that the state grows during the measurement
	undone   bool // the undo is measured too
	searched bool // also compared with a search from both ends
	// ops returns the operations of the i-th round.
	ops func(s *bench, i int) []Op
}

var workloads = []workload{
	{name: "add creature", shape: mesh, grows: true, ops: func(_ *bench, i int) []Op {
		return one(AddCreature{ID: newcomer(i), Name: string(newcomer(i))})
	}},
	{name: "join", shape: mesh, grows: true, ops: func(s *bench, i int) []Op { return one(joining(s, i)) }},
	{name: "add creature on two channels", shape: mesh, grows: true, ops: func(s *bench, i int) []Op {
		return one(AddCreature{ID: newcomer(i), Name: string(newcomer(i)), Edges: []Wire{
			{Channel: s.chordChannel(i * 31 % (s.n / 2)), Direction: Listen},
			{Channel: s.chordChannel((i*17 + 1) % (s.n / 2)), Direction: Send},
		}})
	}},
	{name: "add channel", shape: mesh, grows: true, ops: func(s *bench, i int) []Op {
		id := fmt.Sprint("channel", i)
		return one(AddChannel{ID: ChannelID(id), With: member(i * 31 % s.n), Name: id})
	}},
	{name: "connect within", shape: mesh, grows: true, ops: func(s *bench, i int) []Op {
		return one(Connect{From: member(i * 31 % s.n), To: member((i*17 + s.n/3) % s.n)})
	}},
	{name: "connect across, 5 merge", shape: mesh, kind: Merge, affected: handful, ops: func(s *bench, i int) []Op {
		return one(Connect{From: member(i * 31 % s.n), To: "island"})
	}},
	{name: "connect across, halves merge", shape: halves, kind: Merge, ops: func(s *bench, i int) []Op {
		return one(Connect{From: member(i % (s.n / 2)), To: member(s.n - 1)})
	}},
	{name: "set listen on", shape: mesh, ops: func(s *bench, i int) []Op { return one(s.fresh(i, Listen)) }},
	{name: "set send on", shape: mesh, ops: func(s *bench, i int) []Op { return one(s.fresh(i, Send)) }},
	{name: "set listen off", shape: mesh, ops: func(s *bench, i int) []Op {
		_, to := chordEnds(s.n, i%(s.n/2))
		return one(SetEdge{Creature: to, Channel: s.chordChannel(i % (s.n / 2)), Direction: Listen})
	}},
	{name: "set send off", shape: mesh, ops: func(s *bench, i int) []Op {
		from, _ := chordEnds(s.n, i%(s.n/2))
		return one(SetEdge{Creature: from, Channel: s.chordChannel(i % (s.n / 2)), Direction: Send})
	}},
	{name: "disconnect, spare link", shape: mesh, ops: func(s *bench, i int) []Op {
		from, to := chordEnds(s.n, i%(s.n/2))
		return one(Disconnect{From: from, To: to, Channel: s.chordChannel(i % (s.n / 2))})
	}},
	{name: "disconnect, link of the tree", searched: true, shape: mesh, ops: neighbours},
	{name: "disconnect, ring", searched: true, shape: sparse, ops: neighbours},
	{name: "disconnect, two-way ring", searched: true, shape: twoWay, ops: neighbours},
	{name: "disconnect, 5 split off", searched: true, shape: mesh, kind: Split, affected: handful, ops: func(*bench, int) []Op {
		return one(Disconnect{From: member(0), To: "tail0"})
	}},
	{name: "disconnect, splits in halves", searched: true, shape: chain, kind: Split, ops: func(s *bench, _ int) []Op {
		return one(Disconnect{From: member(s.n/2 - 1), To: member(s.n / 2)})
	}},
	{name: "remove channel", shape: mesh, ops: func(s *bench, i int) []Op {
		return one(RemoveChannel{ID: s.chordChannel(i % (s.n / 2))})
	}},
	{name: "remove creature, leaf", shape: mesh, ops: func(*bench, int) []Op { return one(RemoveCreature{ID: "tail4"}) }},
	{name: "remove creature, inner", shape: mesh, ops: func(s *bench, i int) []Op {
		return one(RemoveCreature{ID: member(1 + i*7919%(s.n-1))})
	}},
	{name: "remove creature, bridge to 4", shape: mesh, kind: Split, affected: handful - 1, ops: func(*bench, int) []Op {
		return one(RemoveCreature{ID: "tail0"})
	}},
	{name: "remove creature, hub of 100", shape: mesh, ops: func(*bench, int) []Op { return one(RemoveCreature{ID: "hub0"}) }},
	{name: "stop creature", shape: mesh, ops: func(s *bench, i int) []Op {
		return one(SetStopped{ID: member(i * 31 % s.n), Stopped: true})
	}},
	{name: "batch of 4, taken back", shape: mesh, undone: true, ops: func(s *bench, i int) []Op {
		join := joining(s, i)
		return []Op{join, Connect{From: join.ID, To: member(i * 17 % s.n)}, s.fresh(i, Send), RemoveCreature{ID: join.ID}}
	}},
}

func one(op Op) []Op { return []Op{op} }

func newcomer(i int) CreatureID { return CreatureID(fmt.Sprint("new", i)) }

func joining(s *bench, i int) AddCreature {
	parent := member(i * 31 % s.n)
	return AddCreature{ID: newcomer(i), Name: string(newcomer(i)), Join: s.GraphOf(parent), Parent: parent}
}

// fresh turns on a new edge.
func (b *bench) fresh(i int, d Direction) Op {
	ch := b.chordChannel(i % (b.n / 2))
	who := i * 31 % b.n
	for b.EdgeOrder(member(who), ch, d) > 0 {
		who = (who + 1) % b.n
	}
	return SetEdge{Creature: member(who), Channel: ch, Direction: d, On: true}
}

// neighbours disconnects two neighbours of the ring by removing a tree link: a
// link that was removed and added back is a spare one from then on.
func neighbours(s *bench, _ int) []Op {
	if len(s.ties) == 0 {
		s.ties = s.treeLinks()
	}
	last := len(s.ties) - 1
	op := s.ties[last]
	s.ties = s.ties[:last]
	return one(op)
}

// treeLinks returns, in no order, operations that remove tree links between
// neighbours of the ring. It returns all of them at once, because searching
// for one before each operation would load the needed data into the caches.
func (b *bench) treeLinks() []Disconnect {
	var ops []Disconnect
	for i := range b.n {
		at := i * 7919 % b.n
		next := (at + 1) % b.n
		for _, d := range []Disconnect{{From: member(at), To: member(next)}, {From: member(next), To: member(at)}} {
			if b.TiedBy(d.From, d.To) {
				ops = append(ops, d)
			}
		}
	}
	return ops
}
