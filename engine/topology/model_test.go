package topology_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	. "github.com/seed47132306/terrarium/engine/topology"
)

// model is the naive counterpart of State: plain maps, one list of edges, and
// components recomputed after every operation.
type model struct {
	creatures map[CreatureID]Creature
	channels  map[ChannelID]Channel
	graphs    map[GraphID]uint64 // born
	edges     []Edge
	ended     map[GraphID]GraphID

	lastCreature, lastChannel, lastGraph uint64

	ids IDs
	d   Delta
}

func newModel() *model {
	return &model{
		creatures: map[CreatureID]Creature{}, channels: map[ChannelID]Channel{},
		graphs: map[GraphID]uint64{}, ended: map[GraphID]GraphID{},
	}
}

func (m *model) clone() *model {
	c := *m
	c.creatures, c.channels = maps.Clone(m.creatures), maps.Clone(m.channels)
	c.graphs, c.ended = maps.Clone(m.graphs), maps.Clone(m.ended)
	c.edges = slices.Clone(m.edges)
	return &c
}

func (m *model) snapshot() Snapshot {
	var s Snapshot
	for _, c := range m.creatures {
		s.Creatures = append(s.Creatures, c)
	}
	slices.SortFunc(s.Creatures, func(a, b Creature) int { return cmp.Compare(a.Born, b.Born) })
	for _, ch := range m.channels {
		s.Channels = append(s.Channels, ch)
	}
	slices.SortFunc(s.Channels, func(a, b Channel) int { return cmp.Compare(a.Born, b.Born) })
	for id, born := range m.graphs {
		s.Graphs = append(s.Graphs, Graph{ID: id, Born: born})
	}
	slices.SortFunc(s.Graphs, func(a, b Graph) int { return cmp.Compare(a.Born, b.Born) })
	s.Edges = append(s.Edges, m.edges...)
	return s
}

// apply applies a batch to a copy and returns the copy.
func (m *model) apply(ids IDs, ops ...Op) (*model, []Delta, abi.Code) {
	next := m.clone()
	next.ids = ids
	var deltas []Delta
	for _, op := range ops {
		before := maps.Clone(next.creatures)
		next.d = Delta{}
		if code := next.one(op); code != abi.OK {
			return m, nil, code
		}
		next.affected(before)
		deltas = append(deltas, next.d)
	}
	return next, deltas, abi.OK
}

func (m *model) affected(before map[CreatureID]Creature) {
	var moved []Creature
	for id, c := range m.creatures {
		if old, ok := before[id]; ok && old.Graph != c.Graph {
			moved = append(moved, c)
		}
	}
	slices.SortFunc(moved, func(a, b Creature) int { return cmp.Compare(a.Born, b.Born) })
	for _, c := range moved {
		m.d.Affected = append(m.d.Affected, c.ID)
	}
}

func (m *model) one(op Op) abi.Code {
	switch op := op.(type) {
	case AddCreature:
		m.d.Op = "add_creature"
		return m.addCreature(op)
	case RemoveCreature:
		m.d.Op = "remove_creature"
		return m.removeCreature(op)
	case AddChannel:
		m.d.Op = "add_channel"
		return m.addChannel(op)
	case RemoveChannel:
		m.d.Op = "remove_channel"
		ch, ok := m.channels[op.ID]
		if !ok {
			return abi.NotFound
		}
		m.keepEdges(func(e Edge) bool { return e.Channel != op.ID })
		delete(m.channels, op.ID)
		m.rederive(ch.Graph)
	case Connect:
		m.d.Op = "connect"
		return m.connect(op)
	case Disconnect:
		m.d.Op = "disconnect"
		return m.disconnect(op)
	case SetEdge:
		m.d.Op = "set_" + op.Direction.String()
		return m.setEdge(op)
	case SetStopped:
		m.d.Op = map[bool]string{true: "stop_creature", false: "start_creature"}[op.Stopped]
		if op.Stopped && op.Paused {
			m.d.Op = "pause_creature"
		}
		return m.flag(op.ID, func(c *Creature) { c.Stopped, c.Paused = op.Stopped, op.Stopped && op.Paused })
	case SetPrivileged:
		m.d.Op = map[bool]string{true: "promote", false: "demote"}[op.Privileged]
		return m.flag(op.ID, func(c *Creature) { c.Privileged = op.Privileged })
	case SetRoot:
		m.d.Op = "assign_root"
		return m.flag(op.ID, func(c *Creature) { c.Root = op.Root })
	case SetNames:
		m.d.Op = "set_names"
		return m.setNames(op)
	}
	return abi.OK
}

