package engine

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/tools"
)

// describe builds the awareness document of a member, without its revision. It reads
// nothing but the graph.
func (g section) describe(c *creature) *outlook.Awareness {
	in, out := g.awareWires(c)
	a := &outlook.Awareness{
		Self:     g.describeSelf(c),
		Channels: g.describeChannels(c),
		Wires:    outlook.AwareWires{In: outlook.Truncate(in, outlook.MaxWires), Out: outlook.Truncate(out, outlook.MaxWires)},
		Tools:    tools.For(c.privileged),
		Graph:    outlook.AwareGraph{ID: g.id},
	}
	if c.privileged {
		members, channels, spawnable := g.describeMembers(), g.describeDeclarations(), outlook.Truncate(spawnableOf(c), outlook.MaxSpecies)
		a.Graph.Members, a.Graph.Channels, a.Graph.Spawnable = &members, &channels, &spawnable
	}
	return a
}

// awareWires lists the output wires to and from a creature, those of elder sources first.
func (g section) awareWires(c *creature) (in, out []outlook.AwareWire) {
	from, to := g.wiresOf(c)
	return g.describeWires(to), g.describeWires(from)
}

func (g section) describeWires(list []journal.OutputWire) []outlook.AwareWire {
	var out []outlook.AwareWire
	for i := range list {
		w := &list[i]
		out = append(out, outlook.AwareWire{ID: string(w.ID), Source: g.peer(w.From), Target: g.peer(w.To)})
	}
	return out
}

// peer is a creature as documents name it. A removed creature, or the root, has no name.
func (g section) peer(id journal.CreatureID) outlook.AwarePeer {
	p := outlook.AwarePeer{ID: id}
	if c := g.creatures[id]; c != nil {
		p.Name = c.name
	}
	return p
}

// spawnableOf lists what a privileged creature may spawn. The species of a deployment
// never change, so they are read without the mutation lock.
func spawnableOf(c *creature) []outlook.AwareSpecies {
	list, _ := c.engine().spawnable.Load(c.deployment)
	out, _ := list.([]outlook.AwareSpecies)
	return out
}

func (g section) describeSelf(c *creature) outlook.AwareSelf {
	self := outlook.AwareSelf{
		ID: c.id, Name: c.name, Description: c.purpose(), Deployment: c.deployment, Address: c.spec.Address, Species: c.spec.Species,
		Privileged: c.privileged, Root: c.root, State: c.condition(g),
	}
	if c.parent != "" {
		self.Parent = &outlook.AwarePeer{ID: c.parent}
		if p := g.creatures[c.parent]; p != nil {
			self.Parent.Name = p.name
		}
	}
	return self
}

// describeChannels lists the channels on which a creature has an edge.
func (g section) describeChannels(c *creature) outlook.AwareList[outlook.AwareChannel] {
	listen, send := map[*channel]string{}, map[*channel]string{}
	all := outlook.Oldest[*channel]{Max: outlook.MaxChannels, Compare: olderChannel}
	for _, s := range c.mb.feeds {
		if s.ch != nil && s.ch.inbox == "" {
			listen[s.ch] = s.alias
			all.Add(s.ch)
		}
	}
	for _, e := range c.wiring.Load().sends {
		if _, both := listen[e.ch]; !both {
			all.Add(e.ch)
		}
		send[e.ch] = e.alias
	}
	return outlook.ListOf(&all, func(ch *channel) outlook.AwareChannel {
		return outlook.AwareChannel{
			ID: ch.id, Name: ch.name, Description: ch.brief(), Report: ch.report, Listen: listen[ch], Send: send[ch],
			Listeners: describePeers(c, ch.listeners()), Senders: describePeers(c, slices.Values(ch.senders)),
		}
	})
}

// listeners are the creatures that listen on the channel. Documents do not show outside readers.
func (ch *channel) listeners() func(yield func(*creature) bool) {
	return func(yield func(*creature) bool) {
		for _, s := range ch.feeds {
			if s.mb.creature != nil && !yield(s.mb.creature) {
				return
			}
		}
	}
}

// brief is the description, cut if it is too long.
func (ch *channel) brief() string { return errtext.Cut(ch.description, outlook.MaxDescription) }

func (c *creature) purpose() string { return errtext.Cut(c.spec.Description, outlook.MaxDescription) }

// describePeers lists the creatures on a channel that c may know of, and counts the
// others. It leaves out c itself.
func describePeers(c *creature, all func(yield func(*creature) bool)) outlook.AwareList[outlook.AwarePeer] {
	known := outlook.Oldest[*creature]{Max: outlook.MaxPeers, Compare: olderCreature}
	hidden := 0
	for other := range all {
		switch {
		case other == c:
		case c.mayKnow(other):
			known.Add(other)
		default:
			hidden++
		}
	}
	list := outlook.ListOf(&known, func(p *creature) outlook.AwarePeer { return outlook.AwarePeer{ID: p.id, Name: p.name} })
	list.Total += hidden
	return list
}

// mayKnow reports whether a creature may know of another creature on its channels.
func (c *creature) mayKnow(other *creature) bool {
	return c.privileged || other.privileged || other.id == c.parent
}

func (g section) describeMembers() outlook.AwareList[outlook.AwareMember] {
	all := outlook.Oldest[*creature]{Max: outlook.MaxMembers, Compare: olderCreature}
	for _, c := range g.creatures {
		all.Add(c)
	}
	return outlook.ListOf(&all, func(c *creature) outlook.AwareMember {
		return outlook.AwareMember{
			ID: c.id, Name: c.name, Description: c.purpose(), Deployment: c.deployment, Address: c.spec.Address, Species: c.spec.Species,
			Privileged: c.privileged, Root: c.root, Parent: c.parent, State: c.condition(g),
		}
	})
}

func (g section) describeDeclarations() outlook.AwareList[outlook.AwareDeclaration] {
	all := outlook.Oldest[*channel]{Max: outlook.MaxDeclarations, Compare: olderChannel}
	for _, ch := range g.channels {
		if ch.inbox == "" {
			all.Add(ch)
		}
	}
	return outlook.ListOf(&all, func(ch *channel) outlook.AwareDeclaration {
		listeners := 0
		for range ch.listeners() {
			listeners++
		}
		return outlook.AwareDeclaration{
			ID: ch.id, Name: ch.name, Address: ch.place().address, Description: ch.brief(), Report: ch.report,
			Listeners: listeners, Senders: len(ch.senders),
		}
	})
}

// olderCreature and olderChannel order by age. A session keeps ages, so the same graph
// is described in the same order after a restart.
func olderCreature(a, b *creature) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}

func olderChannel(a, b *channel) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}
