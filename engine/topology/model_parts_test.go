package topology_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	. "github.com/seed47132306/terrarium/engine/topology"
)

// settle resolves a name that both graphs use.
type settle struct {
	otherwise Collision
	channels  map[string]Collision
}

func (s settle) of(name string) Collision {
	if how, ok := s.channels[name]; ok {
		return how
	}
	return s.otherwise
}

// merge relabels everything in all graphs except the best one.
func (m *model) merge(graphs []GraphID, how settle) (GraphID, abi.Code) {
	slices.SortFunc(graphs, func(a, b GraphID) int {
		return cmp.Or(
			cmp.Compare(len(m.members(b)), len(m.members(a))),
			cmp.Compare(m.graphs[a], m.graphs[b]),
			cmp.Compare(a, b),
		)
	})
	survivor := graphs[0]
	m.d.Kind, m.d.OldGraphs, m.d.NewGraphs = Merge, graphs, []GraphID{survivor}
	for _, g := range graphs[1:] {
		for _, c := range m.members(g) {
			if m.creatureNamed(survivor, c.Name) != "" {
				if how.otherwise == Reject {
					return "", abi.AlreadyExists
				}
				old := c.Name
				c.Name = unused(old, func(n string) bool {
					return m.creatureNamed(survivor, n) != "" || m.creatureNamed(g, n) != ""
				})
				m.d.Renamed = append(m.d.Renamed, Renaming{Creature: c.ID, Old: old, New: c.Name})
			}
			c.Graph = survivor
			m.creatures[c.ID] = c
		}
		for _, ch := range m.declared(g) {
			if how.of(ch.Name) == Reject && m.channelNamed(survivor, ch.Name) != "" {
				return "", abi.AlreadyExists
			}
			m.take(ch.ID, survivor, how)
		}
		delete(m.graphs, g)
		m.ended[g] = survivor
	}
	return survivor, abi.OK
}

// take moves one channel and returns the channel that then has its edges.
func (m *model) take(id ChannelID, to GraphID, how settle) ChannelID {
	ch := m.channels[id]
	twin := m.channelNamed(to, ch.Name)
	if twin != "" && how.of(ch.Name) == Unify && !ch.Report && !m.channels[twin].Report {
		var moved []Edge
		m.keepEdges(func(e Edge) bool {
			if e.Channel == id {
				moved = append(moved, Edge{e.Creature, twin, e.Direction, e.Alias})
			}
			return e.Channel != id
		})
		m.edges = append(m.edges, moved...)
		delete(m.channels, id)
		m.d.Unified = append(m.d.Unified, Unification{Survivor: twin, Absorbed: id})
		return twin
	}
	if twin != "" {
		old := ch.Name
		ch.Name = unused(old, func(n string) bool {
			return m.channelNamed(to, n) != "" || m.channelNamed(ch.Graph, n) != ""
		})
		m.d.Renamed = append(m.d.Renamed, Renaming{Channel: id, Old: old, New: ch.Name})
	}
	ch.Graph = to
	m.channels[id] = ch
	return id
}

// rederive recomputes the components of g and divides it.
func (m *model) rederive(g GraphID) {
	components := m.components(g)
	if len(components) == 1 {
		m.concern(g)
		m.mustBeDerived()
		return
	}
	slices.SortFunc(components, func(a, b []Creature) int {
		isRoot := func(c Creature) bool { return c.Root }
		return cmp.Or(
			cmp.Compare(len(b), len(a)),
			-compareBool(slices.ContainsFunc(a, isRoot), slices.ContainsFunc(b, isRoot)),
			cmp.Compare(a[0].Born, b[0].Born),
		)
	})
	m.d.Kind, m.d.OldGraphs, m.d.NewGraphs = Split, []GraphID{g}, []GraphID{g}
	for _, component := range components[1:] {
		child := m.newGraph()
		m.d.NewGraphs = append(m.d.NewGraphs, child)
		for _, c := range component {
			c.Graph = child
			m.creatures[c.ID] = c
			for _, e := range m.edges {
				if e.Creature == c.ID {
					ch := m.channels[e.Channel]
					ch.Graph = child
					m.channels[ch.ID] = ch
				}
			}
		}
	}
	m.mustBeDerived()
}

