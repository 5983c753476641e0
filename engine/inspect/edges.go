package inspect

import (
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Connect sets the channels of a creature to those of its edges.
func (s *CreatureStatus) Connect(edges []topology.Edge) {
	s.Listen, s.Send = []journal.ChannelID{}, []journal.ChannelID{}
	s.Aliases = Aliases{Listen: map[string][]journal.ChannelID{}, Send: map[string]journal.ChannelID{}}
	for _, e := range edges {
		if e.Direction == journal.Listen {
			s.Listen = append(s.Listen, e.Channel)
			s.Aliases.Listen[e.Alias] = append(s.Aliases.Listen[e.Alias], e.Channel)
		} else {
			s.Send = append(s.Send, e.Channel)
			s.Aliases.Send[e.Alias] = e.Channel
		}
	}
}

// Connect sets the creatures of a channel to those of its edges.
func (s *ChannelStatus) Connect(edges []topology.Edge) {
	s.Listeners, s.Senders = []journal.CreatureID{}, []journal.CreatureID{}
	for _, e := range edges {
		if e.Direction == journal.Listen {
			s.Listeners = append(s.Listeners, e.Creature)
		} else {
			s.Senders = append(s.Senders, e.Creature)
		}
	}
}
