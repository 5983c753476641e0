package engine

import (
	"cmp"
	"slices"
)

// describe writes the awareness document of a member, without its revision. It
// reads nothing but the graph, whose mu the caller holds.
func (g *graph) describe(c *creature) *Awareness {
	in, out := g.awareWires(c)
	a := &Awareness{
		Self:     g.describeSelf(c),
		Channels: g.describeChannels(c),
		Wires:    AwareWires{In: truncate(in, maxAwareWires), Out: truncate(out, maxAwareWires)},
		Tools:    toolsOf(c),
		Graph:    AwareGraph{ID: g.id},
	}
	if c.privileged {
		members, channels, spawnable := g.describeMembers(), g.describeDeclarations(), truncate(spawnableOf(c), maxAwareSpecies)
		a.Graph.Members, a.Graph.Channels, a.Graph.Spawnable = &members, &channels, &spawnable
	}
	return a
}

// awareWires lists the output wires to and from a creature, those of elder creatures
// first.
func (g *graph) awareWires(c *creature) (in, out []AwareWire) {
	from, to := g.wiresOf(c)
	return g.describeWires(to), g.describeWires(from)
}

func (g *graph) describeWires(list []OutputWire) []AwareWire {
	var out []AwareWire
	for i := range list {
		w := &list[i]
		out = append(out, AwareWire{ID: string(w.ID), Source: g.peer(w.From), Target: g.peer(w.To)})
	}
	return out
}

// peer is a creature as documents name it. One that has gone, or the root, has no
// name.
func (g *graph) peer(id CreatureID) AwarePeer {
	p := AwarePeer{ID: id}
	if c := g.creatures[id]; c != nil {
		p.Name = c.name
	}
	return p
}

// spawnableOf lists what a privileged creature may have spawned. A deployment's
// species stay as they are, so they are read without the mutation lock.
func spawnableOf(c *creature) []AwareSpecies {
	list, _ := c.engine().spawnable.Load(c.deployment)
	out, _ := list.([]AwareSpecies)
	return out
}

// toolsOf lists the group tools that a creature may call.
func toolsOf(c *creature) []string {
	out := []string{}
	for i := range tools {
		if f := &tools[i]; c.privileged || !f.privileged {
			out = append(out, f.name)
		}
	}
	return out
}

func (g *graph) describeSelf(c *creature) AwareSelf {
	self := AwareSelf{
		ID: c.id, Name: c.name, Deployment: c.deployment, Address: c.spec.Address, Species: c.spec.Species,
		Privileged: c.privileged, Root: c.root, State: c.condition(),
	}
	if c.parent != "" {
		self.Parent = &AwarePeer{ID: c.parent}
		if p := g.creatures[c.parent]; p != nil {
			self.Parent.Name = p.name
		}
	}
	return self
}

// condition is the state of a creature as awareness documents have it: that it
// pauses before another attempt is gone too soon to be worth a revision.
func (c *creature) condition() string {
	switch {
	case c.quarantined:
		return "quarantined"
	case c.stopped:
		return "stopped"
	}
	return "running"
}

// describeChannels lists the channels that a creature has an edge to.
func (g *graph) describeChannels(c *creature) AwareList[AwareChannel] {
	listen, send := map[*channel]string{}, map[*channel]string{}
	all := eldest[*channel]{max: maxAwareChannels, compare: elderChannel}
	for _, s := range c.mb.sources {
		if s.ch != nil && s.ch.inbox == "" {
			listen[s.ch] = s.alias
			all.add(s.ch)
		}
	}
	for _, e := range c.wiring.Load().sends {
		if _, both := listen[e.ch]; !both {
			all.add(e.ch)
		}
		send[e.ch] = e.alias
	}
	return listOf(&all, func(ch *channel) AwareChannel {
		return AwareChannel{
			ID: ch.id, Name: ch.name, Description: ch.brief(), Report: ch.report, Listen: listen[ch], Send: send[ch],
			Listeners: describePeers(c, ch.listeners()), Senders: describePeers(c, slices.Values(ch.senders)),
		}
	})
}

