package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/engine/journal"
)

// toolModel is a naive model of the group tools: maps of creatures and channels, and a
// search over their edges. A turn's additions have made-up ids until its results contain
// the real ones.
type toolModel struct {
	creatures map[journal.CreatureID]*toolCreature
	channels  map[journal.ChannelID]*toolChannel
	allow     map[string]bool // by deployment; stored in sessions
	applied   bool            // false after a restart, when no recipe says what may be spawned
	// vague means that the model does not know where a channel without edges is now, or how a
	// merge has resolved names. Then it accepts the engine's result.
	vague bool
	made  int // ids
}

// newThing is what a call adds, with the ids that the model has given it.
type newThing struct {
	creature journal.CreatureID
	channel  journal.ChannelID
}

func (m *toolModel) newCreature() journal.CreatureID {
	m.made++
	return journal.CreatureID(fmt.Sprint("new ", m.made))
}
func (m *toolModel) newChannel() journal.ChannelID {
	m.made++
	return journal.ChannelID(fmt.Sprint("new ", m.made))
}

type toolCreature struct {
	name, deployment, species string
	privileged                bool
	stopped, paused           bool
	edges                     map[toolEdge]bool
	heard                     []string
	waiting                   []toolMessage // while it is stopped
}

type toolEdge struct {
	channel   journal.ChannelID
	direction string
}

type toolMessage struct {
	channel journal.ChannelID
	payload string
}

// toolChannel is a channel. Without edges, it belongs to one of the creatures of its graph.
type toolChannel struct {
	name   string
	with   journal.CreatureID
	direct journal.CreatureID // its creature, if it is a direct channel
	parent journal.CreatureID // on a direct channel
}

func (m *toolModel) clone() *toolModel {
	out := &toolModel{map[journal.CreatureID]*toolCreature{}, map[journal.ChannelID]*toolChannel{}, m.allow, m.applied, m.vague, m.made}
	for id, c := range m.creatures {
		copied := *c
		copied.edges, copied.heard, copied.waiting = maps.Clone(c.edges), slices.Clone(c.heard), slices.Clone(c.waiting)
		out.creatures[id] = &copied
	}
	for id, ch := range m.channels {
		copied := *ch
		out.channels[id] = &copied
	}
	return out
}

// around returns the graph of a creature: all creatures that can be reached by edges.
func (m *toolModel) around(from journal.CreatureID) map[journal.CreatureID]bool {
	seen := map[journal.CreatureID]bool{from: true}
	for queue := []journal.CreatureID{from}; len(queue) > 0; queue = queue[1:] {
		for e := range m.creatures[queue[0]].edges {
			for id, c := range m.creatures {
				if !seen[id] && (c.edges[toolEdge{e.channel, "listen"}] || c.edges[toolEdge{e.channel, "send"}]) {
					seen[id] = true
					queue = append(queue, id)
				}
			}
		}
	}
	return seen
}

// keeper is a creature in whose graph a channel is.
func (m *toolModel) keeper(ch journal.ChannelID) journal.CreatureID {
	for id, c := range m.creatures {
		if c.edges[toolEdge{ch, "listen"}] || c.edges[toolEdge{ch, "send"}] {
			return id
		}
	}
	return m.channels[ch].with
}

// wired reports whether a channel has edges; one without does not lead anywhere.
func (m *toolModel) wired(ch journal.ChannelID) bool {
	for _, c := range m.creatures {
		if c.edges[toolEdge{ch, "listen"}] || c.edges[toolEdge{ch, "send"}] {
			return true
		}
	}
	return false
}

// creature finds a member of the caller's graph by id or name; "" if there is none.
func (m *toolModel) creature(caller journal.CreatureID, ref string) journal.CreatureID {
	near := m.around(caller)
	if near[journal.CreatureID(ref)] {
		return journal.CreatureID(ref)
	}
	for id := range near {
		if m.creatures[id].name == ref {
			return id
		}
	}
	return ""
}

func (m *toolModel) channel(caller journal.CreatureID, ref string) journal.ChannelID {
	near := m.around(caller)
	if ch := journal.ChannelID(ref); m.channels[ch] != nil && near[m.keeper(ch)] {
		return ch
	}
	for id, ch := range m.channels {
		if ch.name == ref && near[m.keeper(id)] {
			return id
		}
	}
	return ""
}

// parts is how many graphs there are.
func (m *toolModel) parts() (n int) {
	seen := map[journal.CreatureID]bool{}
	for id := range m.creatures {
		if !seen[id] {
			n++
			maps.Copy(seen, m.around(id))
		}
	}
	return n
}

