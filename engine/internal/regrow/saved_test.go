package regrow_test

import (
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/regrow"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestSavedGraphsAreFound looks for graphs by their members.
func TestSavedGraphsAreFound(t *testing.T) {
	s := regrow.Saved{}
	for _, g := range []*journal.SavedGraph{
		{Graph: "g3", Born: 2, Creatures: []journal.CreatureRow{{ID: "c3", Deployment: "d"}}},
		{Graph: "g2", Born: 1, Channels: []journal.ChannelRow{{ID: "k", Deployment: "d"}}},
		{Graph: "g1", Born: 2, Creatures: []journal.CreatureRow{{ID: "c1", Deployment: "e"}, {ID: "c2"}}},
	} {
		s[g.Graph] = g
	}
	ids := func(list []*journal.SavedGraph) (out []journal.GraphID) {
		for _, g := range regrow.Rows(list) {
			out = append(out, g.Graph)
		}
		return out
	}
	if got, want := ids(s.Sorted()), []journal.GraphID{"g2", "g1", "g3"}; !slices.Equal(got, want) {
		t.Errorf("the sorted graphs are %v, want %v", got, want)
	}
	for deployment, want := range map[string][]journal.GraphID{"d": {"g2", "g3"}, "e": {"g1"}, "f": nil} {
		if got := ids(s.With(deployment)); !slices.Equal(got, want) {
			t.Errorf("the graphs with members of %s are %v, want %v", deployment, got, want)
		}
	}
	if !s.Has("c2") || s.Has("k") || s.Has("c4") {
		t.Error("Has does not find exactly the creatures of the graphs")
	}
}

// TestLaterAdditionsAreYounger adds a creature after a saved graph was read.
func TestLaterAdditionsAreYounger(t *testing.T) {
	topo := topology.New()
	regrow.StartAbove(topo, &journal.SavedGraph{
		Born: 70, Creatures: []journal.CreatureRow{{Born: 5}, {Born: 40}, {Born: 6}}, Channels: []journal.ChannelRow{{Born: 80}}, Edges: []journal.EdgeRow{{Order: 90}},
	})
	edit := []topology.Op{
		topology.AddCreature{ID: "c", Name: "c"},
		topology.AddChannel{ID: "k", With: "c", Name: "k"},
		topology.SetEdge{Creature: "c", Channel: "k", Direction: journal.Listen, On: true, Alias: "k"},
	}
	if _, err := topo.Apply(newIDs{}, edit...); err != nil {
		t.Fatal(err)
	}
	c, _ := topo.Creature("c")
	k, _ := topo.Channel("k")
	g, _ := topo.Graph(topo.GraphOf("c"))
	if c.Born <= 40 || k.Born <= 80 || g.Born <= 70 || topo.EdgeOrder("c", "k", journal.Listen) <= 90 {
		t.Errorf("the creature has the place %d, the channel %d, the graph %d and the edge %d", c.Born, k.Born, g.Born, topo.EdgeOrder("c", "k", journal.Listen))
	}
}

// newIDs provides the ids of what a change adds.
type newIDs struct{}

func (newIDs) NewGraph() topology.GraphID     { return "g" }
func (newIDs) NewChannel() topology.ChannelID { return "k" }
