package stage

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/tools"
)

// move changes the surroundings of the creature as a delivery says.
func (s *Creature) move(d *Delivery) {
	if d.Peers != nil {
		s.o.Peers = slices.Clone(d.Peers)
	}
	if d.Listen != nil {
		s.o.Listen = slices.Clone(d.Listen)
	}
	if d.Tools != nil {
		s.o.Tools = slices.Clone(d.Tools)
	}
}

// look renews the awareness document for the next turn. Its revision rises if it differs
// from the last one, or if the delivery is a notification that it does.
func (s *Creature) look(changed bool) {
	doc := s.surroundings()
	if digest := string(doc.Digest()); changed || digest != s.digest {
		s.revision++
		s.digest = digest
	}
	doc.Revision = s.revision
	s.r.Behold(doc)
}

// graphID is the id of the graph in the document.
const graphID = "graph"

// surroundings describes what an engine would show the creature in the same situation:
// only a privileged creature sees other members, and no other creature is on its channels.
func (s *Creature) surroundings() *outlook.Awareness {
	var channels []outlook.AwareChannel
	var declared []outlook.AwareDeclaration
	none := outlook.Truncate[outlook.AwarePeer](nil, 0)
	add := func(c outlook.AwareChannel, d outlook.AwareDeclaration) {
		c.Listeners, c.Senders = none, none
		d.ID, d.Name = c.ID, c.Name
		channels, declared = append(channels, c), append(declared, d)
	}
	for _, alias := range s.o.Listen {
		add(outlook.AwareChannel{ID: journal.ChannelID("listen " + alias), Name: alias, Listen: alias}, outlook.AwareDeclaration{Listeners: 1})
	}
	for _, edge := range s.sends {
		add(outlook.AwareChannel{ID: edge.Channel, Name: edge.Alias, Send: edge.Alias}, outlook.AwareDeclaration{Senders: 1})
	}
	id := journal.CreatureID(s.o.Name)
	doc := &outlook.Awareness{
		Self:     outlook.AwareSelf{ID: id, Name: s.o.Name, Privileged: s.o.Privileged, State: journal.Running},
		Channels: outlook.Truncate(channels, outlook.MaxChannels),
		Wires:    outlook.AwareWires{In: outlook.Truncate[outlook.AwareWire](nil, 0), Out: outlook.Truncate[outlook.AwareWire](nil, 0)},
		Tools:    s.toolNames(),
		Graph:    outlook.AwareGraph{ID: graphID},
	}
	if s.o.Privileged {
		members := []outlook.AwareMember{{ID: id, Name: s.o.Name, Privileged: true, State: journal.Running}}
		for _, name := range s.o.Peers {
			members = append(members, outlook.AwareMember{ID: journal.CreatureID(name), Name: name, State: journal.Running})
		}
		shown, all := outlook.Truncate(members, outlook.MaxMembers), outlook.Truncate(declared, outlook.MaxDeclarations)
		spawnable := outlook.Truncate[outlook.AwareSpecies](nil, 0)
		doc.Graph.Members, doc.Graph.Channels, doc.Graph.Spawnable = &shown, &all, &spawnable
	}
	return doc
}

// toolNames lists the tools in the document: what an engine shows, and then the others.
func (s *Creature) toolNames() []string {
	out := tools.For(s.o.Privileged)
	for _, name := range s.o.Tools {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
