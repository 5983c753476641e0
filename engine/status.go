package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/outbound"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Status describes the graphs, oldest first: all of them, or the one given by any id that
// it has had.
func (e *Engine) Status(graph journal.GraphID) ([]inspect.GraphStatus, error) {
	l := e.core.rlock()
	defer l.runlock()
	graphs, err := l.presentOrAll(graph)
	if err != nil {
		return nil, err
	}
	out := []inspect.GraphStatus{}
	for _, g := range graphs {
		out = append(out, l.graphStatus(g))
	}
	return out, nil
}

func (e locked) graphStatus(graph *graph) inspect.GraphStatus {
	g := graph.enter()
	defer g.leave()
	out := inspect.GraphStatus{
		ID: g.id, Complete: true, Durability: g.durability.String(),
		Creatures: []inspect.CreatureStatus{}, Channels: []inspect.ChannelStatus{}, Wires: g.wires(),
	}
	if g.store == nil {
		out.Durability = journal.Volatile.String()
	} else {
		info := g.store.Info()
		out.Session, out.StorePath, out.Complete = info.Session, info.Path, info.Complete
	}
	members := map[string]bool{}
	for _, c := range g.sortedCreatures() {
		if c.root && out.Root == "" {
			out.Root = c.id
		}
		t, _ := e.topo.Creature(c.id)
		s := c.status(g, t)
		if out.Creatures = append(out.Creatures, s); s.Hibernated {
			out.Hibernated++
		}
		members[c.deployment] = true
	}
	out.Stopped = g.spent.Stops.All(members)
	for _, ch := range g.sortedChannels() {
		t, _ := e.topo.Channel(ch.id)
		out.Channels = append(out.Channels, ch.status(t))
	}
	return out
}

// stateName says whether the creature accepts deliveries and, if not, why.
func (c *creature) stateName(g section) journal.CreatureState {
	if c.backingOff && !c.quarantined && !c.stopped && !c.halted(g) {
		return journal.BackingOff
	}
	if (c.runs(g) || c.husk && !c.savedStopped) && (c.approvals.Parked || c.approvals.Open() > 0) {
		return journal.AwaitingApproval
	}
	return c.condition(g)
}

// status describes the creature.
func (c *creature) status(g section, t topology.Creature) inspect.CreatureStatus {
	out := inspect.CreatureStatus{
		ID: c.id, Name: c.name, Description: c.spec.Description, Deployment: c.deployment, Address: c.spec.Address, Species: c.spec.Species, State: c.stateName(g),
		Privileged: c.privileged, Root: c.root, Parent: c.parent,
		Cursors: map[journal.ChannelID]inspect.Cursor{}, Incarnation: c.instances.Load(), InstanceStarts: c.instances.Load(),
		Module: c.spec.Module, ModuleSHA256: c.module.Info().SHA256, Engine: c.module.Info().Engine, Limits: *c.limits, Counters: c.counters, Approvals: c.approvals.Open(), Capabilities: outbound.Held(c.outside, c.id, &g.spent),
	}
	if !c.scheduled && c.hold == nil {
		if out.Hibernated = c.asleep && c.runs(g); c.instance != nil {
			out.MemoryBytes = c.instance.MemoryBytes()
		}
	}
	out.Connect(t.Edges)
	for _, s := range c.mb.feeds {
		cursor := inspect.Cursor{Seq: s.cursor, Pending: uint64(len(s.waiting()))}
		if end := s.lastMessage(); end > s.offered {
			cursor.Pending += end - s.offered
		}
		out.Cursors[s.id] = cursor
	}
	return out
}

func (ch *channel) status(t topology.Channel) inspect.ChannelStatus {
	out := inspect.ChannelStatus{
		ID: ch.id, Name: ch.name, Deployment: ch.deployment, Address: ch.place().address, Description: ch.description, Head: ch.head,
	}
	out.Connect(t.Edges)
	return out
}

// State returns a creature's state, in ascending order of keys: all of it, or the keys
// with a prefix.
func (e *Engine) State(ctx context.Context, creature journal.CreatureID, prefix string) ([]inspect.StateEntry, error) {
	c, g, err := e.core.enterCreature(creature)
	if err != nil {
		return nil, err
	}
	if c.state != nil {
		defer g.leave()
		return effects.Entries(c.state, prefix), nil
	}
	g.leave()
	state, _, err := c.storedState(ctx)
	if err != nil {
		return nil, err
	}
	return effects.Entries(state, prefix), nil
}