// loosened notes that edges were removed; before is the number of graphs before that.
func (m *toolModel) loosened(before int, with journal.CreatureID) {
	for id, ch := range m.channels {
		if k := m.keeper(id); m.creatures[k] == nil {
			ch.with = with
		}
	}
	if m.parts() != before {
		m.vague = true
	}
}

// toolSend is a message that a turn requests to send.
type toolSend struct {
	to      journal.CreatureID
	channel journal.ChannelID
	payload string
}

// land delivers what a turn has sent, in the graph as the turn leaves it.
func (m *toolModel) land(from journal.CreatureID, sends []toolSend) {
	for _, s := range sends {
		if s.to != "" {
			if m.creatures[s.to] != nil && m.around(from)[s.to] {
				m.hear(s.to, toolMessage{payload: s.payload})
			}
			continue
		}
		if !m.creatures[from].edges[toolEdge{s.channel, "send"}] {
			continue // a dead letter
		}
		for id, c := range m.creatures {
			if id != from && c.edges[toolEdge{s.channel, "listen"}] {
				m.hear(id, toolMessage{s.channel, s.payload})
			}
		}
	}
	for _, c := range m.creatures {
		if !c.stopped {
			for _, w := range c.waiting {
				c.heard = append(c.heard, w.payload)
			}
			c.waiting = nil
		}
	}
}

func (m *toolModel) hear(id journal.CreatureID, w toolMessage) {
	c := m.creatures[id]
	c.waiting = append(c.waiting, w)
}

// The tools. Each returns a code, "" for success.

func (m *toolModel) addNode(caller journal.CreatureID, species, name string, limit int, listen, send []string, twoWay bool) (code string, made newThing) {
	self := m.creatures[caller]
	if !self.privileged {
		return "not_privileged", made
	}
	if _, of := m.allow[self.deployment]; !of || !m.applied || limit == 0 {
		return "not_found", made
	}
	edges := map[toolEdge]bool{}
	for _, ref := range listen {
		edges[toolEdge{m.channel(caller, ref), "listen"}] = true
	}
	for _, ref := range send {
		edges[toolEdge{m.channel(caller, ref), "send"}] = true
	}
	if edges[toolEdge{"", "listen"}] || edges[toolEdge{"", "send"}] {
		return "not_found", made
	}
	alive := 0
	for _, c := range m.creatures {
		if c.species == species {
			alive++
		}
	}
	for n := 1; name == ""; n++ {
		if try := fmt.Sprintf("%s-%d", species, n); m.creature(caller, try) == "" {
			name = try
		}
	}
	switch {
	case alive >= limit:
		return "limit", made
	case m.creature(caller, name) != "":
		return "already_exists", made
	}
	made.creature = m.newCreature()
	if twoWay || !slices.ContainsFunc(append(listen, send...), func(ref string) bool { return m.wired(m.channel(caller, ref)) }) {
		made.channel = m.newChannel()
		m.channels[made.channel] = &toolChannel{name: "?" + name, direct: made.creature, parent: caller} // the name may be taken
		edges[toolEdge{made.channel, "listen"}] = true
		self.edges[toolEdge{made.channel, "send"}] = true
	}
	if twoWay {
		edges[toolEdge{made.channel, "send"}], self.edges[toolEdge{made.channel, "listen"}] = true, true
	}
	m.creatures[made.creature] = &toolCreature{name: name, deployment: self.deployment, species: species, edges: edges}
	return "", made
}

// onWorker is the common part of group_remove_node, group_start_node and group_stop_node.
func (m *toolModel) onWorker(caller journal.CreatureID, ref string, f func(id journal.CreatureID)) string {
	id := m.creature(caller, ref)
	switch {
	case !m.creatures[caller].privileged:
		return "not_privileged"
	case id == "":
		return "not_found"
	case m.creatures[id].privileged:
		return "not_privileged"
	}
	f(id)
	return ""
}

func (m *toolModel) removeNode(caller journal.CreatureID, ref string) string {
	return m.onWorker(caller, ref, func(id journal.CreatureID) {
		before, gone := m.parts(), m.creatures[id]
		delete(m.creatures, id)
		for ch, x := range m.channels {
			if x.direct == id && gone.edges[toolEdge{ch, "listen"}] && !m.hasListener(ch, x.parent) {
				m.dropChannel(ch)
			}
		}
		m.loosened(before, caller)
	})
}

func (m *toolModel) hasListener(ch journal.ChannelID, besides journal.CreatureID) bool {
	for id, c := range m.creatures {
		if id != besides && c.edges[toolEdge{ch, "listen"}] {
			return true
		}
	}
	return false
}

