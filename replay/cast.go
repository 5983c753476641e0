package replay

import (
	"encoding/json"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// cast is who there is, as far as the log has told.
type cast struct {
	members map[journal.CreatureID]*member
	named   map[journal.GraphID]map[string]journal.CreatureID
	late    bool // the history begins later than somebody in it
}

// member is what is known of a creature.
type member struct {
	id      journal.CreatureID
	name    string
	graph   journal.GraphID
	begun   bool  // its beginning was told
	changed int64 // when it got another name, or went; 0: never
	gone    bool
}

func newCast() *cast {
	return &cast{members: map[journal.CreatureID]*member{}, named: map[journal.GraphID]map[string]journal.CreatureID{}}
}

// learn follows an event.
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

// rearrange follows a merge or a split, and the names that it gave.
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
		case slices.Contains(d.OldGraphs, m.graph): // it left, and its new session says where to
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

// place notes in which graph a creature is, and its name there.
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

// acts notes that a creature has a turn, under a name if that was recorded.
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

// find is whom a creature of a graph means by an id or a name; "" if nobody.
func (c *cast) find(graph journal.GraphID, ref string) journal.CreatureID {
	if m := c.members[journal.CreatureID(ref)]; m != nil && m.graph == graph && !m.gone {
		return m.id
	}
	return c.named[graph][ref]
}

// nameThen is what a creature was called at some time, if there is no doubt: it may
// have another name by now, or none.
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
