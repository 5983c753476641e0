package engine

import "github.com/seed47132306/terrarium/engine/journal"

// NewGraph implements [draft.IDs], as the methods below do: they look whether an id is
// in use.
func (e locked) NewGraph() journal.GraphID {
	for {
		id := journal.GraphID(e.ids.ID("g"))
		_, ended := e.topo.Current(id)
		if e.graphs[id] == nil && e.saved[id] == nil && !ended {
			return id
		}
	}
}

// NewChannel implements topology.IDs.
func (e locked) NewChannel() journal.ChannelID {
	for {
		if id := journal.ChannelID(e.ids.ID("h")); e.channels[id] == nil {
			return id
		}
	}
}

// NewCreature returns a fresh creature id.
func (e locked) NewCreature() journal.CreatureID {
	for {
		if id := journal.CreatureID(e.ids.ID("c")); e.creatures[id] == nil {
			return id
		}
	}
}

// NewWire returns a fresh id of an output wire.
func (e locked) NewWire() journal.WireID {
	for {
		if id := journal.WireID(e.ids.ID("w")); e.wires[id] == nil {
			return id
		}
	}
}
