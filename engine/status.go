package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// GraphStatus describes a graph.
type GraphStatus struct {
	ID         journal.GraphID      `json:"id"`
	Session    journal.SessionID    `json:"session,omitempty"`
	Root       journal.CreatureID   `json:"root,omitempty"`
	StorePath  string               `json:"store_path,omitempty"`
	Complete   bool                 `json:"complete"`
	Durability string               `json:"durability"`
	Creatures  []CreatureStatus     `json:"creatures"`
	Channels   []ChannelStatus      `json:"channels"`
	Wires      []journal.OutputWire `json:"wires"`
}

// CreatureStatus describes a creature.
type CreatureStatus struct {
	ID             journal.CreatureID           `json:"id"`
	Name           string                       `json:"name"`
	Deployment     string                       `json:"deployment,omitempty"`
	Address        string                       `json:"address,omitempty"`
	Species        string                       `json:"species,omitempty"`
	State          journal.CreatureState        `json:"state"` // running, stopped, quarantined or backing_off
	Privileged     bool                         `json:"privileged"`
	Root           bool                         `json:"root"`
	Parent         journal.CreatureID           `json:"parent,omitempty"`
	Listen         []journal.ChannelID          `json:"listen"`
	Send           []journal.ChannelID          `json:"send"`
	Aliases        Aliases                      `json:"aliases"`
	Cursors        map[journal.ChannelID]Cursor `json:"cursors"`
	Incarnation    uint64                       `json:"incarnation"` // number of its current instance, from 1 in each run of the engine
	InstanceStarts uint64                       `json:"instance_starts"`
	Module         string                       `json:"module"`
	ModuleSHA256   string                       `json:"module_sha256"`
	MemoryBytes    int64                        `json:"memory_bytes"`
	Limits         abi.Limits                   `json:"limits"`
	Counters       counters                     `json:"counters"`
}

// Aliases are a creature's own names for channels.
type Aliases struct {
	Listen map[string][]journal.ChannelID `json:"listen"`
	Send   map[string]journal.ChannelID   `json:"send"`
}

// Cursor is how far a creature has got in a channel.
type Cursor struct {
	Seq     uint64 `json:"seq"`
	Pending uint64 `json:"pending"`
}

// ChannelStatus describes a channel.
type ChannelStatus struct {
	ID          journal.ChannelID    `json:"id"`
	Name        string               `json:"name"`
	Address     string               `json:"address,omitempty"`
	Description string               `json:"description,omitempty"`
	Listeners   []journal.CreatureID `json:"listeners"`
	Senders     []journal.CreatureID `json:"senders"`
	Head        uint64               `json:"head"`
}

// Status describes the graphs, oldest first: all of them, or the one given by any id that
// it has had.
func (e *Engine) Status(graph journal.GraphID) ([]GraphStatus, error) {
	l := e.core.rlock()
	defer l.runlock()
	if graph == "" {
		out := []GraphStatus{}
		for _, g := range l.sortedGraphs() {
			out = append(out, l.graphStatus(g))
		}
		return out, nil
	}
	now, ok := l.topo.Current(graph)
	if !ok {
		return nil, errtext.Gone("graph", string(graph))
	}
	return []GraphStatus{l.graphStatus(l.graphs[now])}, nil
}

func (e locked) graphStatus(graph *graph) GraphStatus {
	g := graph.enter()
	defer g.leave()
	out := GraphStatus{
		ID: g.id, Complete: true, Durability: g.durability.String(),
		Creatures: []CreatureStatus{}, Channels: []ChannelStatus{}, Wires: g.wires(),
	}
	if g.store == nil {
		out.Durability = journal.Volatile.String()
	} else {
		info := g.store.Info()
		out.Session, out.StorePath, out.Complete = info.Session, info.Path, info.Complete
	}
	for _, c := range g.sortedCreatures() {
		if c.root && out.Root == "" {
			out.Root = c.id
		}
		t, _ := e.topo.Creature(c.id)
		out.Creatures = append(out.Creatures, c.status(g, t))
	}
	for _, ch := range g.sortedChannels() {
		t, _ := e.topo.Channel(ch.id)
		out.Channels = append(out.Channels, ch.status(t))
	}
	return out
}

