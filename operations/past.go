package operations

import (
	"context"
	"encoding/json"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TopologyArgs are the arguments of topology.
type TopologyArgs struct {
	At    string `json:"at" op:"required" doc:"the moment: the cursor of an event, or a time (RFC 3339)"`
	Graph string `json:"graph,omitempty" doc:"only graphs that have become this graph, which may have ended: any id it has had, or the name of a member"`
}

// TopologyResult is the result of topology.
type TopologyResult struct {
	Graphs []PastGraph `json:"graphs"` // oldest first
	// graphs that cannot be described, for example because their history has been pruned since
	Problems []*ErrorRecord `json:"problems,omitempty"`
}

// PastGraph describes a graph as it was. A graph without a session cannot be described.
type PastGraph struct {
	ID        terrarium.GraphID       `json:"id"`
	Session   terrarium.SessionID     `json:"session"`
	Root      terrarium.CreatureID    `json:"root,omitempty"` // id of its root; if a merge has left several, that of the first
	Creatures []PastCreature          `json:"creatures"`
	Channels  []inspect.ChannelStatus `json:"channels"` // the channels; head is always 0, because positions in channels are not described
	Wires     []journal.OutputWire    `json:"wires"`
}

// PastCreature describes a creature as it was.
type PastCreature struct {
	ID           terrarium.CreatureID  `json:"id"`
	Name         string                `json:"name"`
	Deployment   string                `json:"deployment,omitempty"`
	Address      string                `json:"address,omitempty"`
	Species      string                `json:"species,omitempty"`
	State        journal.CreatureState `json:"state"` // running or stopped; a quarantined creature is stopped
	Privileged   bool                  `json:"privileged"`
	Root         bool                  `json:"root"`
	Parent       terrarium.CreatureID  `json:"parent,omitempty"`
	Module       string                `json:"module"`
	ModuleSHA256 string                `json:"module_sha256"`
}

func topologyAt(ctx context.Context, s *client, a *TopologyArgs) (*TopologyResult, error) {
	of := ""
	if a.Graph != "" {
		var err error
		if of, err = liveOrSuccessor(ctx, s, "topology", a.Graph); err != nil {
			return nil, err
		}
	}
	graphs, problems, err := s.t.GraphsAt(ctx, a.At, of)
	if err != nil {
		return nil, err
	}
	out := &TopologyResult{Graphs: []PastGraph{}, Problems: errorRecords(problems)}
	for i := range graphs {
		out.Graphs = append(out.Graphs, newPastGraph(&graphs[i]))
	}
	return out, nil
}

func newPastGraph(g *journal.SavedGraph) PastGraph {
	out := PastGraph{ID: g.Graph, Session: g.Session, Creatures: []PastCreature{}, Channels: []inspect.ChannelStatus{}, Wires: journal.List(g.Wires)}
	for i := range g.Creatures {
		c := &g.Creatures[i]
		if c.Root && out.Root == "" {
			out.Root = c.ID
		}
		out.Creatures = append(out.Creatures, newPastCreature(c))
	}
	listeners, senders := map[terrarium.ChannelID][]terrarium.CreatureID{}, map[terrarium.ChannelID][]terrarium.CreatureID{}
	for _, e := range g.Edges {
		ends := senders
		if e.Direction == journal.Listen {
			ends = listeners
		}
		ends[e.Channel] = append(ends[e.Channel], e.Creature)
	}
	for i := range g.Channels {
		c := &g.Channels[i]
		if c.Inbox != "" {
			continue
		}
		out.Channels = append(out.Channels, inspect.ChannelStatus{
			ID: c.ID, Name: c.Name, Address: c.Address, Description: c.Description, Listeners: journal.List(listeners[c.ID]), Senders: journal.List(senders[c.ID]),
		})
	}
	return out
}

func newPastCreature(c *journal.CreatureRow) PastCreature {
	out := PastCreature{
		ID: c.ID, Name: c.Name, Deployment: c.Deployment, Address: c.Address, State: c.State(), Privileged: c.Privileged, Root: c.Root,
		Parent: c.Parent, Module: c.Module, ModuleSHA256: c.SHA256,
	}
	var spec struct { // what deploy.StoredSpec has besides may be large
		Species string `json:"species"`
	}
	if json.Unmarshal(c.Spec, &spec) == nil { // without it, only the species is missing
		out.Species = spec.Species
	}
	return out
}
