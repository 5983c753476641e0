package engine

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/topology"
)

// GroupStatus is what the tool group_status answers: the caller's graph as its turn
// sees it.
type GroupStatus struct {
	Graph     GraphID        `json:"graph"`
	Self      CreatureID     `json:"self"`
	Creatures []GroupMember  `json:"creatures"`
	Channels  []GroupChannel `json:"channels"`
	Wires     []OutputWire   `json:"wires"`
	Spawnable []GroupSpecies `json:"spawnable"`
}

// GroupMember is a creature in a [GroupStatus].
type GroupMember struct {
	ID         CreatureID  `json:"id"`
	Name       string      `json:"name"`
	State      string      `json:"state" jsonschema:"enum=running,enum=stopped,enum=quarantined,enum=backing_off"`
	Privileged bool        `json:"privileged"`
	Root       bool        `json:"root"`
	Parent     CreatureID  `json:"parent,omitempty"`
	Species    string      `json:"species,omitempty"`
	Pending    uint64      `json:"pending"` // deliveries that wait for it
	Listen     []GroupEdge `json:"listen"`
	Send       []GroupEdge `json:"send"`
}

// GroupEdge is an edge in a [GroupStatus].
type GroupEdge struct {
	Channel ChannelID `json:"channel"`
	Alias   string    `json:"alias"`
}

// GroupChannel is a channel in a [GroupStatus].
type GroupChannel struct {
	ID          ChannelID    `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Listeners   []CreatureID `json:"listeners"`
	Senders     []CreatureID `json:"senders"`
	Head        uint64       `json:"head"` // the number of its last message
}

// GroupSpecies is something that may be spawned.
type GroupSpecies struct {
	Species     string `json:"species"`
	Description string `json:"description,omitempty"`
	Spawnable   int    `json:"spawnable"` // how many there may be at a time
	Alive       int    `json:"alive"`
}

func groupStatus(t *turn, args []byte) (any, error) {
	if _, err := decodeArgs[struct{}](args); err != nil {
		return nil, err
	}
	var out GroupStatus
	err := t.look(func(s *staging) error {
		if err := s.mayEdit(); err != nil {
			return err
		}
		out = s.status()
		return nil
	})
	return out, err
}

// status describes the caller's graph.
func (s *staging) status() GroupStatus {
	e := s.x.e
	info, _ := s.topo().Graph(s.home())
	out := GroupStatus{Graph: info.ID, Self: s.caller.id, Creatures: []GroupMember{}, Channels: []GroupChannel{}, Wires: s.wires(), Spawnable: []GroupSpecies{}}
	g := s.caller.home.lock() // what is counted changes without the mutation lock
	defer g.mu.Unlock()
	for _, id := range info.Creatures {
		out.Creatures = append(out.Creatures, s.member(s.x.creature(id)))
	}
	for _, id := range info.Channels {
		out.Channels = append(out.Channels, s.groupChannel(id))
	}
	for kind, t := range e.templates {
		if kind.deployment == s.caller.deployment {
			out.Spawnable = append(out.Spawnable, GroupSpecies{t.Name, t.Description, t.Spawnable, s.x.alive(kind)})
		}
	}
	slices.SortFunc(out.Spawnable, func(a, b GroupSpecies) int { return cmp.Compare(a.Species, b.Species) })
	return out
}

// member describes a creature. The caller holds the mu of its own graph, which may
// become one with that of the creature by what is staged.
func (s *staging) member(c *creature) GroupMember {
	t, _ := s.topo().Creature(c.id)
	m := GroupMember{
		ID: c.id, Name: t.Name, State: "running", Privileged: t.Privileged, Root: t.Root, Parent: t.Parent,
		Species: c.spec.Species, Listen: []GroupEdge{}, Send: []GroupEdge{},
	}
	if c.home.load() == s.caller.home.load() {
		m.State, m.Pending = c.stateName(), c.mb.pending()
	}
	if t.Stopped {
		m.State = "stopped"
	} else if m.State == "stopped" {
		m.State = "running" // since it was told so by this turn
	}
	for _, e := range t.Edges {
		edge := GroupEdge{e.Channel, e.Alias}
		if e.Direction == Listen {
			m.Listen = append(m.Listen, edge)
		} else {
			m.Send = append(m.Send, edge)
		}
	}
	return m
}

func (s *staging) groupChannel(id ChannelID) GroupChannel {
	t, _ := s.topo().Channel(id)
	out := GroupChannel{ID: id, Name: t.Name, Listeners: []CreatureID{}, Senders: []CreatureID{}}
	if ch := s.x.channel(id); ch != nil {
		out.Description = ch.description
		if ch.home.load() == s.caller.home.load() {
			out.Head = ch.head
		}
	}
	for _, e := range t.Edges {
		if e.Direction == topology.Listen {
			out.Listeners = append(out.Listeners, e.Creature)
		} else {
			out.Senders = append(out.Senders, e.Creature)
		}
	}
	return out
}