// stateName says whether the creature accepts deliveries and, if not, why.
func (c *creature) stateName(section) journal.CreatureState {
	if c.backingOff && !c.quarantined && !c.stopped {
		return journal.BackingOff
	}
	return c.condition()
}

// status describes the creature.
func (c *creature) status(g section, t topology.Creature) CreatureStatus {
	out := CreatureStatus{
		ID: c.id, Name: c.name, Deployment: c.deployment, Address: c.spec.Address, Species: c.spec.Species, State: c.stateName(g),
		Privileged: c.privileged, Root: c.root, Parent: c.parent, Listen: []journal.ChannelID{}, Send: []journal.ChannelID{},
		Aliases: Aliases{Listen: map[string][]journal.ChannelID{}, Send: map[string]journal.ChannelID{}},
		Cursors: map[journal.ChannelID]Cursor{}, Incarnation: c.instances.Load(), InstanceStarts: c.instances.Load(),
		Module: c.spec.Module, ModuleSHA256: c.module.Info().SHA256, Limits: c.limits, Counters: c.counters,
	}
	if !c.scheduled && c.hold == nil && c.instance != nil {
		out.MemoryBytes = c.instance.MemoryBytes()
	}
	for _, e := range t.Edges {
		if e.Direction == journal.Listen {
			out.Listen = append(out.Listen, e.Channel)
			out.Aliases.Listen[e.Alias] = append(out.Aliases.Listen[e.Alias], e.Channel)
		} else {
			out.Send = append(out.Send, e.Channel)
			out.Aliases.Send[e.Alias] = e.Channel
		}
	}
	for _, s := range c.mb.feeds {
		cursor := Cursor{Seq: s.cursor}
		if end := s.lastMessage(); end > s.offered {
			cursor.Pending = end - s.offered
		}
		for i := range c.mb.n {
			if c.mb.at(i).feed == s {
				cursor.Pending++
			}
		}
		for _, d := range []*delivery{c.retry, &c.current} {
			if d != nil && d.msg != nil && d.feed == s {
				cursor.Pending++
			}
		}
		out.Cursors[s.id] = cursor
	}
	return out
}

func (ch *channel) status(t topology.Channel) ChannelStatus {
	out := ChannelStatus{
		ID: ch.id, Name: ch.name, Address: ch.place().address, Description: ch.description,
		Listeners: []journal.CreatureID{}, Senders: []journal.CreatureID{}, Head: ch.head,
	}
	for _, e := range t.Edges {
		if e.Direction == journal.Listen {
			out.Listeners = append(out.Listeners, e.Creature)
		} else {
			out.Senders = append(out.Senders, e.Creature)
		}
	}
	return out
}

// StateEntry is one state value of a creature.
type StateEntry struct {
	Key   string
	Value []byte
}

// State returns a creature's state, in ascending order of keys: all of it, or the keys
// with a prefix.
func (e *Engine) State(ctx context.Context, creature journal.CreatureID, prefix string) ([]StateEntry, error) {
	c, g, err := e.core.enterCreature(creature)
	if err != nil {
		return nil, err
	}
	state, store := c.state, g.store
	if state == nil && store != nil {
		g.leave()
		read, err := store.State(ctx, creature)
		if err != nil && ctx.Err() == nil && !c.home.logsTo(store) {
			return e.State(ctx, creature, prefix) // a cut closed the store
		}
		if err != nil {
			return nil, err
		}
		state, _ = effects.StateOf(read)
		return entries(state, prefix), nil
	}
	defer g.leave()
	return entries(state, prefix), nil
}

// entries lists the keys of a state with a prefix; a nil state has none.
func entries(state *effects.State, prefix string) []StateEntry {
	out := []StateEntry{}
	if state != nil {
		state.Ascend(prefix, func(key string, value []byte) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			out = append(out, StateEntry{key, slices.Clone(value)})
			return true
		})
	}
	return out
}
