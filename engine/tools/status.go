package tools

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/topology"
)

// The bounds on the results of group_status and group_wire, so that their size
// does not grow with the graph.
const (
	maxStatusItems  = 256 // creatures, channels and wires in one result of group_status
	maxStatusEdges  = 32  // in each direction of a creature or a channel
	maxStatusPrompt = 256 // bytes of a wire's prompt
	maxListedWires  = 64  // in one result of group_wire
)

// GroupStatusArgs holds the arguments of the tool group_status.
type GroupStatusArgs struct {
	After string `json:"after,omitempty" jsonschema:"next of the previous result, to continue from there"`
	Limit int    `json:"limit,omitempty" bounds:"minimum=1,maximum=256" jsonschema:"the most creatures, channels and wires to return, in total; default 256"`
}

// GroupStatus is the result of the tool group_status: the caller's graph as
// its turn sees it, or a part of it.
type GroupStatus struct {
	Graph     journal.GraphID      `json:"graph"`
	Self      journal.CreatureID   `json:"self"`
	Creatures []GroupMember        `json:"creatures"` // oldest first
	Channels  []GroupChannel       `json:"channels"`  // oldest first, after all creatures
	Wires     []journal.OutputWire `json:"wires"`     // after all channels; a long prompt is cut
	Spawnable []GroupSpecies       `json:"spawnable"` // in the first part only
	Totals    GroupTotals          `json:"totals"`
	Next      string               `json:"next,omitempty"` // if there is more: pass it as after to continue
}

// GroupTotals holds the totals of the graph.
type GroupTotals struct {
	Creatures int `json:"creatures"`
	Channels  int `json:"channels"`
	Wires     int `json:"wires"`
}

// GroupMember is a creature in a [GroupStatus].
type GroupMember struct {
	ID          journal.CreatureID    `json:"id"`
	Name        string                `json:"name"`
	Description string                `json:"description,omitempty"`
	State       journal.CreatureState `json:"state" bounds:"enum=running|stopped|paused|quarantined|backing_off"`
	Privileged  bool                  `json:"privileged"`
	Root        bool                  `json:"root"`
	Parent      journal.CreatureID    `json:"parent,omitempty"`
	Species     string                `json:"species,omitempty"`
	Pending     uint64                `json:"pending"` // deliveries waiting for it
	Listen      []GroupEdge           `json:"listen"`
	Send        []GroupEdge           `json:"send"`
	Truncated   int                   `json:"truncated,omitempty"` // how many edges are left out because parts are bounded
}

// GroupEdge is an edge in a [GroupStatus].
type GroupEdge struct {
	Channel journal.ChannelID `json:"channel"`
	Alias   string            `json:"alias"`
}

// GroupChannel is a channel in a [GroupStatus].
type GroupChannel struct {
	ID          journal.ChannelID    `json:"id"`
	Name        string               `json:"name"`
	Description string               `json:"description,omitempty"`
	Listeners   []journal.CreatureID `json:"listeners"`
	Senders     []journal.CreatureID `json:"senders"`
	Head        uint64               `json:"head"`                // the number of its last message
	Truncated   int                  `json:"truncated,omitempty"` // how many listeners and senders are left out because parts are bounded
}

// GroupSpecies is a species that may be spawned.
type GroupSpecies struct {
	Species     string `json:"species"`
	Description string `json:"description,omitempty"`
	Spawnable   int    `json:"spawnable"` // the most that may exist at a time
	Alive       int    `json:"alive"`
}

func groupStatus(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[GroupStatusArgs](args)
	if err != nil {
		return nil, err
	}
	var out GroupStatus
	err = t.Look(ctx, func(s *Stage) (err error) {
		if err := s.mayEdit(); err != nil {
			return err
		}
		out, err = s.status(newPart(a.After, a.Limit, maxStatusItems))
		return err
	})
	return out, err
}

