package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// settling says how a merge resolves each name that both sides use.
type settling struct {
	otherwise Collision
	channels  map[string]Collision // by name; takes precedence over otherwise
}

// of returns how two channels of that name are resolved.
func (s settling) of(channel string) Collision {
	if how, ok := s.channels[channel]; ok {
		return how
	}
	return s.otherwise
}

// merge merges graphs and returns the survivor: the one with the most
// creatures; among equals, the oldest.
func (e *edit) merge(graphs []*graph, how settling) (*graph, *abi.Error) {
	graphs = slices.SortedFunc(slices.Values(graphs), func(a, b *graph) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), byGraphAge(a, b))
	})
	survivor := graphs[0]
	e.torn = true
	e.delta.Kind = Merge
	e.delta.NewGraphs = []GraphID{survivor.id}
	for _, g := range graphs {
		e.delta.OldGraphs = append(e.delta.OldGraphs, g.id)
	}
	for _, g := range graphs[1:] {
		if names := how.rejected(survivor, g); len(names) > 0 {
			return nil, colliding(survivor, g, names)
		}
		e.absorb(survivor, g, how)
	}
	return survivor, nil
}

func (e *edit) absorb(survivor, absorbed *graph, how settling) {
	creatures := slices.SortedFunc(absorbed.elders[everyone].items.all(), byAge)
	channels := slices.SortedFunc(absorbed.channels.all(), byChannelAge)
	for _, c := range creatures {
		if survivor.creatureNames.get(c.name) != nil {
			e.renameCreature(c, freeCreatureName(c.name, survivor, absorbed))
		}
	}
	channels = slices.DeleteFunc(channels, func(ch *channel) bool { return e.settle(ch, survivor, how) != ch })
	e.carry(creatures, channels, absorbed, survivor)
	e.endGraph(absorbed, survivor)
}

// takeChannel moves a channel to another graph. It returns the channel that
// then has the edges: ch, or the one it was unified with.
func (e *edit) takeChannel(ch *channel, to *graph, how settling) *channel {
	if twin := e.settle(ch, to, how); twin != ch {
		return twin
	}
	e.moveChannel(ch, to)
	return ch
}

// settle prepares a channel for moving to another graph: it is renamed if its
// name is taken there, or unified with the channel that has its name, which is
// then returned instead of ch.
func (e *edit) settle(ch *channel, to *graph, how settling) *channel {
	twin := to.channelNames.get(ch.name)
	if twin != nil && how.of(ch.name) == Unify && !ch.report && !twin.report {
		e.unify(twin, ch)
		return twin
	}
	e.renameApart(ch, to)
	return ch
}

// renameApart renames ch if its name is taken in its new graph.
func (e *edit) renameApart(ch *channel, to *graph) {
	if to.channelNames.get(ch.name) != nil {
		e.renameChannel(ch, freeChannelName(ch.name, to, ch.graph))
	}
}

// unify moves the edges of absorbed, with their aliases, to survivor.
func (e *edit) unify(survivor, absorbed *channel) {
	for _, edge := range absorbed.edges() {
		c, d, alias := edge.link.creature, edge.direction, edge.half().alias
		e.removeEdge(c, absorbed, d)
		e.addEdge(c, survivor, d, alias)
	}
	e.removeChannel(absorbed)
	e.delta.Unified = append(e.delta.Unified, Unification{survivor.id, absorbed.id})
}

// afterUnify returns the channel that now has the edges of ch.
func (e *edit) afterUnify(ch *channel) *channel {
	for _, u := range e.delta.Unified {
		if u.Absorbed == ch.id {
			return e.channels.get(u.Survivor)
		}
	}
	return ch
}

// rejected lists the names that both graphs use and that must not collide:
// creatures, then channels, in order of age on the absorbed side, oldest
// first.
func (s settling) rejected(survivor, absorbed *graph) []string {
	if s.otherwise != Reject && len(s.channels) == 0 {
		return nil
	}
	var names []string
	for _, c := range slices.SortedFunc(absorbed.elders[everyone].items.all(), byAge) {
		if s.otherwise == Reject && survivor.creatureNames.get(c.name) != nil {
			names = append(names, quoted(aCreature, c.name))
		}
	}
	for _, ch := range slices.SortedFunc(absorbed.channels.all(), byChannelAge) {
		if s.of(ch.name) == Reject && survivor.channelNames.get(ch.name) != nil {
			names = append(names, quoted(aChannel, ch.name))
		}
	}
	return names
}

func quoted(what, name string) string { return fmt.Sprintf("%s %q", what, name) }
