package regrow

import (
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestEveryCreatureJoinsThoseThatAreThere has rows in an order in which a creature precedes its
// neighbours. Every creature nevertheless joins existing ones.
func TestEveryCreatureJoinsThoseThatAreThere(t *testing.T) {
	edge := func(c, ch string, order uint64) journal.EdgeRow {
		return journal.EdgeRow{Creature: journal.CreatureID(c), Channel: journal.ChannelID(ch), Direction: journal.Listen, Order: order}
	}
	saved := &journal.SavedGraph{
		Born:      7,
		Creatures: []journal.CreatureRow{{ID: "a"}, {ID: "d", Parent: "gone"}, {ID: "c", Parent: "a"}, {ID: "b"}},
		Channels:  []journal.ChannelRow{{ID: "2", Born: 2}, {ID: "1", Born: 1}, {ID: "3", Born: 3}, {ID: "in", Inbox: "a"}},
		Edges:     []journal.EdgeRow{edge("d", "3", 6), edge("c", "3", 5), edge("c", "2", 4), edge("b", "2", 3), edge("b", "1", 2), edge("a", "1", 1), edge("a", "lost", 7)},
	}
	known := func(c journal.CreatureID) journal.CreatureID {
		if c == "gone" {
			return ""
		}
		return c
	}
	var order, channels string
	reached := map[journal.ChannelID]bool{}
	for i, op := range Operations(saved, known, func(c journal.CreatureID) bool { return c == "b" }) {
		switch op := op.(type) {
		case topology.AddCreature:
			order += string(op.ID)
			joins := i == 0
			for _, e := range op.Edges {
				joins = joins || reached[e.Channel]
			}
			for _, e := range op.Edges {
				reached[e.Channel] = true
			}
			if !joins || op.Stopped != (op.ID == "b") || op.Parent == "gone" || op.GraphBorn != 7 {
				t.Errorf("the operation %+v does not join an existing creature, or differs from its row", op)
			}
		case topology.AddChannel:
			channels += string(op.ID)
		case topology.SetEdge:
			if op.Channel == "lost" {
				t.Error("an edge leads to a channel that does not exist")
			}
			reached[op.Channel] = true
		}
	}
	if order != "abcd" || channels != "123" {
		t.Errorf("the creatures come as %s and the channels as %s", order, channels)
	}
	if saved.Edges[0].Creature != "d" {
		t.Error("the saved graph was changed")
	}
}