// status describes a part of the caller's graph.
func (s *Stage) status(p *part) (GroupStatus, error) {
	info, _ := s.Topology().Graph(s.home())
	wires := s.wires()
	out := GroupStatus{
		Graph: info.ID, Self: s.caller.ID, Creatures: []GroupMember{}, Channels: []GroupChannel{}, Wires: []journal.OutputWire{}, Spawnable: []GroupSpecies{},
		Totals: GroupTotals{len(info.Creatures), len(info.Channels), len(wires)},
	}
	if p.begun {
		out.Spawnable = s.spawnable()
	}
	s.live.Inside(func(g Graph) { // its counts change at any time
		for _, id := range info.Creatures {
			if p.has(string(id)) {
				out.Creatures = append(out.Creatures, s.member(g, id))
			}
		}
		for _, id := range info.Channels {
			if p.has(string(id)) {
				out.Channels = append(out.Channels, s.groupChannel(g, id))
			}
		}
	})
	for _, w := range wires {
		if p.has(string(w.ID)) {
			w.Prompt = errtext.Cut(w.Prompt, maxStatusPrompt)
			out.Wires = append(out.Wires, w)
		}
	}
	var err error
	out.Next, err = p.end()
	return out, err
}

// spawnable lists the species that the caller may spawn.
func (s *Stage) spawnable() []GroupSpecies {
	out := []GroupSpecies{}
	for _, of := range s.live.Species(s.caller.Deployment) {
		alive := s.Alive(draft.Kind{Deployment: s.caller.Deployment, Species: of.Name})
		out = append(out, GroupSpecies{of.Name, errtext.Cut(of.Description, outlook.MaxDescription), of.Spawnable, alive})
	}
	slices.SortFunc(out, func(a, b GroupSpecies) int { return cmp.Compare(a.Species, b.Species) })
	return out
}

// member describes a creature. It may run in another graph that the staged
// operations merge with the caller's: its runtime state is then left out.
func (s *Stage) member(g Graph, id journal.CreatureID) GroupMember {
	t, _ := s.Topology().Creature(id)
	of, _ := s.Member(id)
	m := GroupMember{
		ID: id, Name: t.Name, Description: errtext.Cut(of.Spec.Description, outlook.MaxDescription), State: journal.Running, Privileged: t.Privileged, Root: t.Root, Parent: s.ParentLeft(of),
		Species: of.Spec.Species, Listen: []GroupEdge{}, Send: []GroupEdge{},
	}
	now, here := g.Member(id)
	if here {
		m.State, m.Pending = now.State, now.Pending
	}
	switch staged := stateOf(t); {
	case staged != journal.Running || m.State == journal.Stopped:
		m.State = staged // this turn may have stopped or started it
	case m.State == journal.Paused && !now.Halted:
		m.State = staged
	}
	for _, e := range t.Edges {
		list := &m.Send
		if e.Direction == journal.Listen {
			list = &m.Listen
		}
		m.Truncated += addBounded(list, GroupEdge{e.Channel, e.Alias})
	}
	return m
}

func (s *Stage) groupChannel(g Graph, id journal.ChannelID) GroupChannel {
	t, _ := s.Topology().Channel(id)
	of, _ := s.Channel(id)
	out := GroupChannel{ID: id, Name: t.Name, Description: errtext.Cut(of.Description, outlook.MaxDescription), Head: g.Head(id), Listeners: []journal.CreatureID{}, Senders: []journal.CreatureID{}}
	for _, e := range t.Edges {
		list := &out.Senders
		if e.Direction == topology.Listen {
			list = &out.Listeners
		}
		out.Truncated += addBounded(list, e.Creature)
	}
	return out
}

// addBounded adds to a list unless it is full. It returns how many items it
// left out.
func addBounded[T any](list *[]T, x T) int {
	if len(*list) == maxStatusEdges {
		return 1
	}
	*list = append(*list, x)
	return 0
}
