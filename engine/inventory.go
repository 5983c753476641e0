package engine

import "cmp"

// inventory is what graphs have, by id.
type inventory struct {
	creatures map[CreatureID]*CreatureRow
	channels  map[ChannelID]*ChannelRow // without inboxes
	homes     map[CreatureID]GraphID
	edges     map[CreatureID]map[edgeKey]string // aliases
	wires     map[CreatureID]map[WireID]OutputWire
	heads     map[ChannelID]uint64
	waiting   map[CreatureID]Waiting
}

func takeInventory(graphs []SavedGraph) *inventory {
	v := &inventory{
		creatures: map[CreatureID]*CreatureRow{}, channels: map[ChannelID]*ChannelRow{}, homes: map[CreatureID]GraphID{},
		edges: map[CreatureID]map[edgeKey]string{}, wires: map[CreatureID]map[WireID]OutputWire{}, heads: map[ChannelID]uint64{}, waiting: map[CreatureID]Waiting{},
	}
	for i := range graphs {
		v.add(&graphs[i])
	}
	return v
}

func (v *inventory) add(g *SavedGraph) {
	for i := range g.Creatures {
		row := &g.Creatures[i]
		v.creatures[row.ID], v.homes[row.ID] = row, g.Graph
		v.edges[row.ID], v.wires[row.ID] = map[edgeKey]string{}, map[WireID]OutputWire{}
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
			v.edges[e.Creature][edgeKey{e.Creature, e.Channel, e.Direction}] = e.Alias
		}
	}
	for _, w := range g.Wires {
		if v.wires[w.From] != nil {
			v.wires[w.From][w.ID] = w
		}
	}
	v.addWaiting(g)
}

func (v *inventory) addWaiting(g *SavedGraph) {
	note := func(id CreatureID, f func(*Waiting)) {
		if v.creatures[id] != nil {
			w := v.waiting[id]
			f(&w)
			v.waiting[id] = w
		}
	}
	for _, c := range g.Cursors {
		if end := cmp.Or(c.Until, v.heads[c.Channel]); end > c.Seq {
			note(CreatureID(c.Reader), func(w *Waiting) { w.Deliveries += end - c.Seq })
		}
	}
	for _, t := range g.Timers {
		note(t.Creature, func(w *Waiting) { w.Timers++ })
	}
	for _, r := range g.Requests {
		note(r.Creature, func(w *Waiting) { w.Requests++ })
	}
}
