package topology

// node is a creature or a channel in the spanning forest. Exactly one of
// creature and channel is set.
type node struct {
	links    []arm // tree links first, then spare links
	trees    int   // how many are tree links
	stop     stop
	creature *creature
	channel  *channel
}

// Most creatures and channels have no more links than this. These are kept in
// the node itself, without an allocation and close in memory.
const (
	creatureRoom = 4
	channelRoom  = 2
)

// arm is a link as seen from one end. It stores the other end, so that a
// search for a neighbour does not have to read every link.
type arm struct {
	link *link
	to   *node
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
	paused     bool
	index      *index[string, *link] // by send alias; nil while links are few
	at         [ranks]int            // positions in the graph's heaps of elders
	room       [creatureRoom]arm     // for links, until there are more
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
	room      [channelRoom]arm          // for links, until there are more
}

// half is one direction of a link: an edge, if seq is not zero.
type half struct {
	alias string
	seq   uint64 // rises with every edge of the state
}

// link joins a creature and a channel by one or two edges.
type link struct {
	creature   *creature
	channel    *channel
	listen     half
	send       half
	atCreature int // position in creature.links
	atChannel  int // position in channel.links

	tied        bool // whether it is a tree link
	there, back stop // its stops in the tour, if tied
}

type graph struct {
	id            GraphID
	born          uint64
	elders        [ranks]elders
	channels      pile[*channel]
	creatureNames names[*creature]
	channelNames  names[*channel]
	past          *ancestry // the ids that became part of it, or nil
}

func (s *State) newCreature(id CreatureID, name string) *creature {
	c := &creature{id: id, name: name}
	c.node.creature, c.links = c, c.room[:0]
	c.stop = s.newStop(&c.node)
	return c
}

func (s *State) newChannel(id ChannelID, name string) *channel {
	ch := &channel{id: id, name: name}
	ch.node.channel, ch.links = ch, ch.room[:0]
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

// position returns the field in which l stores its position in n.links.
func (l *link) position(n *node) *int {
	if n.creature != nil {
		return &l.atCreature
	}
	return &l.atChannel
}

// alone reports whether n is the only node of its tree.
func (n *node) alone() bool { return n.trees == 0 }

func (n *node) markSpare() {
	if spare := len(n.links) > n.trees; spare != n.stop.spare {
		n.stop.setSpare(spare)
	}
}

// add adds a spare link.
func (n *node) add(l *link) {
	*l.position(n) = len(n.links)
	before := n.links
	n.links = append(n.links, arm{l, l.far(n)})
	if len(before) == cap(before) {
		clear(before) // the links have moved, and the room must not keep references to them
	}
}

// remove removes a spare link.
func (n *node) remove(l *link) {
	last := len(n.links) - 1
	n.swap(*l.position(n), last)
	n.links[last] = arm{}
	n.links = n.links[:last]
}

// promote makes a spare link a tree link; demote does the reverse.
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
	*a.link.position(n), *b.link.position(n) = j, i
}

func (g *graph) size() int { return g.elders[everyone].items.size }

func (g *graph) attachCreature(c *creature) {
	c.graph = g
	g.creatureNames.set(c.name, c)
	g.addElder(c)
}

func (g *graph) addElder(c *creature) {
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
	g.list(ch)
}

func (g *graph) list(ch *channel) {
	ch.at = g.channels.size
	g.channels.push(ch)
}

func (g *graph) detachChannel(ch *channel) {
	g.channelNames.remove(ch.name)
	g.delist(ch)
}

func (g *graph) delist(ch *channel) {
	moved := *g.channels.at(g.channels.size - 1)
	*g.channels.at(ch.at), moved.at = moved, ch.at
	g.channels.pop()
}
