// Package lookup finds graphs and their members by ids and names.
package lookup

import (
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Creature finds a creature by its id, or by a name that is unique in the given graph or,
// without one, in all graphs.
func Creature(s *topology.State, g journal.GraphID, name string) (journal.CreatureID, error) {
	if _, ok := s.Creature(journal.CreatureID(name)); ok {
		return journal.CreatureID(name), nil
	}
	return byName(s, "creature", g, name, s.FindCreature)
}

// Channel finds a channel, as Creature finds a creature.
func Channel(s *topology.State, g journal.GraphID, name string) (journal.ChannelID, error) {
	if _, ok := s.Channel(journal.ChannelID(name)); ok {
		return journal.ChannelID(name), nil
	}
	return byName(s, "channel", g, name, s.FindChannel)
}

// Graph finds a graph by its id, by an id that it had before a merge, or by the name of a
// creature in it.
func Graph(s *topology.State, name string) (journal.GraphID, error) {
	if now, ok := s.Current(journal.GraphID(name)); ok {
		return now, nil
	}
	c, err := Creature(s, "", name)
	if abi.CodeOf(err) == abi.NotFound {
		return "", errtext.Gone("graph", name)
	}
	return s.GraphOf(c), err
}

func byName[T ~string](s *topology.State, what string, g journal.GraphID, name string, find func(journal.GraphID, string) (T, bool)) (T, error) {
	graphs := s.Graphs()
	if g != "" {
		now, _ := s.Current(g)
		graphs = []journal.GraphID{now}
	}
	var found []T
	for _, id := range graphs {
		if x, ok := find(id, name); ok {
			found = append(found, x)
		}
	}
	return errtext.TheOnly(what, name, found)
}
