package topology_test

import (
	"testing"

	. "github.com/seed47132306/terrarium/engine/topology"
)

func TestEdgesThatAreBroughtBackKeepTheirOrder(t *testing.T) {
	s := newScenario(t)
	s.alone("a", "b", "c")
	s.do(AddChannel{ID: "k", Graph: s.GraphOf("a"), Name: "k"})
	for i, c := range []CreatureID{"a", "b", "c"} {
		s.do(SetEdge{Creature: c, Channel: "k", Direction: Listen, On: true})
		s.SetEdgeOrder(c, "k", Listen, uint64(30-i))
	}
	s.SetEdgeOrder("a", "k", Send, 1) // which does not exist
	s.SetEdgeOrder("b", "k", Listen, 0)
	s.do(SetEdge{Creature: "b", Channel: "k", Direction: Send, On: true})
	k, _ := s.Channel("k")
	check(t, "edges of k", k.Edges, []Edge{
		{"c", "k", Listen, "k"}, {"b", "k", Listen, "k"}, {"a", "k", Listen, "k"}, {"b", "k", Send, "k"},
	})
	check(t, "place of a", s.EdgeOrder("a", "k", Listen), uint64(30))
	check(t, "place of a new edge", s.EdgeOrder("b", "k", Send), uint64(33))
	check(t, "place of no edge", s.EdgeOrder("c", "k", Send), uint64(0))
}

func TestWhatIsAddedIsYoungerThanWhatIsToBeBroughtBack(t *testing.T) {
	s := newScenario(t)
	s.StartAbove(10, 20, 30, 40)
	s.StartAbove(1, 1, 1, 1)
	s.chain("a", "b")
	a, _ := s.Creature("a")
	ab, _ := s.Channel("ab")
	g, _ := s.Graph(a.Graph)
	check(t, "born", []uint64{a.Born, ab.Born, g.Born, s.EdgeOrder("a", "ab", Send)}, []uint64{11, 21, 31, 41})
}
