package engine_test

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
)

// The bounds of a document, as its reference page states them.
const (
	mostMembers  = 256
	mostChannels = 128
	mostPeers    = 16
)

// expected builds a creature's awareness document naively: from the whole status of
// its graph, without memory of earlier documents. It has no revision.
func expected(graphs []inspect.GraphStatus, id journal.CreatureID) *outlook.Awareness {
	for i := range graphs {
		for j := range graphs[i].Creatures {
			if c := &graphs[i].Creatures[j]; c.ID == id {
				return expectedIn(&graphs[i], c)
			}
		}
	}
	return nil
}

func expectedIn(g *inspect.GraphStatus, c *inspect.CreatureStatus) *outlook.Awareness {
	a := &outlook.Awareness{Tools: []string{"send_channel", "group_send"}, Graph: outlook.AwareGraph{ID: g.ID}}
	a.Wires.In.Items, a.Wires.Out.Items = []outlook.AwareWire{}, []outlook.AwareWire{}
	a.Self = outlook.AwareSelf{
		ID: c.ID, Name: c.Name, Description: c.Description, Deployment: c.Deployment, Address: c.Address,
		Privileged: c.Privileged, Root: c.Root, State: condition(c),
	}
	if c.Parent != "" {
		a.Self.Parent = &outlook.AwarePeer{ID: c.Parent}
		if p := member(g, c.Parent); p != nil {
			a.Self.Parent.Name = p.Name
		}
	}
	for i := range g.Channels {
		if ch, ok := expectedChannel(g, c, &g.Channels[i]); ok {
			keep(&a.Channels, ch, mostChannels)
		}
	}
	a.Channels.Items = some(a.Channels.Items)
	if c.Privileged {
		a.Tools = append(a.Tools, "group_status", "group_add_node", "group_remove_node", "group_start_node", "group_stop_node", "group_pause_node", "group_resume_node", "group_channel", "group_wire")
		expectedGraph(g, &a.Graph)
	}
	return a
}

func expectedChannel(g *inspect.GraphStatus, c *inspect.CreatureStatus, ch *inspect.ChannelStatus) (outlook.AwareChannel, bool) {
	out := outlook.AwareChannel{ID: ch.ID, Name: ch.Name, Description: ch.Description}
	for alias, ids := range c.Aliases.Listen {
		if slices.Contains(ids, ch.ID) {
			out.Listen = alias
		}
	}
	for alias, id := range c.Aliases.Send {
		if id == ch.ID {
			out.Send = alias
		}
	}
	out.Listeners, out.Senders = expectedPeers(g, c, ch.Listeners), expectedPeers(g, c, ch.Senders)
	return out, slices.Contains(c.Listen, ch.ID) || slices.Contains(c.Send, ch.ID)
}

func expectedPeers(g *inspect.GraphStatus, c *inspect.CreatureStatus, ids []journal.CreatureID) outlook.AwareList[outlook.AwarePeer] {
	var out outlook.AwareList[outlook.AwarePeer]
	hidden := 0
	for i := range g.Creatures { // oldest first
		p := &g.Creatures[i]
		switch {
		case p.ID == c.ID || !slices.Contains(ids, p.ID):
		case c.Privileged || p.Privileged || p.ID == c.Parent:
			keep(&out, outlook.AwarePeer{ID: p.ID, Name: p.Name}, mostPeers)
		default:
			hidden++
		}
	}
	out.Total += hidden
	out.Items = some(out.Items)
	return out
}

func expectedGraph(g *inspect.GraphStatus, out *outlook.AwareGraph) {
	var members outlook.AwareList[outlook.AwareMember]
	for i := range g.Creatures {
		c := &g.Creatures[i]
		keep(&members, outlook.AwareMember{
			ID: c.ID, Name: c.Name, Description: c.Description, Deployment: c.Deployment, Address: c.Address,
			Privileged: c.Privileged, Root: c.Root, Parent: c.Parent, State: condition(c),
		}, mostMembers)
	}
	channels := outlook.AwareList[outlook.AwareDeclaration]{Items: []outlook.AwareDeclaration{}}
	for i := range g.Channels {
		ch := &g.Channels[i]
		keep(&channels, outlook.AwareDeclaration{
			ID: ch.ID, Name: ch.Name, Address: ch.Address, Description: ch.Description,
			Listeners: len(ch.Listeners), Senders: len(ch.Senders),
		}, mostMembers)
	}
	out.Members, out.Channels = &members, &channels
	out.Spawnable = &outlook.AwareList[outlook.AwareSpecies]{Items: []outlook.AwareSpecies{}}
}

func member(g *inspect.GraphStatus, id journal.CreatureID) *inspect.CreatureStatus {
	for i := range g.Creatures {
		if g.Creatures[i].ID == id {
			return &g.Creatures[i]
		}
	}
	return nil
}

func condition(c *inspect.CreatureStatus) journal.CreatureState {
	if c.State == journal.BackingOff {
		return journal.Running
	}
	return c.State
}

func keep[T any](list *outlook.AwareList[T], x T, most int) {
	list.Total++
	if len(list.Items) == most {
		list.Truncated++
		return
	}
	list.Items = append(list.Items, x)
}

func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
