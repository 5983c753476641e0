package sqlitestore

import (
	"database/sql/driver"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// drop removes rows. Rows of earlier records of the group are written first, so that they
// are removed as well.
func (w *writer) drop(d *journal.Drop) (err error) {
	if len(d.Creatures)+len(d.Channels)+len(d.Cursors) > 0 {
		err = w.flush()
	}
	run := func(st *sqlite.Statement, values ...driver.Value) {
		if err == nil {
			err = st.Run(values)
		}
	}
	channel := func(id journal.ChannelID) {
		for _, st := range w.st.dropChannel {
			run(st, string(id))
		}
	}
	for _, id := range d.Creatures {
		for _, st := range w.st.dropCreature {
			run(st, string(id))
		}
		channel(journal.InboxOf(id))
	}
	for _, id := range d.Channels {
		channel(id)
	}
	for _, row := range d.Edges {
		run(w.st.dropEdge, string(row.Creature), string(row.Channel), int64(row.Direction))
	}
	for _, row := range d.Cursors {
		run(w.st.dropCursor, string(row.Reader), string(row.Channel), int64(row.Until))
	}
	for _, row := range d.Timers {
		run(w.st.dropTimer, string(row.Creature), row.Name)
	}
	for _, id := range d.Wires {
		run(w.st.dropWire, string(id))
	}
	for _, id := range d.Requests {
		if packed, known := w.find(id); known {
			run(w.st.dropRequest, packed)
		}
	}
	for _, id := range d.Letters {
		if packed, known := w.find(id); known {
			run(w.st.dropLetter, packed)
		}
	}
	return err
}

// writeOwn writes the rows that do not change with every turn, as they come.
func (w *writer) writeOwn(r *journal.Record) error {
	if err := w.writeTopology(r); err != nil {
		return err
	}
	for i := range r.Timers {
		t := &r.Timers[i]
		if err := w.st.timer.Values(string(t.Creature), t.Name, t.Due, t.Period, sqlite.OptionalBlob(t.Payload)); err != nil {
			return err
		}
	}
	for i := range r.Requests {
		q := &r.Requests[i]
		id, err := w.pack(q.ID)
		if err != nil {
			return err
		}
		if err := w.st.request.Values(id, string(q.Creature), q.Tag, q.Deadline); err != nil {
			return err
		}
	}
	for i := range r.Letters {
		if err := w.writeLetter(&r.Letters[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeLetter(l *journal.DeadLetterRow) error {
	id, err := w.pack(l.ID)
	if err != nil {
		return err
	}
	message, err := w.packRef(l.Message)
	if err != nil {
		return err
	}
	return w.st.letter.Values(id, l.Time, string(l.Creature), sqlite.OptionalInteger(message), int64(l.Kind), string(l.Channel), int64(l.Seq), string(l.Sender), l.Alias,
		string(l.Reason), int64(l.Attempts), l.Error, l.LastWords, sqlite.OptionalBlob(l.Headers), sqlite.OptionalBlob(l.Payload))
}

// writeTopology writes the rows that only change with the topology.
func (w *writer) writeTopology(r *journal.Record) error {
	for i := range r.Creatures {
		c := &r.Creatures[i]
		if err := w.st.creature.Values(string(c.ID), c.Name, c.Deployment, c.Address, int64(c.Born), string(c.Parent),
			c.Privileged, c.Root, c.Stopped, c.Started, c.Module, c.SHA256, sqlite.OptionalBlob(c.Spec)); err != nil {
			return err
		}
	}
	for i := range r.Channels {
		c := &r.Channels[i]
		if err := w.st.channel.Values(string(c.ID), c.Name, c.Description, c.Deployment, c.Address, int64(c.Born), c.Report, string(c.Inbox)); err != nil {
			return err
		}
	}
	for i := range r.Edges {
		e := &r.Edges[i]
		if err := w.st.edge.Values(string(e.Creature), string(e.Channel), int64(e.Direction), e.Alias, int64(e.Order)); err != nil {
			return err
		}
	}
	for i := range r.Wires {
		o := &r.Wires[i]
		if err := w.st.wire.Values(string(o.ID), o.Name, string(o.From), string(o.To), o.WithContent, o.Prompt, o.When, o.AllowSelf, int64(o.Order)); err != nil {
			return err
		}
	}
	for key, value := range r.Meta {
		if err := w.st.meta.Values(key, value); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the collected rows.
func (w *writer) flush() error {
	p := &w.pending
	for _, row := range p.cursors.rows {
		b := w.st.cursors
		b.Text(string(row.Reader))
		b.Text(string(row.Channel))
		b.Integer(int64(row.Seq))
		b.Integer(int64(row.Until))
		b.Text(row.Alias)
		if err := b.EndRow(); err != nil {
			return err
		}
	}
	if err := w.st.cursors.End(); err != nil {
		return err
	}
	for _, row := range p.heads.rows {
		b := w.st.heads
		b.Text(string(row.Channel))
		b.Integer(int64(row.Seq))
		if err := b.EndRow(); err != nil {
			return err
		}
	}
	if err := w.st.heads.End(); err != nil {
		return err
	}
	for _, row := range p.producers.rows {
		if err := w.st.producer.Values(string(row.Channel), row.Producer, int64(row.Offset)); err != nil {
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

func (w *writer) writeState(row journal.StateRow) error {
	if row.Deleted {
		return w.st.deleteState.Values(string(row.Creature), row.Key)
	}
	return w.st.setState.Values(string(row.Creature), row.Key, sqlite.OptionalBlob(row.Value))
}