// components returns the connected components of g's members, each oldest
// first.
func (m *model) components(g GraphID) [][]Creature {
	var components [][]Creature
	seen := map[CreatureID]bool{}
	for _, c := range m.members(g) {
		if seen[c.ID] {
			continue
		}
		var component []Creature
		seen[c.ID] = true
		for queue := []CreatureID{c.ID}; len(queue) > 0; queue = queue[1:] {
			component = append(component, m.creatures[queue[0]])
			for _, e := range m.edges {
				if e.Creature != queue[0] {
					continue
				}
				for _, f := range m.edges {
					if f.Channel == e.Channel && !seen[f.Creature] {
						seen[f.Creature] = true
						queue = append(queue, f.Creature)
					}
				}
			}
		}
		slices.SortFunc(component, func(a, b Creature) int { return cmp.Compare(a.Born, b.Born) })
		components = append(components, component)
	}
	return components
}

// mustBeDerived checks the model itself: every graph is one component, and no
// edge leaves it.
func (m *model) mustBeDerived() {
	for g := range m.graphs {
		if n := len(m.components(g)); n != 1 {
			panic(fmt.Sprintf("model: graph %s has %d components", g, n))
		}
	}
	for _, e := range m.edges {
		if m.creatures[e.Creature].Graph != m.channels[e.Channel].Graph {
			panic(fmt.Sprintf("model: edge %v crosses graphs", e))
		}
	}
}

func (m *model) on(c CreatureID, ch ChannelID, d Direction, alias string) abi.Code {
	if m.find(c, ch, d) >= 0 {
		return abi.OK
	}
	taken := func(a string) bool {
		return slices.ContainsFunc(m.edges, func(e Edge) bool {
			return d == Send && e.Creature == c && e.Direction == Send && e.Alias == a
		})
	}
	if alias == "" {
		alias = unused(m.channels[ch].Name, taken)
	} else if taken(alias) {
		return abi.AlreadyExists
	}
	m.edges = append(m.edges, Edge{c, ch, d, alias})
	return abi.OK
}

func (m *model) off(c CreatureID, ch ChannelID, d Direction) {
	i := m.find(c, ch, d)
	m.edges = slices.Delete(m.edges, i, i+1)
}

func (m *model) keepEdges(keep func(Edge) bool) {
	m.edges = slices.DeleteFunc(m.edges, func(e Edge) bool { return !keep(e) })
}

func (m *model) find(c CreatureID, ch ChannelID, d Direction) int {
	return slices.IndexFunc(m.edges, func(e Edge) bool {
		return e.Creature == c && e.Channel == ch && e.Direction == d
	})
}

func (m *model) used(ch ChannelID) bool {
	return slices.ContainsFunc(m.edges, func(e Edge) bool { return e.Channel == ch })
}

func (m *model) leading(from, to CreatureID) []ChannelID {
	var found []Channel
	for id, ch := range m.channels {
		if m.find(from, id, Send) >= 0 && m.find(to, id, Listen) >= 0 {
			found = append(found, ch)
		}
	}
	slices.SortFunc(found, func(a, b Channel) int { return cmp.Compare(a.Born, b.Born) })
	var ids []ChannelID
	for _, ch := range found {
		ids = append(ids, ch.ID)
	}
	return ids
}

func (m *model) members(g GraphID) []Creature {
	var list []Creature
	for _, c := range m.creatures {
		if c.Graph == g {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Creature) int { return cmp.Compare(a.Born, b.Born) })
	return list
}

func (m *model) declared(g GraphID) []Channel {
	var list []Channel
	for _, ch := range m.channels {
		if ch.Graph == g {
			list = append(list, ch)
		}
	}
	slices.SortFunc(list, func(a, b Channel) int { return cmp.Compare(a.Born, b.Born) })
	return list
}

