package topology

import (
	"cmp"
	"slices"
)

// Creature returns a copy of a creature's data; ok is false if there is no
// such creature.
func (s *State) Creature(id CreatureID) (c Creature, ok bool) {
	n := s.creatures.get(id)
	if n == nil {
		return Creature{}, false
	}
	c = n.describe()
	c.Edges = edgesOf(&n.node)
	return c, true
}

// Channel returns a copy of a channel's data; ok is false if there is no such
// channel.
func (s *State) Channel(id ChannelID) (ch Channel, ok bool) {
	n := s.channels.get(id)
	if n == nil {
		return Channel{}, false
	}
	ch = n.describe()
	ch.Edges = edgesOf(&n.node)
	return ch, true
}

// Graph returns a copy of a graph's data; ok is false if no live graph has
// that id. The cost grows with the graph.
func (s *State) Graph(id GraphID) (g Graph, ok bool) {
	n := s.graphs.get(id)
	if n == nil {
		return Graph{}, false
	}
	g = Graph{ID: n.id, Born: n.born}
	for _, c := range slices.SortedFunc(n.elders[everyone].items.all(), byAge) {
		g.Creatures = append(g.Creatures, c.id)
	}
	for _, ch := range slices.SortedFunc(n.channels.all(), byChannelAge) {
		g.Channels = append(g.Channels, ch.id)
	}
	return g, true
}

// Born returns when a live graph began (see [Graph]); ok is false if no live graph has
// that id.
func (s *State) Born(id GraphID) (born uint64, ok bool) {
	g := s.graphs.get(id)
	if g == nil {
		return 0, false
	}
	return g.born, true
}

