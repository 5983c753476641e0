// Package drafttest provides a world for tests of drafts and their users: its
// topology is a real one, and everything else is in maps.
package drafttest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// World implements [draft.Base], [draft.Live] and [draft.IDs]. Only one
// goroutine may use it. Tests may fill the maps, but not while there is a
// draft.
type World struct {
	Topo      *topology.State
	Members   map[journal.CreatureID]draft.Member
	Channels  map[journal.ChannelID]draft.Channel
	Applied   map[string]*deploy.Deployment
	Roots     map[string]journal.CreatureID
	Reports   map[string]journal.ChannelID
	Templates map[draft.Kind]*deploy.SpeciesSpec
	Views     map[journal.GraphID]*deploy.GraphView
	States    map[journal.CreatureID]journal.CreatureState
	// Clock is the time; each reading adds Pace.
	Clock, Pace int64
	// Given lists the homes for which Memory was called, in order.
	Given []draft.Home
	// Said lists what the policies have said.
	Said []deploy.Words

	homes map[journal.CreatureID]journal.GraphID
	ids   int
}

// New makes an empty world.
func New() *World {
	return &World{
		Topo: topology.New(), Members: map[journal.CreatureID]draft.Member{}, Channels: map[journal.ChannelID]draft.Channel{},
		Applied: map[string]*deploy.Deployment{}, Roots: map[string]journal.CreatureID{}, Reports: map[string]journal.ChannelID{},
		Templates: map[draft.Kind]*deploy.SpeciesSpec{}, Views: map[journal.GraphID]*deploy.GraphView{},
		States: map[journal.CreatureID]journal.CreatureState{}, homes: map[journal.CreatureID]journal.GraphID{},
	}
}

// Draft begins a draft. Without ids in o it uses those of the world.
func (w *World) Draft(o draft.Options) *draft.Draft {
	if o.IDs == nil {
		o.IDs = w
	}
	return draft.New(w, w, o)
}

// CarryOut applies a draft, which ends it.
func (w *World) CarryOut(d *draft.Draft) *draft.Change {
	sources := map[journal.CreatureID]bool{}
	for id := range w.Members {
		sources[id] = true
	}
	d.PartWires(sources)
	c := d.Seal()
	after := maps.Clone(w.Members)
	maps.Copy(after, c.Creatures)
	for id, m := range after {
		m.Parent = d.ParentLeft(m)
		if list, touched := c.Wires.Lists[id]; touched {
			m.Wires = list
		}
		if own, touched := c.Own[id]; touched {
			m.Own = own
		}
		if joined, ok := c.Joined[id]; ok {
			m.Deployment = joined
		}
		after[id] = m
	}
	maps.DeleteFunc(after, func(id journal.CreatureID, _ draft.Member) bool { return w.Topo.GraphOf(id) == "" })
	w.Members = after
	maps.Copy(w.Channels, c.Channels)
	for id, joined := range c.JoinedChannels {
		ch := w.Channels[id]
		ch.ID, ch.Deployment = id, joined
		w.Channels[id] = ch
	}
	maps.DeleteFunc(w.Channels, func(id journal.ChannelID, _ draft.Channel) bool { return w.Topo.ChannelGraph(id) == "" })
	w.index()
	return c
}

// index recomputes roots, report channels and homes.
func (w *World) index() {
	clear(w.Roots)
	clear(w.Reports)
	clear(w.homes)
	for id, m := range w.Members {
		w.homes[id] = w.Topo.GraphOf(id)
		if m.Deployment != "" && w.Topo.IsRoot(id) {
			w.Roots[m.Deployment] = id
		}
	}
	for id, ch := range w.Channels {
		if ch.Deployment != "" && ch.Address == draft.ReportAddress {
			w.Reports[ch.Deployment] = id
		}
	}
}

// Topology implements [draft.Base], as the methods below do.
func (w *World) Topology() *topology.State { return w.Topo }

// Member looks in Members.
func (w *World) Member(id journal.CreatureID) (draft.Member, bool) {
	m, ok := w.Members[id]
	return m, ok
}

// Children looks through Members.
func (w *World) Children(parent journal.CreatureID) []draft.Member {
	return slices.DeleteFunc(slices.Collect(maps.Values(w.Members)), func(m draft.Member) bool { return m.Parent != parent })
}

// Channel looks in Channels.
func (w *World) Channel(id journal.ChannelID) (draft.Channel, bool) {
	ch, ok := w.Channels[id]
	return ch, ok
}

// WireSource looks through Members.
func (w *World) WireSource(id journal.WireID) journal.CreatureID {
	for from, m := range w.Members {
		if draft.WireWithID(m.Wires, id) >= 0 {
			return from
		}
	}
	return ""
}

// Deployment looks in Applied.
func (w *World) Deployment(name string) *deploy.Deployment { return w.Applied[name] }

// Deployments iterates over Applied.
func (w *World) Deployments(yield func(*deploy.Deployment) bool) { maps.Values(w.Applied)(yield) }

// Root looks in Roots.
func (w *World) Root(deployment string) journal.CreatureID { return w.Roots[deployment] }

// Report looks in Reports.
func (w *World) Report(deployment string) journal.ChannelID { return w.Reports[deployment] }

// Species looks in Templates.
func (w *World) Species(k draft.Kind) *deploy.SpeciesSpec { return w.Templates[k] }

// Alive counts Members.
func (w *World) Alive(k draft.Kind) int {
	n := 0
	for _, m := range w.Members {
		if of, ok := draft.KindOf(m.Deployment, m.Spec); ok && of == k {
			n++
		}
	}
	return n
}

// Now implements [draft.Live], as the methods below do.
func (w *World) Now() int64 { w.Clock += w.Pace; return w.Clock }

// View looks in Views.
func (w *World) View(id journal.GraphID) *deploy.GraphView { return w.Views[id] }

// Home returns the graph of a creature after the last applied draft.
func (w *World) Home(id journal.CreatureID) journal.GraphID { return w.homes[id] }

// State looks in States.
func (w *World) State(id journal.CreatureID) (journal.CreatureState, *journal.RecipeStop) {
	return w.States[id], nil
}

// Memory returns a new memory.
func (w *World) Memory(home draft.Home) draft.Memory {
	w.Given = append(w.Given, home)
	return Memory{}
}

// Heard adds to Said.
func (w *World) Heard(words *deploy.Words) { w.Said = append(w.Said, *words) }

// Memory holds the memories of policies, by deployment and policy.
type Memory map[string]PolicyMemory

// Of implements [draft.Memory].
func (m Memory) Of(deployment string) deploy.PolicyMemory {
	if m[deployment] == nil {
		m[deployment] = PolicyMemory{}
	}
	return m[deployment]
}

// PolicyMemory holds the memories of the policies of one deployment.
type PolicyMemory map[string][]byte

// Recall implements [deploy.PolicyMemory], as Remember does.
func (m PolicyMemory) Recall(policy string) []byte { return m[policy] }

// Remember keeps a value.
func (m PolicyMemory) Remember(policy string, value []byte) { m[policy] = value }

func (w *World) id(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s%d", prefix, w.ids)
}

// NewGraph implements [draft.IDs], as the methods below do.
func (w *World) NewGraph() journal.GraphID { return journal.GraphID(w.id("g")) }

// NewChannel counts up.
func (w *World) NewChannel() journal.ChannelID { return journal.ChannelID(w.id("h")) }

// NewCreature counts up.
func (w *World) NewCreature() journal.CreatureID { return journal.CreatureID(w.id("c")) }

// NewWire counts up.
func (w *World) NewWire() journal.WireID { return journal.WireID(w.id("w")) }
