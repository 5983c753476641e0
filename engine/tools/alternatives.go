package tools

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// maxAlternatives bounds the list in an error of what a call could have named.
const maxAlternatives = 8

// alternative is something that a call could have named.
type alternative struct{ name, id string }

// listed lists alternatives, those first whose names are like what the call named.
func listed(ref string, all []alternative) string {
	errtext.NearestFirst(ref, all, func(a alternative) string { return a.name })
	var out []string
	for i, a := range all {
		if i == maxAlternatives {
			out = append(out, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		out = append(out, fmt.Sprintf("%s (%s)", errtext.Quoted([]byte(a.name)), errtext.PlainID(a.id)))
	}
	return strings.Join(out, ", ")
}

// otherCreatures is the remedy for a call that has named no member of the graph. A worker
// gets only the members that it may send to.
func (s *Stage) otherCreatures(ref string) string {
	if !s.Topology().IsPrivileged(s.caller.ID) {
		return "send on a channel, or to a privileged creature" + s.privilegedOnes(ref)
	}
	remedy := "use the id or name of a member of the graph: " + listed(ref, s.members(func(topology.Creature) bool { return true }))
	return remedy + "; group_status lists them all"
}

// privilegedOnes lists the members that any creature may send to.
func (s *Stage) privilegedOnes(ref string) string {
	all := s.members(func(c topology.Creature) bool { return c.Privileged && c.ID != s.caller.ID })
	if len(all) == 0 {
		return "; there is none in this graph"
	}
	return ": " + listed(ref, all)
}

func (s *Stage) members(which func(topology.Creature) bool) (all []alternative) {
	g, _ := s.Topology().Graph(s.home())
	for _, id := range g.Creatures {
		if c, _ := s.Topology().Creature(id); which(c) {
			all = append(all, alternative{c.Name, string(id)})
		}
	}
	return all
}

// otherChannels is the remedy for a call that has named no channel of the graph.
func (s *Stage) otherChannels(ref string) string {
	var all []alternative
	g, _ := s.Topology().Graph(s.home())
	for _, id := range g.Channels {
		ch, _ := s.Topology().Channel(id)
		all = append(all, alternative{ch.Name, string(id)})
	}
	if len(all) == 0 {
		return "create one with group_channel; this graph has no channel"
	}
	return "use the id or name of a channel of the graph: " + listed(ref, all) + "; group_status lists them all"
}

// sendsOn lists the channels that a creature sends on, by alias.
func sendsOn(ref string, edges []topology.Edge) string {
	var all []alternative
	for _, e := range edges {
		if e.Direction == journal.Send {
			all = append(all, alternative{e.Alias, string(e.Channel)})
		}
	}
	if len(all) == 0 {
		return "it sends on no channel yet"
	}
	out := "it sends on " + listed(ref, all)
	if len(all) > maxAlternatives {
		out += ", listed in its awareness document"
	}
	return out
}
