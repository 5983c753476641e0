package topology_test

import (
	"slices"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// naive derives graphs in the obvious way: it keeps the edges of each channel,
// and after every change recomputes all components with a breadth-first
// search. It is the reference of the benchmarks.
type naive struct {
	on      map[CreatureID][]ChannelID // once for each edge
	members map[ChannelID][]CreatureID
	graph   map[CreatureID]int // the number of each creature's component
}

func newNaive(snap Snapshot) *naive {
	n := &naive{on: map[CreatureID][]ChannelID{}, members: map[ChannelID][]CreatureID{}}
	for _, c := range snap.Creatures {
		n.on[c.ID] = nil
	}
	for _, e := range snap.Edges {
		n.add(e.Creature, e.Channel)
	}
	return n
}

func (n *naive) add(c CreatureID, ch ChannelID) {
	n.on[c] = append(n.on[c], ch)
	n.members[ch] = append(n.members[ch], c)
}

func (n *naive) drop(c CreatureID, ch ChannelID) {
	n.on[c] = without(n.on[c], ch)
	n.members[ch] = without(n.members[ch], c)
}

func without[T comparable](list []T, item T) []T {
	i := slices.Index(list, item)
	return slices.Delete(list, i, i+1)
}

// follow applies the changes of deltas.
func (n *naive) follow(deltas []Delta) {
	for _, d := range deltas {
		for _, c := range d.Changes {
			n.step(c, c.Kind)
		}
	}
}

// unfollow undoes them.
func (n *naive) unfollow(deltas []Delta) {
	opposite := map[ChangeKind]ChangeKind{
		CreatureAdded: CreatureRemoved, CreatureRemoved: CreatureAdded,
		EdgeAdded: EdgeRemoved, EdgeRemoved: EdgeAdded,
	}
	for _, d := range slices.Backward(deltas) {
		for _, c := range slices.Backward(d.Changes) {
			n.step(c, opposite[c.Kind])
		}
	}
}

func (n *naive) step(c Change, kind ChangeKind) {
	switch kind {
	case CreatureAdded:
		n.on[c.Creature] = nil
	case CreatureRemoved:
		delete(n.on, c.Creature)
	case EdgeAdded:
		n.add(c.Creature, c.Channel)
	case EdgeRemoved:
		n.drop(c.Creature, c.Channel)
	}
}

// components renumbers the components and returns how many there are.
func (n *naive) components() int {
	n.graph = make(map[CreatureID]int, len(n.on))
	found := 0
	queue := make([]CreatureID, 0, len(n.on))
	for first := range n.on {
		if n.graph[first] > 0 {
			continue
		}
		found++
		n.graph[first] = found
		for queue = append(queue[:0], first); len(queue) > 0; queue = queue[1:] {
			for _, ch := range n.on[queue[0]] {
				for _, next := range n.members[ch] {
					if n.graph[next] == 0 {
						n.graph[next] = found
						queue = append(queue, next)
					}
				}
			}
		}
	}
	return found
}

// recompute counts the components of a snapshot.
func recompute(snap Snapshot) int { return newNaive(snap).components() }
