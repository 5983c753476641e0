package tools

import (
	"fmt"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// The bounds on the list of alternatives in an error. A refused call is cheap, so its
// cost must not grow with the graph.
const (
	maxAlternatives = 8
	maxCompared     = 1000
)

// alternative is something that a call could have named.
type alternative struct{ name, id string }

// listed lists some of the total number of alternatives, beginning with those whose names
// resemble ref.
func listed(ref string, some []alternative, total int) string {
	nearest := errtext.Nearest(ref, maxAlternatives, some, func(a alternative) string { return a.name })
	out := make([]string, 0, len(nearest))
	for _, a := range nearest {
		out = append(out, fmt.Sprintf("%s (%s)", errtext.Quoted([]byte(a.name)), errtext.PlainID(a.id)))
	}
	return errtext.AndMore(out, total)
}

// otherCreatures is the remedy for a call that has named no member of the graph. A worker
// gets only the members that it may send to.
func (s *Stage) otherCreatures(ref string) string {
	if !s.Topology().IsPrivileged(s.caller.ID) {
		return "send on a channel, or to a privileged creature" + s.privilegedOnes(ref)
	}
	some, _ := s.Topology().Some(s.home(), maxCompared)
	total, _ := s.Topology().Size(s.home())
	return "use the id or name of a member of the graph: " + listed(ref, members(some), total) + "; group_status lists them all"
}

// privilegedOnes lists the members that any creature may send to.
func (s *Stage) privilegedOnes(ref string) string {
	some, total := s.Topology().SomePrivileged(s.home(), maxCompared)
	if total == 0 {
		return "; there is none in this graph"
	}
	return ": " + listed(ref, members(some), total)
}

func members(some []topology.Creature) (all []alternative) {
	for i := range some {
		all = append(all, alternative{some[i].Name, string(some[i].ID)})
	}
	return all
}

// otherChannels is the remedy for a call that has named no channel of the graph.
func (s *Stage) otherChannels(ref string) string {
	var all []alternative
	_, some := s.Topology().Some(s.home(), maxCompared)
	for i := range some {
		all = append(all, alternative{some[i].Name, string(some[i].ID)})
	}
	if len(all) == 0 {
		return "create one with group_channel; this graph has no channel"
	}
	_, total := s.Topology().Size(s.home())
	return "use the id or name of a channel of the graph: " + listed(ref, all, total) + "; group_status lists them all"
}

// sendsOn lists the channels that a creature sends on, by alias.
func sendsOn(ref string, edges []topology.Edge) string {
	var some []alternative
	total := 0
	for _, e := range edges {
		if e.Direction != journal.Send {
			continue
		}
		if total++; total <= maxCompared {
			some = append(some, alternative{e.Alias, string(e.Channel)})
		}
	}
	if total == 0 {
		return "it sends on no channel yet"
	}
	out := "it sends on " + listed(ref, some, total)
	if total > maxAlternatives {
		out += ", listed in its awareness document"
	}
	return out
}
