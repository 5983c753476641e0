package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// rootModel determines from the definition which edges there are, and why. It asks the
// engine which members are in one graph: the topology has a model of its own.
type rootModel struct {
	w         *world
	creatures map[journal.CreatureID]*rootMember
	channels  map[journal.ChannelID]*rootChannel
	edges     map[rootEdge]*edgeReason
	roots     map[string]journal.CreatureID
	loose     int // deployments that no recipe has made
	born      int
}

func (m *rootModel) next() int { m.born++; return m.born }

type rootMember struct {
	deployment string
	privileged bool
	born       int
}

type rootChannel struct {
	deployment string
	direct     journal.CreatureID
	parent     journal.CreatureID // creature that a direct channel was made for
	report     bool
	born       int
}

type rootEdge struct {
	creature  journal.CreatureID
	channel   journal.ChannelID
	direction journal.Direction
}

// edgeReason is why an edge exists: by itself, because of a root, or both.
type edgeReason struct {
	own, given bool
	alias      string // if it is known
}

func newRootModel(w *world) *rootModel {
	return &rootModel{
		w: w, creatures: map[journal.CreatureID]*rootMember{}, channels: map[journal.ChannelID]*rootChannel{},
		edges: map[rootEdge]*edgeReason{}, roots: map[string]journal.CreatureID{},
	}
}

// places returns the graphs of all creatures and channels.
func (m *rootModel) places() (creatures map[journal.CreatureID]journal.GraphID, channels map[journal.ChannelID]journal.GraphID) {
	creatures, channels = map[journal.CreatureID]journal.GraphID{}, map[journal.ChannelID]journal.GraphID{}
	for _, g := range m.w.status() {
		for _, c := range g.Creatures {
			creatures[c.ID] = g.ID
		}
		for _, ch := range g.Channels {
			channels[ch.ID] = g.ID
		}
	}
	return creatures, channels
}

func (m *rootModel) own(c journal.CreatureID, ch journal.ChannelID, d journal.Direction, alias string) {
	e := rootEdge{c, ch, d}
	if m.edges[e] == nil {
		m.edges[e] = &edgeReason{alias: alias}
	}
	m.edges[e].own = true
}

func (m *rootModel) give(c journal.CreatureID, ch journal.ChannelID, d journal.Direction, alias string) {
	e := rootEdge{c, ch, d}
	if m.edges[e] != nil {
		return
	}
	r := &edgeReason{given: true, alias: alias}
	if m.channels[ch].parent == c {
		r.own, r.given = true, false
	}
	m.edges[e] = r
}

func (m *rootModel) report(deployment string) journal.ChannelID {
	for id, ch := range m.channels {
		if ch.report && ch.deployment == deployment {
			return id
		}
	}
	return ""
}

func (m *rootModel) addCreature(id journal.CreatureID, deployment string) {
	m.creatures[id] = &rootMember{deployment: deployment, born: m.next()}
}

// elder returns the member that becomes the parent of a newcomer without a parent.
func (m *rootModel) elder(members []journal.CreatureID) journal.CreatureID {
	rank := func(id journal.CreatureID) int {
		switch c := m.creatures[id]; {
		case m.roots[c.deployment] == id && c.deployment != "":
			return 0
		case c.privileged:
			return 1
		}
		return 2
	}
	return slices.MinFunc(members, func(a, b journal.CreatureID) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(m.creatures[a].born, m.creatures[b].born))
	})
}

// join adds a creature to a graph, with a parent or without.
func (m *rootModel) join(id, parent journal.CreatureID, direct journal.ChannelID, members []journal.CreatureID) {
	sender := parent
	if parent == "" {
		sender = m.elder(members)
	}
	d := m.creatures[sender].deployment
	m.addCreature(id, d)
	m.channels[direct] = &rootChannel{deployment: d, direct: id, parent: parent, born: m.next()}
	m.own(id, direct, journal.Listen, "")
	root := m.roots[d]
	if parent == "" && root == sender {
		m.give(root, direct, journal.Send, "")
	} else {
		m.own(sender, direct, journal.Send, "")
	}
	creatures, channels := m.places()
	if root == "" || creatures[root] != creatures[id] {
		return
	}
	m.give(root, direct, journal.Send, "")
	if report := m.report(d); report != "" && channels[report] == creatures[id] {
		m.give(id, report, journal.Send, deploy.ReportChannel)
	}
}

func (m *rootModel) addChannel(id journal.ChannelID, deployment string) {
	m.channels[id] = &rootChannel{deployment: deployment, born: m.next()}
	creatures, channels := m.places()
	if root := m.roots[deployment]; root != "" && creatures[root] == channels[id] {
		m.give(root, id, journal.Listen, "")
	}
}