func (m *model) creatureNamed(g GraphID, name string) CreatureID {
	for _, c := range m.members(g) {
		if c.Name == name {
			return c.ID
		}
	}
	return ""
}

func (m *model) channelNamed(g GraphID, name string) ChannelID {
	for _, ch := range m.declared(g) {
		if ch.Name == name {
			return ch.ID
		}
	}
	return ""
}

func (m *model) current(g GraphID) (GraphID, bool) {
	for {
		if _, live := m.graphs[g]; live {
			return g, true
		}
		next, ok := m.ended[g]
		if !ok {
			return "", false
		}
		g = next
	}
}

func (m *model) unified(ch ChannelID) ChannelID {
	for _, u := range m.d.Unified {
		if u.Absorbed == ch {
			return u.Survivor
		}
	}
	return ch
}

func (m *model) concern(g GraphID) {
	m.d.OldGraphs, m.d.NewGraphs = append(m.d.OldGraphs, g), append(m.d.NewGraphs, g)
}

func (m *model) newGraph() GraphID {
	id := m.ids.NewGraph()
	m.lastGraph++
	m.graphs[id] = m.lastGraph
	return id
}

func (m *model) newChannel(name string, g GraphID) ChannelID {
	id := m.ids.NewChannel()
	m.lastChannel++
	m.channels[id] = Channel{ID: id, Name: name, Graph: g, Born: m.lastChannel}
	return id
}

func unused(name string, taken func(string) bool) string {
	candidate := name
	for n := 2; taken(candidate); n++ {
		candidate = fmt.Sprintf("%s~%d", name, n)
	}
	return candidate
}

func compareBool(a, b bool) int {
	n := map[bool]int{true: 1}
	return cmp.Compare(n[a], n[b])
}

// setNames frees the names of all renamed creatures, and assigns the new ones
// in order.
func (m *model) setNames(op SetNames) abi.Code {
	last := map[CreatureID]string{}
	for _, n := range op.Names {
		if _, ok := m.creatures[n.ID]; !ok {
			return abi.NotFound
		}
		if n.Name == "" {
			return abi.InvalidArgument
		}
		last[n.ID] = n.Name
	}
	for _, n := range op.Channels {
		if _, ok := m.channels[n.ID]; !ok {
			return abi.NotFound
		}
		if n.Name == "" {
			return abi.InvalidArgument
		}
	}
	before := maps.Clone(m.creatures)
	var order []CreatureID
	for _, n := range op.Names {
		c := m.creatures[n.ID]
		if slices.Contains(order, n.ID) || c.Name == last[n.ID] {
			continue
		}
		order = append(order, n.ID)
		if !slices.Contains(m.d.OldGraphs, c.Graph) {
			m.concern(c.Graph)
		}
	}
	for _, id := range order {
		c := m.creatures[id]
		c.Name = ""
		m.creatures[id] = c
	}
	for _, id := range order {
		c := m.creatures[id]
		c.Name = unused(last[id], func(n string) bool { return m.creatureNamed(c.Graph, n) != "" })
		m.creatures[id] = c
		if old := before[id].Name; old != c.Name {
			m.d.Renamed = append(m.d.Renamed, Renaming{Creature: id, Old: old, New: c.Name})
		}
	}
	for _, n := range op.Channels {
		ch := m.channels[n.ID]
		if ch.Name == n.Name {
			continue
		}
		if !slices.Contains(m.d.OldGraphs, ch.Graph) {
			m.concern(ch.Graph)
		}
		name := unused(n.Name, func(n string) bool { return m.channelNamed(ch.Graph, n) != "" })
		m.d.Renamed = append(m.d.Renamed, Renaming{Channel: n.ID, Old: ch.Name, New: name})
		ch.Name = name
		m.channels[n.ID] = ch
	}
	return abi.OK
}