// Roots returns the roots of a live graph, oldest first.
func (s *State) Roots(id GraphID) (ids []CreatureID) {
	if g := s.graphs.get(id); g != nil {
		for _, c := range slices.SortedFunc(g.elders[roots].items.all(), byAge) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// Some returns some of the creatures and channels of a live graph, oldest first and
// without their edges. The parameter most limits the number of creatures, and that of
// channels. The cost does not grow with the graph. As long as no creature has been
// removed, the creatures are the oldest ones. [State.Size] returns the total numbers.
func (s *State) Some(id GraphID, most int) (creatures []Creature, channels []Channel) {
	if g := s.graphs.get(id); g != nil {
		creatures = g.elders[everyone].some(most)
		for _, ch := range slices.SortedFunc(g.channels.some(most), byChannelAge) {
			channels = append(channels, ch.describe())
		}
	}
	return creatures, channels
}

// SomePrivileged is Some for the privileged creatures of a graph. total is the number of
// all of them.
func (s *State) SomePrivileged(id GraphID, most int) (creatures []Creature, total int) {
	if g := s.graphs.get(id); g != nil {
		return g.elders[privileged].some(most), g.elders[privileged].items.size
	}
	return nil, 0
}

// GraphOf returns the graph of a creature, or "" if there is no such creature.
func (s *State) GraphOf(id CreatureID) GraphID {
	if c := s.creatures.get(id); c != nil {
		return c.graph.id
	}
	return ""
}

// IsRoot reports whether a creature exists and is marked as a root.
func (s *State) IsRoot(id CreatureID) bool {
	c := s.creatures.get(id)
	return c != nil && c.root
}

// IsPrivileged reports whether a creature exists and is privileged.
func (s *State) IsPrivileged(id CreatureID) bool {
	c := s.creatures.get(id)
	return c != nil && c.privileged
}

// Elder returns the representative of a graph, or of its successor: its oldest
// root, else its oldest privileged member, else its oldest member. It becomes
// the parent of creatures that join without one.
func (s *State) Elder(g GraphID) CreatureID {
	graph := s.live(g)
	if graph == nil {
		return ""
	}
	for _, r := range []rank{roots, privileged, everyone} {
		if c := graph.elders[r].first(); c != nil {
			return c.id
		}
	}
	return ""
}

// ChannelGraph returns the graph of a channel, or "" if there is no such
// channel.
func (s *State) ChannelGraph(id ChannelID) GraphID {
	if ch := s.channels.get(id); ch != nil {
		return ch.graph.id
	}
	return ""
}

// Graphs returns the ids of all live graphs, oldest first.
func (s *State) Graphs() []GraphID {
	ids := make([]GraphID, 0, s.graphs.count)
	for _, g := range slices.SortedFunc(s.graphs.values(), byGraphAge) {
		ids = append(ids, g.id)
	}
	return ids
}

// Creatures returns the ids of all creatures, oldest first.
func (s *State) Creatures() []CreatureID {
	ids := make([]CreatureID, 0, s.creatures.count)
	for _, c := range slices.SortedFunc(s.creatures.values(), byAge) {
		ids = append(ids, c.id)
	}
	return ids
}

// Counts returns how many creatures, channels and live graphs there are.
func (s *State) Counts() (creatures, channels, graphs int) {
	return s.creatures.count, s.channels.count, s.graphs.count
}

// Size returns how many creatures and channels a live graph has; both are zero
// if there is no such graph.
func (s *State) Size(id GraphID) (creatures, channels int) {
	if g := s.graphs.get(id); g != nil {
		return g.size(), g.channels.size
	}
	return 0, 0
}

// FindCreature finds a creature of a live graph by its name.
func (s *State) FindCreature(g GraphID, name string) (CreatureID, bool) {
	if g := s.graphs.get(g); g != nil {
		if c := g.creatureNames.get(name); c != nil {
			return c.id, true
		}
	}
	return "", false
}

// FindChannel finds a channel of a live graph by its name.
func (s *State) FindChannel(g GraphID, name string) (ChannelID, bool) {
	if g := s.graphs.get(g); g != nil {
		if ch := g.channelNames.get(name); ch != nil {
			return ch.id, true
		}
	}
	return "", false
}

// Current returns the live graph that id is, or has become part of by merges.
// ok is false for an id that was not used since the state was made, and if the
// last member of its successor has been removed.
func (s *State) Current(id GraphID) (current GraphID, ok bool) {
	if g := s.live(id); g != nil {
		return g.id, true
	}
	return "", false
}

// Connected returns the channels on which from may send and to listens, oldest
// first.
func (s *State) Connected(from, to CreatureID) []ChannelID {
	a, b := s.creatures.get(from), s.creatures.get(to)
	if a == nil || b == nil {
		return nil
	}
	var ids []ChannelID
	for _, ch := range s.leading(a, b) {
		ids = append(ids, ch.id)
	}
	return ids
}

// leading is Connected on nodes. It scans the links of the creature that has
// fewer.
func (s *State) leading(from, to *creature) []*channel {
	one, other, does, mustDo := from, to, Send, Listen
	if len(to.links) < len(from.links) {
		one, other, does, mustDo = to, from, Listen, Send
	}
	var found []*channel
	for _, a := range one.links {
		if !a.link.half(does).on() {
			continue
		}
		if l := other.linkTo(a.to); l != nil && l.half(mustDo).on() {
			found = append(found, l.channel)
		}
	}
	slices.SortFunc(found, byChannelAge)
	return found
}

// has reports whether there is an edge.
func (s *State) has(c *creature, ch *channel, d Direction) bool {
	l := c.link(ch)
	return l != nil && l.half(d).on()
}

func (c *creature) describe() Creature {
	return Creature{
		ID: c.id, Name: c.name, Graph: c.graph.id, Born: c.born, Parent: c.parent,
		Privileged: c.privileged, Root: c.root, Stopped: c.stopped, Paused: c.paused,
	}
}

func (ch *channel) describe() Channel {
	return Channel{ID: ch.id, Name: ch.name, Graph: ch.graph.id, Born: ch.born, Report: ch.report}
}

// edge is an [Edge] with the data needed to sort and change it.
type edge struct {
	link      *link
	direction Direction
}

func (e edge) half() *half { return e.link.half(e.direction) }

func (e edge) describe() Edge {
	return Edge{
		Creature: e.link.creature.id, Channel: e.link.channel.id,
		Direction: e.direction, Alias: e.half().alias,
	}
}

// edges returns the edges of n in the order in which they were added.
func (n *node) edges() []edge {
	found := n.appendEdges(make([]edge, 0, 2*len(n.links)))
	slices.SortFunc(found, byOrder)
	return found
}

func (n *node) appendEdges(list []edge) []edge {
	for _, a := range n.links {
		l := a.link
		if l.listen.on() {
			list = append(list, edge{l, Listen})
		}
		if l.send.on() {
			list = append(list, edge{l, Send})
		}
	}
	return list
}

func byOrder(a, b edge) int { return cmp.Compare(a.half().seq, b.half().seq) }

func edgesOf(n *node) []Edge {
	if len(n.links) == 0 {
		return nil
	}
	var list []Edge
	for _, e := range n.edges() {
		list = append(list, e.describe())
	}
	return list
}