func (m *rootModel) removeChannel(id journal.ChannelID) {
	delete(m.channels, id)
	maps.DeleteFunc(m.edges, func(e rootEdge, _ *edgeReason) bool { return e.channel == id })
}

func (m *rootModel) removeCreature(id journal.CreatureID) {
	d := m.creatures[id].deployment
	if d != "" && m.roots[d] == id {
		m.removeChannel(m.report(d))
		delete(m.roots, d)
	}
	delete(m.creatures, id)
	for ch, of := range m.channels {
		listens := m.edges[rootEdge{id, ch, journal.Listen}] != nil
		others := slices.ContainsFunc(slices.Collect(maps.Keys(m.edges)), func(e rootEdge) bool {
			return e.creature != id && e.channel == ch && e.direction == journal.Listen
		})
		if of.direct == id && listens && !others {
			m.removeChannel(ch)
		}
	}
	maps.DeleteFunc(m.edges, func(e rootEdge, _ *edgeReason) bool { return e.creature == id })
}

// assign makes a creature the root. The graphs are those before the change; report is the
// channel that the root then listens on.
func (m *rootModel) assign(id journal.CreatureID, report journal.ChannelID, creatures map[journal.CreatureID]journal.GraphID, channels map[journal.ChannelID]journal.GraphID) {
	g := creatures[id]
	if m.creatures[id].deployment == "" {
		m.loose++
		name := fmt.Sprint("loose ", m.loose)
		for c, in := range creatures {
			if in == g && m.creatures[c].deployment == "" {
				m.creatures[c].deployment = name
			}
		}
		for ch, in := range channels {
			if in == g && m.channels[ch].deployment == "" {
				m.channels[ch].deployment = name
			}
		}
	}
	d := m.creatures[id].deployment
	if former := m.roots[d]; former != id {
		maps.DeleteFunc(m.edges, func(e rootEdge, r *edgeReason) bool {
			return e.creature == former && r.given && !r.own
		})
	}
	m.roots[d], m.creatures[id].privileged = id, true
	if old := m.report(d); old != "" && old != report {
		m.removeChannel(old)
	}
	if m.channels[report] == nil {
		m.channels[report] = &rootChannel{deployment: d, report: true, born: m.next()}
	}
	m.give(id, report, journal.Listen, "")
	if r := m.edges[rootEdge{id, report, journal.Send}]; r != nil && r.alias == deploy.ReportChannel {
		delete(m.edges, rootEdge{id, report, journal.Send})
	}
	for c, in := range creatures {
		if c != id && in == g && m.creatures[c].deployment == d {
			m.give(c, report, journal.Send, deploy.ReportChannel)
		}
	}
	for ch, in := range channels {
		of := m.channels[ch]
		switch {
		case of == nil || in != g || of.deployment != d:
		case of.direct == "":
			m.give(id, ch, journal.Listen, "")
		case of.direct != id && creatures[of.direct] == g:
			m.give(id, ch, journal.Send, "")
		}
	}
}

// tidy removes what disappeared with the last member of its graph.
func (m *rootModel) tidy() {
	_, channels := m.places()
	for id := range m.channels {
		if channels[id] == "" {
			m.removeChannel(id)
		}
	}
}

// check compares all edges, the roots, and the aliases of what members report on.
func (m *rootModel) check(t *testing.T, when string) {
	t.Helper()
	got := map[rootEdge]bool{}
	for _, g := range m.w.status() {
		for _, c := range g.Creatures {
			for _, ch := range c.Listen {
				got[rootEdge{c.ID, ch, journal.Listen}] = true
			}
			for _, ch := range c.Send {
				got[rootEdge{c.ID, ch, journal.Send}] = true
			}
			model := m.creatures[c.ID]
			if model == nil {
				t.Fatalf("%s: the model lacks %s", when, c.ID)
			}
			if root := model.deployment != "" && m.roots[model.deployment] == c.ID; c.Root != root || root && !c.Privileged {
				t.Fatalf("%s: %s: root %v, privileged %v; want root %v", when, c.ID, c.Root, c.Privileged, root)
			}
			for e, r := range m.edges {
				if e.creature == c.ID && r.given && r.alias == deploy.ReportChannel && c.Aliases.Send[r.alias] != e.channel {
					t.Fatalf("%s: %s reports on %s, want %s", when, c.ID, c.Aliases.Send[r.alias], e.channel)
				}
			}
		}
	}
	for e := range got {
		if m.edges[e] == nil {
			t.Fatalf("%s: unexpected edge %+v (deployment %q, root %s; channel %+v)", when, e, m.creatures[e.creature].deployment, m.roots[m.creatures[e.creature].deployment], m.channels[e.channel])
		}
	}
	for e, r := range m.edges {
		if !got[e] {
			t.Fatalf("%s: missing edge %+v: %+v (channel %+v)", when, e, *r, m.channels[e.channel])
		}
	}
}
