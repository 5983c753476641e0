package topology_test

import (
	"reflect"
	"testing"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// TestEveryRemovalFromEveryShape removes each edge, channel and creature
// separately and compares the remaining graphs with a full search.
func TestEveryRemovalFromEveryShape(t *testing.T) {
	for _, shape := range shapes {
		s := shape.make(t, 30)
		before := s.Snapshot()
		var removals []Op
		for _, e := range before.Edges {
			removals = append(removals, SetEdge{Creature: e.Creature, Channel: e.Channel, Direction: e.Direction})
		}
		for _, ch := range before.Channels {
			removals = append(removals, RemoveChannel{ch.ID})
		}
		for _, c := range before.Creatures {
			removals = append(removals, RemoveCreature{ID: c.ID})
		}
		for _, op := range removals {
			_, undo := s.try(t, op)
			s.mustBeDerived(t)
			undo()
		}
		s.mustBeDerived(t)
		check(t, "after all", reflect.DeepEqual(s.Snapshot(), before), true)
	}
}

// mustBeDerived checks that the graphs are the components, and the internals.
func (b *bench) mustBeDerived(t *testing.T) {
	t.Helper()
	if err := b.CheckInternals(); err != nil {
		t.Fatal(err)
	}
	snap := b.Snapshot()
	if want := recompute(snap); len(snap.Graphs) != want {
		t.Fatalf("%d graphs, search finds %d", len(snap.Graphs), want)
	}
	if _, err := Restore(snap); err != nil { // Restore refuses a graph in pieces
		t.Fatal(err)
	}
}

// TestWorkloadsDoWhatTheySay proves that the benchmarks measure what their
// names say, at a small size.
func TestWorkloadsDoWhatTheySay(t *testing.T) {
	for _, w := range workloads {
		s := w.shape.make(t, 60)
		before := s.Snapshot()
		for i := range 10 {
			deltas, undo := s.try(t, w.ops(s, i)...)
			w.check(t, deltas)
			if len(deltas[0].Changes) == 0 {
				t.Errorf("%s: round %d changes nothing", w.name, i)
			}
			s.mustBeDerived(t)
			undo()
		}
		check(t, w.name+", taken back", reflect.DeepEqual(s.Snapshot(), before), true)
	}
}

func TestSelfConnection(t *testing.T) {
	s := newScenario(t)
	s.chain("a", "b", "c")
	s.do(AddChannel{ID: "k", Graph: s.GraphOf("a"), Name: "k"})
	d := s.do(Connect{From: "a", To: "a", Channel: "k"})
	check(t, "kind", d.Kind, None)
	check(t, "edges", s.edges("k"), "a>k a<k")
	check(t, "leads back", s.Connected("a", "a"), []ChannelID{"k"})
	check(t, "does nothing twice", len(s.do(Connect{From: "a", To: "a"}).Changes), 0)

	s.do(Connect{From: "b", To: "a", Channel: "k"})
	s.do(Connect{From: "b", To: "c", Channel: "k"})
	d = s.do(Disconnect{From: "a", To: "a"})
	detour := d.Channels[1]
	check(t, "hears the others still", s.edges("k"), "a<k b>k c<k")
	check(t, "is heard by the others still", s.edges(detour), "a>k c<k")
	check(t, "leads back no more", len(s.Connected("a", "a")), 0)
}

func TestSelfConnectionOfALoner(t *testing.T) {
	s := newScenario(t)
	s.alone("a")
	d := s.do(Connect{From: "a", To: "a"})
	check(t, "edges", s.edges(d.Channel), "a>a-to-a a<a-to-a")
	g := s.GraphOf("a")
	cut := s.do(Disconnect{From: "a", To: "a"})
	check(t, "kind", cut.Kind, None)
	check(t, "edges", s.edges(d.Channel), "a>a-to-a")
	check(t, "graph", s.GraphOf("a"), g)
}
