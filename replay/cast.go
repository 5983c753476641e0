package replay

import (
	"encoding/json"
	"slices"

	"github.com/seed47132306/terrarium/engine"
)

// cast is who there is, as far as the log has told.
type cast struct {
	members map[engine.CreatureID]*member
	named   map[engine.GraphID]map[string]engine.CreatureID
	late    bool // the history begins later than somebody in it
}

// member is what is known of a creature.
type member struct {
	id      engine.CreatureID
	name    string
	graph   engine.GraphID
	begun   bool  // its beginning was told
	changed int64 // when it got another name, or went; 0: never
	gone    bool
}

func newCast() *cast {
	return &cast{members: map[engine.CreatureID]*member{}, named: map[engine.GraphID]map[string]engine.CreatureID{}}
}

// learn follows an event.
func (c *cast) learn(ev *engine.Event) {
	switch ev.Kind {
	case engine.EventCreatureStarted:
		var p engine.CreatureStartedPayload
		if json.Unmarshal(ev.Payload, &p) == nil {
			m := c.member(ev.Creature)
			m.begun = true
			c.place(m, ev.Graph, p.Name, ev.Time)
		}
	case engine.EventSessionAttached:
		m := c.member(ev.Creature)
		c.place(m, ev.Graph, m.name, ev.Time)
	case engine.EventCreatureStopped:
		var p engine.CreatureStoppedPayload
		if json.Unmarshal(ev.Payload, &p) == nil && p.Reason == "removed" {
			m := c.member(ev.Creature)
			c.leave(m)
			m.gone, m.changed = true, ev.Time
		}
	case engine.EventTopologyChanged:
		c.rearrange(ev)
	}
}

// rearrange follows a merge or a split, and the names that it gave.
func (c *cast) rearrange(ev *engine.Event) {
	var d engine.Delta
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

func (c *cast) member(id engine.CreatureID) *member {
	m := c.members[id]
	if m == nil {
		m = &member{id: id}
		c.members[id] = m
	}
	return m
}

// place notes in which graph a creature is, and its name there.
func (c *cast) place(m *member, graph engine.GraphID, name string, now int64) {
	c.leave(m)
	if m.name != "" && m.name != name {
		m.changed = now
	}
	m.graph, m.name, m.gone = graph, name, false
	if c.named[graph] == nil {
		c.named[graph] = map[string]engine.CreatureID{}
	}
	c.named[graph][name] = m.id
}

func (c *cast) leave(m *member) {
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
func (c *cast) find(graph engine.GraphID, ref string) engine.CreatureID {
	if m := c.members[engine.CreatureID(ref)]; m != nil && m.graph == graph && !m.gone {
		return m.id
	}
	return c.named[graph][ref]
}

// nameThen is what a creature was called at some time, if there is no doubt: it may
// have another name by now, or none.
func (c *cast) nameThen(id engine.CreatureID, then int64) (string, bool) {
	if id == "" {
		return "", true
	}
	m := c.members[id]
	if m == nil || m.name == "" || m.changed > then {
		return "", false
	}
	return m.name, true
}