func (m *toolModel) dropChannel(id journal.ChannelID) {
	delete(m.channels, id)
	for _, c := range m.creatures {
		delete(c.edges, toolEdge{id, "listen"})
		delete(c.edges, toolEdge{id, "send"})
	}
}

func (m *toolModel) setStopped(caller journal.CreatureID, ref, how string) string {
	refused := ""
	code := m.onWorker(caller, ref, func(id journal.CreatureID) {
		c := m.creatures[id]
		if how == "pause" && c.stopped && !c.paused || how == "resume" && c.stopped && !c.paused {
			refused = "stopped"
			return
		}
		c.stopped, c.paused = how == "stop" || how == "pause", how == "pause"
	})
	return cmp.Or(code, refused)
}

func (m *toolModel) createChannel(caller journal.CreatureID, name string) (code string, made newThing) {
	switch {
	case !m.creatures[caller].privileged:
		return "not_privileged", made
	case m.channel(caller, name) != "":
		return "already_exists", made
	}
	made.channel = m.newChannel()
	m.channels[made.channel] = &toolChannel{name: name, with: caller}
	return "", made
}

func (m *toolModel) deleteChannel(caller journal.CreatureID, ref string) string {
	id := m.channel(caller, ref)
	switch {
	case !m.creatures[caller].privileged:
		return "not_privileged"
	case id == "":
		return "not_found"
	}
	before := m.parts()
	m.dropChannel(id)
	for _, c := range m.creatures {
		c.waiting = slices.DeleteFunc(c.waiting, func(w toolMessage) bool { return w.channel == id })
	}
	m.loosened(before, caller)
	return ""
}

func (m *toolModel) wire(caller journal.CreatureID, channel, creature, direction string, on, merge bool) string {
	if !m.creatures[caller].privileged {
		return "not_privileged"
	}
	ch, c := m.channel(caller, channel), m.creature(caller, creature)
	if foreign := journal.ChannelID(channel); ch == "" && merge && m.channels[foreign] != nil {
		ch = foreign
	}
	if foreign := journal.CreatureID(creature); c == "" && merge && m.creatures[foreign] != nil {
		c = foreign
	}
	if ch == "" || c == "" {
		return "not_found"
	}
	near, edge, before := m.around(caller), toolEdge{ch, direction}, m.parts()
	keeper := m.keeper(ch)
	switch {
	case !on:
		delete(m.creatures[c].edges, edge)
		m.channels[ch].with = c // both are in the caller's graph, or it stays vague
		m.loosened(before, c)
		return ""
	case !near[c] && !near[keeper]:
		return "invalid_argument"
	case !near[c] && !m.mayMerge(caller, c) || !near[keeper] && !m.mayMerge(caller, keeper):
		return "denied"
	}
	m.collide(m.around(c), m.around(keeper))
	m.creatures[c].edges[edge] = true
	m.channels[ch].with = c // a channel without edges leaves its graph for the graph of its first edge
	return ""
}

func (m *toolModel) mayMerge(a, b journal.CreatureID) bool {
	for _, from := range []journal.CreatureID{a, b} {
		for id := range m.around(from) {
			if !m.allow[m.creatures[id].deployment] {
				return false
			}
		}
	}
	return true
}

// collide notes whether two graphs that will be merged have a name in common.
func (m *toolModel) collide(a, b map[journal.CreatureID]bool) {
	if maps.Equal(a, b) {
		return
	}
	names := map[string]bool{}
	for id := range a {
		names["c "+m.creatures[id].name] = true
	}
	for id, ch := range m.channels {
		if a[m.keeper(id)] {
			names["h "+ch.name] = true
		}
	}
	for id := range b {
		m.vague = m.vague || names["c "+m.creatures[id].name]
	}
	for id, ch := range m.channels {
		m.vague = m.vague || b[m.keeper(id)] && names["h "+ch.name]
	}
}

func (m *toolModel) groupSend(caller journal.CreatureID, ref string) (string, journal.CreatureID) {
	id := m.creature(caller, ref)
	switch {
	case id == "":
		return "not_found", ""
	case !m.creatures[caller].privileged && !m.creatures[id].privileged:
		return "not_privileged", ""
	}
	return "", id
}

func (p *toolProgram) oneOf(refs []string) string {
	slices.Sort(refs)
	return rapid.SampledFrom(slices.Compact(refs)).Draw(p.T, "ref")
}

func (p *toolProgram) flag(name string) bool { return rapid.Bool().Draw(p.T, name) }