// listeners are the creatures that listen on the channel; outside readers are
// nobody's business.
func (ch *channel) listeners() func(yield func(*creature) bool) {
	return func(yield func(*creature) bool) {
		for _, s := range ch.sources {
			if s.mb.creature != nil && !yield(s.mb.creature) {
				return
			}
		}
	}
}

// brief is the description, cut where it is too long.
func (ch *channel) brief() string {
	return cut(ch.description, maxAwareDescription)
}

// describePeers lists the creatures on a channel that c may know of, and counts
// those that it is not told of. It is not told of itself.
func describePeers(c *creature, all func(yield func(*creature) bool)) AwareList[AwarePeer] {
	known := eldest[*creature]{max: maxAwarePeers, compare: elderCreature}
	hidden := 0
	for other := range all {
		switch {
		case other == c:
		case c.mayKnow(other):
			known.add(other)
		default:
			hidden++
		}
	}
	list := listOf(&known, func(p *creature) AwarePeer { return AwarePeer{p.id, p.name} })
	list.Total += hidden
	return list
}

// mayKnow reports whether a creature is told of another on its channels.
func (c *creature) mayKnow(other *creature) bool {
	return c.privileged || other.privileged || other.id == c.parent
}

func (g *graph) describeMembers() AwareList[AwareMember] {
	all := eldest[*creature]{max: maxAwareMembers, compare: elderCreature}
	for _, c := range g.creatures {
		all.add(c)
	}
	return listOf(&all, func(c *creature) AwareMember {
		return AwareMember{
			ID: c.id, Name: c.name, Deployment: c.deployment, Address: c.spec.Address, Species: c.spec.Species,
			Privileged: c.privileged, Root: c.root, Parent: c.parent, State: c.condition(),
		}
	})
}

func (g *graph) describeDeclarations() AwareList[AwareDeclaration] {
	all := eldest[*channel]{max: maxAwareDeclarations, compare: elderChannel}
	for _, ch := range g.channels {
		if ch.inbox == "" {
			all.add(ch)
		}
	}
	return listOf(&all, func(ch *channel) AwareDeclaration {
		listeners := 0
		for range ch.listeners() {
			listeners++
		}
		return AwareDeclaration{
			ID: ch.id, Name: ch.name, Address: ch.address, Description: ch.brief(), Report: ch.report,
			Listeners: listeners, Senders: len(ch.senders),
		}
	})
}

// elderCreature and elderChannel order by age, which a session keeps: the same
// graph is described in the same order after a restart.
func elderCreature(a, b *creature) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}

func elderChannel(a, b *channel) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}

// eldest keeps the first few of many, in order, without sorting them all.
type eldest[T any] struct {
	max     int
	compare func(a, b T) int
	list    []T
	total   int
}

func (e *eldest[T]) add(x T) {
	e.total++
	if len(e.list) == e.max {
		if e.compare(x, e.list[e.max-1]) >= 0 {
			return
		}
		e.list = e.list[:e.max-1]
	}
	at, _ := slices.BinarySearchFunc(e.list, x, e.compare)
	e.list = slices.Insert(e.list, at, x)
}

// listOf describes what was kept.
func listOf[T, D any](e *eldest[T], describe func(T) D) AwareList[D] {
	out := AwareList[D]{Total: e.total, Items: make([]D, len(e.list)), Truncated: e.total - len(e.list)}
	for i, x := range e.list {
		out.Items[i] = describe(x)
	}
	return out
}

// truncate makes a list of what is in order already.
func truncate[T any](items []T, most int) AwareList[T] {
	shown := orEmpty(items[:min(len(items), most)])
	return AwareList[T]{Total: len(items), Items: shown, Truncated: len(items) - len(shown)}
}
