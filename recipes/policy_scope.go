package recipes

import (
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes/policy"
)

// confine limits a policy of a sub-recipe to the members of that sub-recipe: messages on
// their channels and from their creatures, events that involve them, and graphs that have
// any of them.
func (sc *scripts) confine(p *policy.Policy) {
	if sc.parent == nil {
		return
	}
	p.Name = sc.names + p.Name
	m := members{addresses: sc.prefix, species: sc.names}
	p.Match, p.MatchEvent = within(m.send, p.Match), within(m.concern, p.MatchEvent)
}

// within is a condition that is true if both are; a nil inner condition is always true.
func within[E any](outer func(*E) bool, inner func(*E) (bool, error)) func(*E) (bool, error) {
	return func(e *E) (bool, error) {
		if !outer(e) {
			return false, nil
		}
		if inner == nil {
			return true, nil
		}
		return inner(e)
	}
}

// members are the things that a sub-recipe declares, and the creatures spawned from its
// species.
type members struct {
	addresses string // the prefix of their addresses
	species   string // the prefix of the names of their species
}

func (m members) has(address, species string) bool {
	return strings.HasPrefix(address, m.addresses) || strings.HasPrefix(species, m.species)
}

func (m members) send(e *deploy.SendEvent) bool {
	return m.has(e.ChannelAddress, "") || e.SenderDeployment == e.Deployment && m.has(e.SenderAddress, e.SenderSpecies)
}

func (m members) concern(e *deploy.PolicyEvent) bool {
	for _, p := range []*deploy.Party{&e.Caller, &e.Creature, &e.Parent, &e.From, &e.To} {
		if p.Deployment == e.Deployment && m.has(p.Address, p.Species) {
			return true
		}
	}
	declared := func(address string) bool { return m.has(address, "") }
	switch e.Kind {
	case journal.JudgeConnect, journal.JudgeDisconnect:
		return e.Channel.Deployment == e.Deployment && declared(e.Channel.Address)
	case journal.JudgePlan:
		return slices.ContainsFunc(slices.Concat(e.Created, e.Resumed, e.Removed), declared)
	case journal.JudgeMerge:
		return slices.ContainsFunc(e.Graphs, func(g *deploy.GraphView) bool { return m.live(g, e.Deployment) })
	case journal.JudgeSplit:
		return m.live(e.View(), e.Deployment)
	}
	return false
}

// live reports whether a graph has any of the members.
func (m members) live(g *deploy.GraphView, deployment string) bool {
	return slices.ContainsFunc(g.Creatures, func(c deploy.CreatureView) bool {
		return c.Deployment == deployment && m.has(c.Address, c.Species)
	})
}
