package engine

import (
	"github.com/seed47132306/terrarium/engine/deploy"
)

// picture is the graph as policies see it. It is rebuilt only when the graph has changed.
func (g section) picture() *deploy.GraphView {
	if g.seen != nil && g.seenShape == g.shape {
		return g.seen
	}
	v := &deploy.GraphView{ID: g.id, Creatures: []deploy.CreatureView{}, Channels: []deploy.ChannelView{}}
	for _, c := range g.sortedCreatures() {
		v.Creatures = append(v.Creatures, deploy.CreatureView{
			ID: c.id, Name: c.name, Address: c.spec.Address, Species: c.spec.Species, Deployment: c.deployment,
			Parent: g.peer(c.parent).Name, State: c.condition(g), Privileged: c.privileged, Root: c.root,
		})
	}
	for _, ch := range g.sortedChannels() {
		view := deploy.ChannelView{ID: ch.id, Name: ch.name, Address: ch.place().address, Deployment: ch.deployment, Listeners: []string{}, Senders: []string{}}
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

// view returns a function that, when called, returns the graph in which something lives.
func (h *graphPointer) view() func() *deploy.GraphView {
	var shown *deploy.GraphView
	return func() *deploy.GraphView {
		if shown != nil {
			return shown
		}
		shown = &deploy.GraphView{}
		if g := h.enter(); !g.none() {
			shown = g.picture()
			g.leave()
		}
		return shown
	}
}

// party is a creature that a turn is about.
func (c *creature) party() deploy.Party {
	w := c.wiring.Load()
	return deploy.Party{
		ID: c.id, Name: w.name, Address: c.spec.Address, Species: c.spec.Species, Deployment: c.deployment, Where: c.spec.Where,
	}
}
