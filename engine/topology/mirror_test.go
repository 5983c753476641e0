package topology_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// mirror follows a state using only the changes of its deltas, and reports
// steps that do not fit.
type mirror struct {
	creatures map[CreatureID]mirrored
	channels  map[ChannelID]mirrored
	graphs    map[GraphID]bool
	edges     []Edge
}

type mirrored struct {
	name  string
	graph GraphID
}

func newMirror() *mirror {
	return &mirror{map[CreatureID]mirrored{}, map[ChannelID]mirrored{}, map[GraphID]bool{}, nil}
}

func (m *mirror) apply(c Change) error {
	has := func(ok bool, what string) error {
		if ok {
			return nil
		}
		return fmt.Errorf("change %+v: %s", c, what)
	}
	creature, knownCreature := m.creatures[c.Creature]
	channel, knownChannel := m.channels[c.Channel]
	edge := Edge{c.Creature, c.Channel, c.Direction, c.Alias}
	at := slices.Index(m.edges, edge)
	switch c.Kind {
	case CreatureAdded:
		m.creatures[c.Creature] = mirrored{c.Name, c.Graph}
		return has(!knownCreature && m.graphs[c.Graph], "creature known or graph unknown")
	case CreatureRemoved:
		delete(m.creatures, c.Creature)
		wired := slices.ContainsFunc(m.edges, func(e Edge) bool { return e.Creature == c.Creature })
		return has(knownCreature && creature.graph == c.Graph && !wired, "unknown, elsewhere or wired")
	case ChannelAdded:
		m.channels[c.Channel] = mirrored{c.Name, c.Graph}
		return has(!knownChannel && m.graphs[c.Graph], "channel known or graph unknown")
	case ChannelRemoved:
		delete(m.channels, c.Channel)
		wired := slices.ContainsFunc(m.edges, func(e Edge) bool { return e.Channel == c.Channel })
		return has(knownChannel && channel.graph == c.Graph && !wired, "unknown, elsewhere or wired")
	case EdgeAdded:
		m.edges = append(m.edges, edge)
		return has(knownCreature && knownChannel && at < 0, "ends unknown or edge known")
	case EdgeRemoved:
		if at < 0 {
			return has(false, "edge unknown")
		}
		m.edges = slices.Delete(m.edges, at, at+1)
		return nil
	case CreatureMoved:
		m.creatures[c.Creature] = mirrored{creature.name, c.Graph}
		return has(creature.graph == c.From && m.graphs[c.Graph] && c.From != c.Graph, "not there")
	case ChannelMoved:
		m.channels[c.Channel] = mirrored{channel.name, c.Graph}
		return has(channel.graph == c.From && m.graphs[c.Graph] && c.From != c.Graph, "not there")
	case CreatureRenamed:
		m.creatures[c.Creature] = mirrored{c.Name, creature.graph}
		return has(knownCreature && creature.name != c.Name, "unknown or same name")
	case ChannelRenamed:
		m.channels[c.Channel] = mirrored{c.Name, channel.graph}
		return has(knownChannel && channel.name != c.Name, "unknown or same name")
	case GraphAdded:
		known := m.graphs[c.Graph]
		m.graphs[c.Graph] = true
		return has(!known, "graph known")
	case GraphEnded:
		known := m.graphs[c.Graph]
		delete(m.graphs, c.Graph)
		return has(known && (c.Into == "" || m.graphs[c.Into]), "graph unknown")
	case FlagsChanged:
		return has(knownCreature, "creature unknown")
	}
	return has(false, "unknown kind")
}

// equals compares with a snapshot: everything but flags and creation numbers.
func (m *mirror) equals(s Snapshot) error {
	creatures, channels, graphs := map[CreatureID]mirrored{}, map[ChannelID]mirrored{}, map[GraphID]bool{}
	for _, c := range s.Creatures {
		creatures[c.ID] = mirrored{c.Name, c.Graph}
	}
	for _, ch := range s.Channels {
		channels[ch.ID] = mirrored{ch.Name, ch.Graph}
	}
	for _, g := range s.Graphs {
		graphs[g.ID] = true
	}
	switch {
	case !maps.Equal(m.creatures, creatures):
		return fmt.Errorf("mirror has creatures %v, state %v", m.creatures, creatures)
	case !maps.Equal(m.channels, channels):
		return fmt.Errorf("mirror has channels %v, state %v", m.channels, channels)
	case !maps.Equal(m.graphs, graphs):
		return fmt.Errorf("mirror has graphs %v, state %v", m.graphs, graphs)
	case !slices.Equal(m.edges, s.Edges):
		return fmt.Errorf("mirror has edges %v, state %v", m.edges, s.Edges)
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
