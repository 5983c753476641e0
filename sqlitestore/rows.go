package sqlitestore

import (
	"errors"
	"strings"

	"github.com/seed47132306/terrarium/engine"
)

const (
	eventColumns = 12
	// eventsPerInsert is where one statement for several events stops gaining.
	eventsPerInsert = 8

	insertEvent = "INSERT INTO event (id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause) VALUES "
	eventValues = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

// statements are the prepared statements of a writer.
type statements struct {
	all []*statement

	events, event, origin      *statement
	cursor, head, producer     *statement
	setState, deleteState      *statement
	creature, channel, edge    *statement
	dropEdge, dropCursor, meta *statement
	dropCreature, dropChannel  []*statement
}

func (s *statements) prepare(c *conn) (err error) {
	*s = statements{}
	add := func(query string) *statement {
		if err != nil {
			return nil
		}
		var st *statement
		if st, err = c.prepare(query); err != nil {
			return nil
		}
		s.all = append(s.all, st)
		return st
	}
	s.events = add(insertEvent + strings.Repeat(eventValues+", ", eventsPerInsert-1) + eventValues)
	s.event = add(insertEvent + eventValues)
	s.origin = add("INSERT INTO origin (no, uuid) VALUES (?, ?)")
	s.cursor = add("REPLACE INTO cursor (reader, channel, seq, until, alias) VALUES (?, ?, ?, ?, ?)")
	s.head = add("REPLACE INTO head (channel, seq) VALUES (?, ?)")
	s.producer = add("REPLACE INTO producer (channel, producer, offset) VALUES (?, ?, ?)")
	s.setState = add("INSERT INTO state_value (creature, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value")
	s.deleteState = add("DELETE FROM state_value WHERE creature = ? AND key = ?")
	s.creature = add("REPLACE INTO creature (id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	s.channel = add("REPLACE INTO channel (id, name, description, deployment, address, born, report, inbox) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
	s.edge = add("REPLACE INTO edge (creature, channel, direction, alias, ord) VALUES (?, ?, ?, ?, ?)")
	s.dropEdge = add("DELETE FROM edge WHERE creature = ? AND channel = ? AND direction = ?")
	s.dropCursor = add("DELETE FROM cursor WHERE reader = ? AND channel = ? AND until = ?")
	s.meta = add("REPLACE INTO meta (key, value) VALUES (?, ?)")
	s.dropCreature = []*statement{
		add("DELETE FROM creature WHERE id = ?"),
		add("DELETE FROM state_value WHERE creature = ?"),
		add("DELETE FROM cursor WHERE reader = ?"),
		add("DELETE FROM edge WHERE creature = ?"),
	}
	s.dropChannel = []*statement{
		add("DELETE FROM channel WHERE id = ?"),
		add("DELETE FROM head WHERE channel = ?"),
		add("DELETE FROM cursor WHERE channel = ?"),
		add("DELETE FROM producer WHERE channel = ?"),
		add("DELETE FROM edge WHERE channel = ?"),
	}
	return err
}

func (s *statements) close() (err error) {
	for _, st := range s.all {
		err = errors.Join(err, st.raw.Close())
	}
	s.all = nil
	return err
}

// drop removes rows. What the group's earlier records wrote goes to the file
// first, so that it is removed as well.
func (w *writer) drop(d *engine.Drop) error {
	if len(d.Creatures)+len(d.Channels)+len(d.Edges)+len(d.Cursors) == 0 {
		return nil
	}
	err := w.flush()
	run := func(st *statement, values ...any) {
		if err == nil {
			for i, v := range values {
				st.args[i].Value = v
			}
			err = st.execute()
		}
	}
	for _, id := range d.Creatures {
		for _, st := range w.st.dropCreature {
			run(st, string(id))
		}
	}
	for _, id := range d.Channels {
		for _, st := range w.st.dropChannel {
			run(st, string(id))
		}
	}
	for _, row := range d.Edges {
		run(w.st.dropEdge, string(row.Creature), string(row.Channel), int64(row.Direction))
	}
	for _, row := range d.Cursors {
		run(w.st.dropCursor, string(row.Reader), string(row.Channel), int64(row.Until))
	}
	return err
}

// writeRare writes the rows that only change with the topology.
func (w *writer) writeRare(r *engine.Record) error {
	for i := range r.Creatures {
		c := &r.Creatures[i]
		if err := w.st.creature.run(string(c.ID), c.Name, c.Deployment, c.Address, int64(c.Born), string(c.Parent),
			c.Privileged, c.Root, c.Stopped, c.Started, c.Module, c.SHA256, blob(c.Spec)); err != nil {
			return err
		}
	}
	for i := range r.Channels {
		c := &r.Channels[i]
		if err := w.st.channel.run(string(c.ID), c.Name, c.Description, c.Deployment, c.Address, int64(c.Born), c.Report, string(c.Inbox)); err != nil {
			return err
		}
	}
	for i := range r.Edges {
		e := &r.Edges[i]
		if err := w.st.edge.run(string(e.Creature), string(e.Channel), int64(e.Direction), e.Alias, int64(e.Order)); err != nil {
			return err
		}
	}
	for key, value := range r.Meta {
		if err := w.st.meta.run(key, value); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the collected rows.
func (w *writer) flush() error {
	p := &w.pending
	for _, row := range p.cursors.rows {
		if err := w.st.cursor.run(string(row.Reader), string(row.Channel), int64(row.Seq), int64(row.Until), row.Alias); err != nil {
			return err
		}
	}
	for _, row := range p.heads.rows {
		if err := w.st.head.run(string(row.Channel), int64(row.Seq)); err != nil {
			return err
		}
	}
	for _, row := range p.producers.rows {
		if err := w.st.producer.run(string(row.Channel), row.Producer, int64(row.Offset)); err != nil {
			return err
		}
	}
	for _, row := range p.state.rows {
		if err := w.writeState(row); err != nil {
			return err
		}
	}
	p.reset()
	return nil
}

func (w *writer) writeState(row engine.StateRow) error {
	if row.Deleted {
		return w.st.deleteState.run(string(row.Creature), row.Key)
	}
	return w.st.setState.run(string(row.Creature), row.Key, blob(row.Value))
}
