package topology

// node is what the spanning forest sees of a creature or a channel. Exactly one
// of creature and channel is set.
type node struct {
	links    []*link // first those of the spanning tree, then the spare ones
	trees    int     // how many are of the tree
	stop     stop
	creature *creature
	channel  *channel
}

type creature struct {
	node
	id         CreatureID
	name       string
	graph      *graph
	born       uint64
	parent     CreatureID
	privileged bool
	root       bool
	stopped    bool
	index      *index[string, *link] // by send alias; nil while links are few
	at         [ranks]int            // positions in the graph's lists of elders
}

type channel struct {
	node
	id        ChannelID
	name      string
	graph     *graph
	born      uint64
	report    bool
	at        int // position in graph.channels
	senders   int
	listeners int
	index     *index[CreatureID, *link] // nil while links are few
}

// half is one direction of a link: an edge, if seq is not zero.
type half struct {
	alias string
	seq   uint64 // rising with every edge of the state
}

// link joins a creature and a channel by one or two edges.
type link struct {
	creature   *creature
	channel    *channel
	listen     half
	send       half
	atCreature int // position in creature.links
	atChannel  int // position in channel.links

	tied        bool // it is of the spanning tree
	there, back stop // its stops in the tour then
}

type graph struct {
	id            GraphID
	born          uint64
	elders        [ranks]elders
	channels      []*channel
	creatureNames names[*creature]
	channelNames  names[*channel]
	past          *ancestry // the ids that became part of it; nil if none did
}

func (s *State) newCreature(id CreatureID, name string) *creature {
	c := &creature{id: id, name: name}
	c.node.creature = c
	c.stop = s.newStop(&c.node)
	return c
}

func (s *State) newChannel(id ChannelID, name string) *channel {
	ch := &channel{id: id, name: name}
	ch.node.channel = ch
	ch.stop = s.newStop(&ch.node)
	return ch
}

func newGraph(id GraphID, born uint64) *graph {
	return &graph{id: id, born: born}
}

func (l *link) half(d Direction) *half {
	if d == Send {
		return &l.send
	}
	return &l.listen
}

func (h *half) on() bool { return h.seq != 0 }

// far returns the end of l that is not n.
func (l *link) far(n *node) *node {
	if n.creature != nil {
		return &l.channel.node
	}
	return &l.creature.node
}

// position returns where l notes its position in n.links.
func (l *link) position(n *node) *int {
	if n.creature != nil {
		return &l.atCreature
	}
	return &l.atChannel
}

// alone reports whether n is a tree by itself.
func (n *node) alone() bool { return n.trees == 0 }

func (n *node) markSpare() {
	if spare := len(n.links) > n.trees; spare != n.stop.spare {
		n.stop.setSpare(spare)
	}
}

// add adds a link as a spare one.
func (n *node) add(l *link) {
	*l.position(n) = len(n.links)
	n.links = append(n.links, l)
}

// remove removes a spare link.
func (n *node) remove(l *link) {
	last := len(n.links) - 1
	n.swap(*l.position(n), last)
	n.links[last] = nil
	n.links = n.links[:last]
}

// promote makes a spare link one of the tree; demote does the reverse.
func (n *node) promote(l *link) {
	n.swap(*l.position(n), n.trees)
	n.trees++
}

func (n *node) demote(l *link) {
	n.trees--
	n.swap(*l.position(n), n.trees)
}

func (n *node) swap(i, j int) {
	a, b := n.links[i], n.links[j]
	n.links[i], n.links[j] = b, a
	*a.position(n), *b.position(n) = j, i
}

func (g *graph) size() int { return len(g.elders[everyone].items) }

func (g *graph) attachCreature(c *creature) {
	c.graph = g
	g.creatureNames.set(c.name, c)
	g.elders[everyone].add(everyone, c)
	if c.privileged {
		g.elders[privileged].add(privileged, c)
	}
	if c.root {
		g.elders[roots].add(roots, c)
	}
}

func (g *graph) detachCreature(c *creature) {
	g.creatureNames.remove(c.name)
	g.elders[everyone].remove(everyone, c)
	if c.privileged {
		g.elders[privileged].remove(privileged, c)
	}
	if c.root {
		g.elders[roots].remove(roots, c)
	}
}

func (g *graph) attachChannel(ch *channel) {
	ch.graph = g
	g.channelNames.set(ch.name, ch)
	ch.at = len(g.channels)
	g.channels = append(g.channels, ch)
}

func (g *graph) detachChannel(ch *channel) {
	g.channelNames.remove(ch.name)
	last := len(g.channels) - 1
	moved := g.channels[last]
	g.channels[ch.at], moved.at = moved, ch.at
	g.channels[last] = nil
	g.channels = g.channels[:last]
}
