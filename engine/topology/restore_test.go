package topology

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

const restoreRemedy = "restore the result of Snapshot, or fix the data"

// Restore makes a state from a snapshot. The tests use it to check a state. It checks every rule: ids are unique,
// names are unique in their graph, edges join existing creatures and channels
// of one graph, and every graph is one connected component. The error is an
// [*abi.Error] with the code invalid_argument that names the ids.
//
// Creation numbers are kept; if several snapshots were combined and numbers
// are equal, the smaller id counts as older. A snapshot does not contain the
// successors of ended graphs.
func Restore(snap Snapshot) (*State, error) {
	s := New()
	s.torn = true
	for _, step := range []func(Snapshot) *abi.Error{
		s.restoreGraphs, s.restoreCreatures, s.restoreChannels, s.restoreEdges,
	} {
		if err := step(snap); err != nil {
			return nil, asRestore(err)
		}
	}
	for _, g := range slices.SortedFunc(s.graphs.values(), byGraphAge) {
		if err := checkWhole(g); err != nil {
			return nil, asRestore(err)
		}
	}
	s.torn = false
	return s, nil
}

func asRestore(err *abi.Error) *abi.Error {
	err.Op, err.Code, err.Remedy = "restore", abi.InvalidArgument, restoreRemedy
	return err
}

func (s *State) restoreGraphs(snap Snapshot) *abi.Error {
	for _, in := range snap.Graphs {
		switch {
		case in.ID == "":
			return emptyID(aGraph)
		case s.graphs.get(in.ID) != nil:
			return idTaken(aGraph, string(in.ID))
		}
		s.graphs.set(in.ID, newGraph(in.ID, in.Born))
		s.last.graph = max(s.last.graph, in.Born)
	}
	return nil
}

func (s *State) restoreCreatures(snap Snapshot) *abi.Error {
	for _, in := range snap.Creatures {
		g := s.graphs.get(in.Graph)
		switch {
		case in.ID == "":
			return emptyID(aCreature)
		case in.Name == "":
			return emptyName(aCreature, string(in.ID))
		case s.creatures.get(in.ID) != nil:
			return idTaken(aCreature, string(in.ID))
		case g == nil:
			return notFound(aGraph, string(in.Graph)).With(aCreature, string(in.ID))
		case g.creatureNames.get(in.Name) != nil:
			return nameTaken(aCreature, in.Name, string(g.creatureNames.get(in.Name).id), g)
		}
		c := s.newCreature(in.ID, in.Name)
		c.born, c.parent = in.Born, in.Parent
		c.privileged, c.root, c.stopped, c.paused = in.Privileged, in.Root, in.Stopped, in.Paused
		s.creatures.set(in.ID, c)
		g.attachCreature(c)
		s.last.creature = max(s.last.creature, in.Born)
	}
	return nil
}

func (s *State) restoreChannels(snap Snapshot) *abi.Error {
	for _, in := range snap.Channels {
		g := s.graphs.get(in.Graph)
		switch {
		case in.ID == "":
			return emptyID(aChannel)
		case in.Name == "":
			return emptyName(aChannel, string(in.ID))
		case s.channels.get(in.ID) != nil:
			return idTaken(aChannel, string(in.ID))
		case g == nil:
			return notFound(aGraph, string(in.Graph)).With(aChannel, string(in.ID))
		case g.channelNames.get(in.Name) != nil:
			return nameTaken(aChannel, in.Name, string(g.channelNames.get(in.Name).id), g)
		}
		ch := s.newChannel(in.ID, in.Name)
		ch.born, ch.report = in.Born, in.Report
		s.channels.set(in.ID, ch)
		g.attachChannel(ch)
		s.last.channel = max(s.last.channel, in.Born)
	}
	return nil
}

func (s *State) restoreEdges(snap Snapshot) *abi.Error {
	for _, in := range snap.Edges {
		c, ch := s.creatures.get(in.Creature), s.channels.get(in.Channel)
		switch {
		case c == nil:
			return notFound(aCreature, string(in.Creature)).With(aChannel, string(in.Channel))
		case ch == nil:
			return notFound(aChannel, string(in.Channel)).With(aCreature, string(in.Creature))
		case in.Direction != Listen && in.Direction != Send:
			return badDirection(in.Direction).With(aCreature, string(c.id)).With(aChannel, string(ch.id))
		case c.graph != ch.graph:
			return badEdge(c, ch, "creature %q and channel %q share an edge but not a graph")
		case in.Alias == "":
			return badEdge(c, ch, "an edge of creature %q and channel %q has no alias")
		case s.has(c, ch, in.Direction):
			return badEdge(c, ch, "an edge of creature %q and channel %q occurs twice")
		case in.Direction == Send && c.sending(in.Alias) != nil:
			return aliasTaken(c, in.Alias, c.sending(in.Alias))
		}
		s.last.edge++
		s.switchOn(c, ch, in.Direction, half{in.Alias, s.last.edge})
	}
	return nil
}

func badEdge(c *creature, ch *channel, format string) *abi.Error {
	return failure(abi.InvalidArgument, restoreRemedy, format, c.id, ch.id).
		With(aCreature, string(c.id)).With(aChannel, string(ch.id))
}

// checkWhole checks that a graph has members, and that these and all channels
// with edges are connected.
func checkWhole(g *graph) *abi.Error {
	oldest := g.elders[everyone].first()
	if oldest == nil {
		return failure(abi.InvalidArgument, restoreRemedy, "graph %q has no creature", g.id).
			With(aGraph, string(g.id))
	}
	whole := oldest.stop.tour()
	for _, c := range slices.SortedFunc(g.elders[everyone].items.all(), byAge) {
		if c.stop.tour() != whole {
			return failure(abi.InvalidArgument, restoreRemedy,
				"no path joins creatures %q and %q of graph %q", oldest.id, c.id, g.id).
				With(aGraph, string(g.id)).With(aCreature, string(oldest.id)).With("other", string(c.id))
		}
	}
	return nil
}
