package engine

import (
	"cmp"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/ids"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Topology implements [draft.Base], as the methods below do.
func (e locked) Topology() *topology.State { return e.topo }

func (e locked) Member(id journal.CreatureID) (draft.Member, bool) {
	if c := e.creatures[id]; c != nil {
		return c.member(), true
	}
	return draft.Member{}, false
}

// member is a creature as drafts see it.
func (c *creature) member() draft.Member {
	return draft.Member{ID: c.id, Spec: &c.spec, Deployment: c.deployment, Parent: c.parent, Own: c.own, Wires: c.wires}
}

func (e locked) Children(parent journal.CreatureID) []draft.Member {
	var out []draft.Member
	for _, c := range e.children(parent) {
		out = append(out, c.member())
	}
	return out
}

func (e locked) Channel(id journal.ChannelID) (draft.Channel, bool) {
	if ch := e.channels[id]; ch != nil {
		return ch.drafted(), true
	}
	return draft.Channel{}, false
}

// drafted is a channel as drafts see it.
func (ch *channel) drafted() draft.Channel {
	return draft.Channel{ID: ch.id, Label: ch.place().label, Description: ch.description, Deployment: ch.deployment, Address: ch.place().address}
}

func (e locked) WireSource(id journal.WireID) journal.CreatureID {
	if c := e.wires[id]; c != nil {
		return c.id
	}
	return ""
}

func (e locked) Deployment(name string) *deploy.Deployment { return e.deployments[name] }

func (e locked) Deployments(yield func(*deploy.Deployment) bool) {
	for _, d := range e.deployments {
		if !yield(d) {
			return
		}
	}
}

func (e locked) Root(deployment string) journal.CreatureID { return e.roots[deployment] }

func (e locked) Report(deployment string) journal.ChannelID { return e.reports[deployment] }

func (e locked) Species(k draft.Kind) *deploy.SpeciesSpec { return e.species.Spec(k) }

func (e locked) Alive(k draft.Kind) int { return e.species.Alive(k) }

// Members implements [reconcile.Base], as the methods below do.
func (e locked) Members(yield func(draft.Member) bool) {
	for _, c := range e.creatures {
		if !yield(c.member()) {
			return
		}
	}
}

func (e locked) Channels(yield func(draft.Channel) bool) {
	for _, ch := range e.channels {
		if ch.inbox == "" && !yield(ch.drafted()) {
			return
		}
	}
}

func (e locked) Unclaimed(id journal.CreatureID) bool {
	c := e.creatures[id]
	return c != nil && c.husk && c.huskReason == nil
}

// Now implements [draft.Live], as the methods below do.
func (e locked) Now() int64 { return e.wallClock() }

func (e locked) View(id journal.GraphID) *deploy.GraphView {
	g := e.graphs[id]
	if g == nil {
		return nil
	}
	s := g.enter()
	defer s.leave()
	return s.picture()
}

func (e locked) Home(id journal.CreatureID) journal.GraphID {
	if c := e.creatures[id]; c != nil {
		return graphID(&c.home)
	}
	return ""
}

func (e locked) State(id journal.CreatureID) (journal.CreatureState, *journal.RecipeStop) {
	c := e.creatures[id]
	if c == nil {
		return "", nil
	}
	g := c.home.enter()
	if g.none() {
		return "", nil
	}
	defer g.leave()
	return c.lifecycle.condition(), g.spent.Stops.Stopped(c.deployment)
}

func (e locked) Memory(home draft.Home) draft.Memory {
	return &recall.Recollection{Home: func() recall.Cells {
		g := e.graphs[home.Graph]
		if g == nil {
			return nil
		}
		s := g.enter()
		defer s.leave()
		return s.memory
	}}
}

func (e locked) Heard(w *deploy.Words) { e.failed.Heard(w) }

// newDraft starts a draft.
func (e locked) newDraft(o draft.Options) *draft.Draft {
	o.IDs = cmp.Or[draft.IDs](o.IDs, e)
	return draft.New(e, e, o)
}

// NewGraph implements [draft.IDs], as the methods below do. They check that a new id
// is not in use.
func (e locked) NewGraph() journal.GraphID {
	return ids.Fresh(e.ids, "g", func(id journal.GraphID) bool {
		_, ended := e.topo.Current(id)
		return e.graphs[id] != nil || e.saved[id] != nil || ended
	})
}

func (e locked) NewChannel() journal.ChannelID {
	return ids.Fresh(e.ids, "h", func(id journal.ChannelID) bool { return e.channels[id] != nil })
}

func (e locked) NewCreature() journal.CreatureID {
	return ids.Fresh(e.ids, "c", func(id journal.CreatureID) bool { return e.creatures[id] != nil })
}

func (e locked) NewWire() journal.WireID {
	return ids.Fresh(e.ids, "w", func(id journal.WireID) bool { return e.wires[id] != nil })
}
