package replay

import (
	"encoding/json"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// cast holds the creatures known from the log so far.
type cast struct {
	members map[journal.CreatureID]*member
	named   map[journal.GraphID]map[string]journal.CreatureID
	late    bool // one of its creatures is older than the history
}

// member holds the known facts about a creature.
type member struct {
	id      journal.CreatureID
	name    string
	graph   journal.GraphID
	begun   bool  // the log has its beginning
	changed int64 // when it was renamed or removed; 0 means never
	gone    bool
}

func newCast() *cast {
	return &cast{members: map[journal.CreatureID]*member{}, named: map[journal.GraphID]map[string]journal.CreatureID{}}
}

// learn applies an event.
func (c *cast) learn(ev *journal.Event) {
	switch ev.Kind {
	case journal.EventCreatureStarted:
		var p journal.CreatureStartedPayload
		if json.Unmarshal(ev.Payload, &p) == nil {
			m := c.member(ev.Creature)
			m.begun = true
			c.place(m, ev.Graph, p.Name, ev.Time)
		}
	case journal.EventSessionAttached:
		m := c.member(ev.Creature)
		c.place(m, ev.Graph, m.name, ev.Time)
	case journal.EventCreatureStopped:
		var p journal.CreatureStoppedPayload
		if json.Unmarshal(ev.Payload, &p) == nil && p.Reason == journal.StopRemoved {
			m := c.member(ev.Creature)
			c.freeName(m)
			m.gone, m.changed = true, ev.Time
		}
	case journal.EventTopologyChanged:
		c.rearrange(ev)
	}
}

// rearrange applies a merge or a split, and its new names.
func (c *cast) rearrange(ev *journal.Event) {
	var d journal.Delta
	if json.Unmarshal(ev.Payload, &d) != nil {
		return
	}
	for _, id := range d.Affected {
		m := c.member(id)
		switch {
		case len(d.NewGraphs) == 1:
			c.place(m, d.NewGraphs[0], m.name, ev.Time)
		case slices.Contains(d.OldGraphs, m.graph): // it has left; its new session says for which graph
			c.place(m, "", m.name, ev.Time)
		}
	}
	for _, r := range d.Renamed {
		if r.Creature != "" {
			m := c.member(r.Creature)
			c.place(m, m.graph, r.New, ev.Time)
		}
	}
}

func (c *cast) member(id journal.CreatureID) *member {
	m := c.members[id]
	if m == nil {
		m = &member{id: id}
		c.members[id] = m
	}
	return m
}

// place records the graph of a creature and its name there.
func (c *cast) place(m *member, graph journal.GraphID, name string, now int64) {
	c.freeName(m)
	if m.name != "" && m.name != name {
		m.changed = now
	}
	m.graph, m.name, m.gone = graph, name, false
	if c.named[graph] == nil {
		c.named[graph] = map[string]journal.CreatureID{}
	}
	c.named[graph][name] = m.id
}

func (c *cast) freeName(m *member) {
	if in := c.named[m.graph]; in[m.name] == m.id {
		delete(in, m.name)
	}
}

// acts records that a creature has a turn, and its name if the turn has it.
func (c *cast) acts(t *recorded) *member {
	m := c.member(t.creature)
	c.late = c.late || !m.begun
	name := m.name
	if s := t.notes.Setting; s != nil {
		name = s.Name
	}
	if m.graph != t.event.Graph || m.name != name {
		c.place(m, t.event.Graph, name, t.event.Time)
	}
	return m
}

// find returns the creature that an id or a name means in a graph, or "" if there is none.
func (c *cast) find(graph journal.GraphID, ref string) journal.CreatureID {
	if m := c.members[journal.CreatureID(ref)]; m != nil && m.graph == graph && !m.gone {
		return m.id
	}
	return c.named[graph][ref]
}

// nameThen returns the name of a creature at some time, if it is certain. The creature may
// have been renamed or removed since.
func (c *cast) nameThen(id journal.CreatureID, then int64) (string, bool) {
	if id == "" {
		return "", true
	}
	m := c.members[id]
	if m == nil || m.name == "" || m.changed > then {
		return "", false
	}
	return m.name, true
}