func (m *model) addCreature(op AddCreature) abi.Code {
	if op.ID == "" || op.Name == "" {
		return abi.InvalidArgument
	}
	if _, ok := m.creatures[op.ID]; ok {
		return abi.AlreadyExists
	}
	join := GraphID("")
	if op.Join != "" {
		var ok bool
		if join, ok = m.current(op.Join); !ok {
			return abi.NotFound
		}
	}
	into := map[GraphID]bool{}
	for _, w := range op.Edges {
		ch, ok := m.channels[w.Channel]
		if !ok {
			return abi.NotFound
		}
		if w.Direction != Listen && w.Direction != Send {
			return abi.InvalidArgument
		}
		if m.used(ch.ID) {
			into[ch.Graph] = true
		}
	}
	parent := CreatureID("")
	if join != "" && (op.Direct || !into[join]) {
		parent = m.directParent(join, op.Parent)
		into[join] = true
	}
	var home GraphID
	switch len(into) {
	case 0:
		home = m.newGraph()
		m.d.NewGraphs = []GraphID{home}
	case 1:
		for home = range into {
		}
		m.concern(home)
	default:
		home, _ = m.merge(slices.Collect(maps.Keys(into)), settle{})
	}
	if m.creatureNamed(home, op.Name) != "" {
		return abi.AlreadyExists
	}
	m.lastCreature++
	m.creatures[op.ID] = Creature{
		ID: op.ID, Name: op.Name, Graph: home, Born: m.lastCreature, Parent: op.Parent,
		Privileged: op.Privileged, Root: op.Root, Stopped: op.Stopped, Paused: op.Stopped && op.Paused,
	}
	if parent != "" {
		name := unused(op.Name, func(n string) bool { return m.channelNamed(home, n) != "" })
		m.d.Channel = m.newChannel(name, home)
		m.on(parent, m.d.Channel, Send, "")
		m.on(op.ID, m.d.Channel, Listen, "")
	}
	for _, w := range op.Edges {
		if from := m.channels[w.Channel].Graph; from != home {
			if !slices.Contains(m.d.OldGraphs, from) {
				m.concern(from)
			}
			m.take(w.Channel, home, settle{})
		}
		if code := m.on(op.ID, w.Channel, w.Direction, w.Alias); code != abi.OK {
			return code
		}
	}
	m.mustBeDerived()
	return abi.OK
}

func (m *model) directParent(g GraphID, named CreatureID) CreatureID {
	if m.creatures[named].Graph == g {
		return named
	}
	members := m.members(g)
	for _, fits := range []func(Creature) bool{
		func(c Creature) bool { return c.Root },
		func(c Creature) bool { return c.Privileged },
	} {
		if i := slices.IndexFunc(members, fits); i >= 0 {
			return members[i].ID
		}
	}
	return members[0].ID
}

func (m *model) removeCreature(op RemoveCreature) abi.Code {
	c, ok := m.creatures[op.ID]
	if !ok {
		return abi.NotFound
	}
	for _, id := range append([]CreatureID{op.ID}, op.With...) {
		if m.creatures[id].Graph == c.Graph {
			m.keepEdges(func(e Edge) bool { return e.Creature != id })
			delete(m.creatures, id)
		}
	}
	if len(m.members(c.Graph)) > 0 {
		m.rederive(c.Graph)
		return abi.OK
	}
	maps.DeleteFunc(m.channels, func(_ ChannelID, ch Channel) bool { return ch.Graph == c.Graph })
	delete(m.graphs, c.Graph)
	m.d.OldGraphs = []GraphID{c.Graph}
	return abi.OK
}

func (m *model) addChannel(op AddChannel) abi.Code {
	if op.ID == "" || op.Name == "" {
		return abi.InvalidArgument
	}
	if _, ok := m.channels[op.ID]; ok {
		return abi.AlreadyExists
	}
	g, ok := m.current(op.Graph)
	if op.Graph == "" && op.With != "" {
		g, ok = m.creatures[op.With].Graph, m.creatures[op.With].ID != ""
	}
	if !ok {
		return abi.NotFound
	}
	name := op.Name
	for n := 2; op.Numbered && m.channelNamed(g, name) != ""; n++ {
		name = fmt.Sprintf("%s~%d", op.Name, n)
	}
	if m.channelNamed(g, name) != "" {
		return abi.AlreadyExists
	}
	m.lastChannel++
	m.channels[op.ID] = Channel{ID: op.ID, Name: name, Graph: g, Born: m.lastChannel, Report: op.Report}
	m.concern(g)
	m.d.Channel = op.ID
	return abi.OK
}

