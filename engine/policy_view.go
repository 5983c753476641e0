package engine

import (
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// picture is the graph as policies see it. It is made anew only when the graph
// has changed. The caller holds mu.
func (g *graph) picture() *deploy.GraphView {
	if g.seen != nil && g.seenShape == g.shape {
		return g.seen
	}
	v := &deploy.GraphView{ID: g.id, Creatures: []deploy.CreatureView{}, Channels: []deploy.ChannelView{}}
	for _, c := range g.sortedCreatures() {
		v.Creatures = append(v.Creatures, deploy.CreatureView{
			ID: c.id, Name: c.name, Address: c.spec.Address, Species: c.spec.Species, Deployment: c.deployment,
			Parent: g.peer(c.parent).Name, State: c.condition(), Privileged: c.privileged, Root: c.root,
		})
	}
	for _, ch := range g.sortedChannels() {
		view := deploy.ChannelView{ID: ch.id, Name: ch.name, Address: ch.address, Deployment: ch.deployment, Listeners: []string{}, Senders: []string{}}
		for c := range ch.listeners() {
			view.Listeners = append(view.Listeners, c.name)
		}
		for _, c := range ch.senders {
			view.Senders = append(view.Senders, c.name)
		}
		v.Channels = append(v.Channels, view)
	}
	g.seen, g.seenShape = v, g.shape
	return v
}

// view returns a function that shows the graph in which something lives, once it
// is asked.
func (h *graphPointer) view() func() *deploy.GraphView {
	var shown *deploy.GraphView
	return func() *deploy.GraphView {
		if shown != nil {
			return shown
		}
		shown = &deploy.GraphView{}
		if g := h.lock(); g != nil {
			shown = g.picture()
			g.mu.Unlock()
		}
		return shown
	}
}

// view shows a graph as the change has it. The caller holds the mutation lock,
// but no graph's mu.
func (x *change) view(id journal.GraphID) *deploy.GraphView {
	if len(x.deltas) == 0 {
		if g := x.e.graphs[id]; g != nil { // nothing has been staged yet
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.picture()
		}
	}
	info, _ := x.e.topo.Graph(id)
	v := &deploy.GraphView{ID: id, Creatures: []deploy.CreatureView{}, Channels: []deploy.ChannelView{}}
	for _, id := range info.Creatures {
		v.Creatures = append(v.Creatures, x.viewCreature(id))
	}
	for _, id := range info.Channels {
		v.Channels = append(v.Channels, x.viewChannel(id))
	}
	return v
}

func (x *change) viewCreature(id journal.CreatureID) deploy.CreatureView {
	t, _ := x.e.topo.Creature(id)
	v := deploy.CreatureView{
		ID: id, Name: t.Name, Deployment: x.deploymentOf(id), Parent: x.nameOf(t.Parent),
		State: "running", Privileged: t.Privileged, Root: t.Root,
	}
	c := x.creature(id)
	if c == nil {
		return v
	}
	v.Address, v.Species = c.spec.Address, c.spec.Species
	if g := c.home.lock(); g != nil {
		v.State = c.condition()
		g.mu.Unlock()
	}
	if t.Stopped {
		v.State = "stopped"
	}
	return v
}

func (x *change) viewChannel(id journal.ChannelID) deploy.ChannelView {
	t, _ := x.e.topo.Channel(id)
	v := deploy.ChannelView{ID: id, Name: t.Name, Deployment: x.deploymentOfChannel(id), Listeners: []string{}, Senders: []string{}}
	if ch := x.channel(id); ch != nil {
		v.Address = ch.address
	}
	for _, e := range t.Edges {
		if e.Direction == journal.Listen {
			v.Listeners = append(v.Listeners, x.nameOf(e.Creature))
		} else {
			v.Senders = append(v.Senders, x.nameOf(e.Creature))
		}
	}
	return v
}

// nameOf is the name of a creature as the change has it; empty if it is gone.
func (x *change) nameOf(id journal.CreatureID) string {
	t, _ := x.e.topo.Creature(id)
	return t.Name
}

// party is a creature as events for policies have it.
func (x *change) party(id journal.CreatureID) deploy.Party {
	t, ok := x.e.topo.Creature(id)
	p := deploy.Party{ID: id, Name: t.Name, Privileged: t.Privileged}
	c := x.creature(id)
	if c == nil {
		return p
	}
	if !ok {
		p.Name, p.Privileged = c.spec.Name, c.spec.Privileged // it is to be added
	}
	p.Address, p.Species, p.Deployment, p.Where = c.spec.Address, c.spec.Species, x.deploymentOf(id), c.spec.Where
	return p
}

// party is a creature that a turn is about.
func (c *creature) party() deploy.Party {
	w := c.wiring.Load()
	return deploy.Party{
		ID: c.id, Name: w.name, Address: c.spec.Address, Species: c.spec.Species, Deployment: c.deployment, Where: c.spec.Where,
	}
}

// policyChannel is a channel as events for policies have it.
func (x *change) policyChannel(id journal.ChannelID) deploy.PolicyChannel {
	t, _ := x.e.topo.Channel(id)
	out := deploy.PolicyChannel{ID: id, Name: t.Name, Deployment: x.deploymentOfChannel(id)}
	if ch := x.channel(id); ch != nil {
		out.Address = ch.address
	}
	return out
}
