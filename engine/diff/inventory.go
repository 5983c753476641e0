package diff

import (
	"cmp"

	"github.com/seed47132306/terrarium/engine/journal"
)

// inventory holds the content of graphs, by id.
type inventory struct {
	creatures map[journal.CreatureID]*journal.CreatureRow
	channels  map[journal.ChannelID]*journal.ChannelRow // without inboxes
	homes     map[journal.CreatureID]journal.GraphID
	edges     map[journal.CreatureID]map[journal.EdgeRow]string // aliases, by edges without one
	wires     map[journal.CreatureID]map[journal.WireID]journal.OutputWire
	heads     map[journal.ChannelID]uint64
	waiting   map[journal.CreatureID]Waiting
	stopped   map[journal.GraphID]map[string]journal.RecipeStop // by deployment
}

func takeInventory(graphs []journal.SavedGraph) *inventory {
	v := &inventory{
		creatures: map[journal.CreatureID]*journal.CreatureRow{}, channels: map[journal.ChannelID]*journal.ChannelRow{}, homes: map[journal.CreatureID]journal.GraphID{},
		edges: map[journal.CreatureID]map[journal.EdgeRow]string{}, wires: map[journal.CreatureID]map[journal.WireID]journal.OutputWire{}, heads: map[journal.ChannelID]uint64{}, waiting: map[journal.CreatureID]Waiting{},
		stopped: map[journal.GraphID]map[string]journal.RecipeStop{},
	}
	for i := range graphs {
		v.add(&graphs[i])
	}
	return v
}

func (v *inventory) add(g *journal.SavedGraph) {
	for i := range g.Creatures {
		row := &g.Creatures[i]
		v.creatures[row.ID], v.homes[row.ID] = row, g.Graph
		v.edges[row.ID], v.wires[row.ID] = map[journal.EdgeRow]string{}, map[journal.WireID]journal.OutputWire{}
	}
	for i := range g.Channels {
		if row := &g.Channels[i]; row.Inbox == "" {
			v.channels[row.ID] = row
		}
	}
	for _, h := range g.Heads {
		v.heads[h.Channel] = h.Seq
	}
	for _, e := range g.Edges {
		if v.edges[e.Creature] != nil && v.channels[e.Channel] != nil {
			v.edges[e.Creature][journal.EdgeRow{Creature: e.Creature, Channel: e.Channel, Direction: e.Direction}] = e.Alias
		}
	}
	for _, w := range g.Wires {
		if v.wires[w.From] != nil {
			v.wires[w.From][w.ID] = w
		}
	}
	if s := g.Stopped(); len(s) > 0 {
		v.stopped[g.Graph] = s
	}
	v.addWaiting(g)
}

func (v *inventory) addWaiting(g *journal.SavedGraph) {
	note := func(id journal.CreatureID, f func(*Waiting)) {
		if v.creatures[id] != nil {
			w := v.waiting[id]
			f(&w)
			v.waiting[id] = w
		}
	}
	for _, c := range g.Cursors {
		if end := cmp.Or(c.Until, v.heads[c.Channel]); end > c.Seq {
			note(journal.CreatureID(c.Reader), func(w *Waiting) { w.Deliveries += end - c.Seq })
		}
	}
	for _, t := range g.Timers {
		note(t.Creature, func(w *Waiting) { w.Timers++ })
	}
	for _, r := range g.Requests {
		note(r.Creature, func(w *Waiting) { w.Requests++ })
	}
}