func (m *model) setEdge(op SetEdge) abi.Code {
	c, ok := m.creatures[op.Creature]
	ch, ok2 := m.channels[op.Channel]
	if !ok || !ok2 {
		return abi.NotFound
	}
	if op.Direction != Listen && op.Direction != Send {
		return abi.InvalidArgument
	}
	on := m.find(c.ID, ch.ID, op.Direction) >= 0
	switch {
	case on == op.On:
		m.concern(c.Graph)
		return abi.OK
	case !op.On:
		m.off(c.ID, ch.ID, op.Direction)
		m.rederive(c.Graph)
		return abi.OK
	}
	target := ch.ID
	switch {
	case c.Graph == ch.Graph:
		m.concern(c.Graph)
	case m.used(ch.ID):
		if _, code := m.merge([]GraphID{c.Graph, ch.Graph}, settle{op.OnCollision, op.Settle}); code != abi.OK {
			return code
		}
		target = m.unified(target)
	default:
		m.concern(c.Graph)
		m.concern(ch.Graph)
		if (settle{op.OnCollision, op.Settle}).of(ch.Name) == Reject && m.channelNamed(c.Graph, ch.Name) != "" {
			return abi.AlreadyExists
		}
		target = m.take(target, c.Graph, settle{op.OnCollision, op.Settle})
	}
	if code := m.on(c.ID, target, op.Direction, op.Alias); code != abi.OK {
		return code
	}
	m.mustBeDerived()
	return abi.OK
}

func (m *model) connect(op Connect) abi.Code {
	from, ok := m.creatures[op.From]
	to, ok2 := m.creatures[op.To]
	if !ok || !ok2 {
		return abi.NotFound
	}
	var target ChannelID
	switch leading := m.leading(from.ID, to.ID); {
	case op.Channel != "":
		ch, ok := m.channels[op.Channel]
		if !ok {
			return abi.NotFound
		}
		if ch.Graph != from.Graph && ch.Graph != to.Graph {
			return abi.InvalidArgument
		}
		target = ch.ID
	case op.Name != "":
		target = cmp.Or(m.channelNamed(from.Graph, op.Name), m.channelNamed(to.Graph, op.Name))
		if target == "" {
			target = m.newChannel(op.Name, from.Graph)
		}
	case len(leading) > 0:
		target = leading[0]
	default:
		name := unused(from.Name+"-to-"+to.Name, func(n string) bool {
			return m.channelNamed(from.Graph, n) != "" || m.channelNamed(to.Graph, n) != ""
		})
		target = m.newChannel(name, from.Graph)
	}
	if from.Graph == to.Graph {
		m.concern(from.Graph)
	} else if _, code := m.merge([]GraphID{from.Graph, to.Graph}, settle{op.OnCollision, op.Settle}); code != abi.OK {
		return code
	}
	target = m.unified(target)
	m.d.Channel = target
	if code := m.on(from.ID, target, Send, op.Alias); code != abi.OK {
		return code
	}
	if code := m.on(to.ID, target, Listen, op.Alias); code != abi.OK {
		return code
	}
	m.mustBeDerived()
	return abi.OK
}

func (m *model) disconnect(op Disconnect) abi.Code {
	from, ok := m.creatures[op.From]
	_, ok2 := m.creatures[op.To]
	if !ok || !ok2 {
		return abi.NotFound
	}
	channels := m.leading(op.From, op.To)
	if op.Channel != "" {
		if _, ok := m.channels[op.Channel]; !ok {
			return abi.NotFound
		}
		channels = slices.DeleteFunc(channels, func(id ChannelID) bool { return id != op.Channel })
	}
	if len(channels) == 0 {
		return abi.NotConnected
	}
	var made []ChannelID
	for _, id := range channels {
		made = append(made, m.cut(op.From, op.To, id))
	}
	m.d.Channels = append(slices.Clone(channels), made...)
	m.rederive(from.Graph)
	return abi.OK
}

func (m *model) cut(from, to CreatureID, id ChannelID) ChannelID {
	var senders int
	var others []Edge
	for _, e := range m.edges {
		switch {
		case e.Channel != id:
		case e.Direction == Send:
			senders++
		case e.Creature != from && e.Creature != to:
			others = append(others, e)
		}
	}
	switch {
	case senders == 1:
		m.off(to, id, Listen)
		return ""
	case len(others) == 0:
		m.off(from, id, Send)
		return ""
	}
	old := m.channels[id]
	name := unused(old.Name, func(n string) bool { return m.channelNamed(old.Graph, n) != "" })
	detour := m.newChannel(name, old.Graph)
	alias := m.edges[m.find(from, id, Send)].Alias
	m.off(from, id, Send)
	m.edges = append(m.edges, Edge{from, detour, Send, alias})
	for _, e := range others {
		m.edges = append(m.edges, Edge{e.Creature, detour, Listen, e.Alias})
	}
	return detour
}

func (m *model) flag(id CreatureID, set func(*Creature)) abi.Code {
	c, ok := m.creatures[id]
	if !ok {
		return abi.NotFound
	}
	set(&c)
	m.creatures[id] = c
	m.concern(c.Graph)
	return abi.OK
}
