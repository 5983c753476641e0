package engine

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/journal"
)

// newRecord returns an empty record, or nil if there is no log.
func (g section) newRecord() *journal.Record {
	if g.store == nil {
		return nil
	}
	return journal.NewRecord()
}

// append hands a record to the store. It must be called in the critical section in
// which the record's events got their ids.
func (g section) append(rec *journal.Record) {
	if rec != nil {
		g.store.Append(rec)
	}
}

// newMessage makes a message of bytes that the turn will reuse.
func (g section) newMessage(rec *journal.Record, payload, headers []byte) *message.Message {
	if rec == nil {
		return message.NewPooled(payload, headers)
	}
	return message.NewCopied(payload, headers)
}

// log completes an event, adds it to the record and shows it to subscribers. An event
// that has an id keeps it.
func (g section) log(rec *journal.Record, ev journal.Event) {
	if rec == nil && !g.engine.observers.Wants(ev.Kind) {
		return
	}
	ev.Graph = g.id
	if ev.ID.IsZero() {
		ev.ID = g.nextID()
	}
	if ev.Time == 0 {
		ev.Time = g.tick()
	}
	if rec != nil {
		rec.Events = append(rec.Events, ev)
	}
	g.engine.observers.Publish(&ev, g.keeper(rec))
}

// keeper is the log that keeps what is added to a record.
func (g section) keeper(rec *journal.Record) observe.Source {
	if rec == nil {
		return observe.Source{}
	}
	return g.source
}

func (g section) logMessage(rec *journal.Record, ch *channel, m *message.Message, turn, cause journal.EventID) {
	if rec == nil && !g.engine.observers.Any() {
		return
	}
	ev := m.Event(g.id)
	if rec == nil && !g.engine.observers.Wants(ev.Kind) {
		return
	}
	ev.Turn, ev.Cause = turn, cause
	if rec == nil {
		// The message goes back to the pool; what subscribers get must stay.
		ev.Payload, ev.Headers = slices.Clone(ev.Payload), slices.Clone(ev.Headers)
	} else {
		rec.Events = append(rec.Events, ev)
		putHead(rec, ch)
	}
	g.engine.observers.Publish(&ev, g.keeper(rec))
}

// logVerdict logs a policy's verdict.
func (g section) logVerdict(rec *journal.Record, about journal.Event, v draft.Word) {
	if rec == nil && !g.engine.observers.Wants(journal.EventPolicyDenied) {
		return
	}
	g.log(rec, v.Event(about))
}

// logLines logs what the guest logged during one attempt.
func (g section) logLines(rec *journal.Record, about journal.Event, lines []effects.Line) {
	if len(lines) == 0 || (rec == nil && !g.engine.observers.Wants(journal.EventLog)) {
		return
	}
	for _, line := range lines {
		g.log(rec, line.Event(about))
	}
}

// reader is the id of the creature as a reader of channels.
func (c *creature) reader() journal.ReaderID { return journal.ReaderID(c.id) }

func putCursor(r *journal.Record, reader journal.ReaderID, s *feed) {
	if r == nil {
		return
	}
	row := journal.CursorRow{Reader: reader, Channel: s.id, Seq: s.cursor, Until: s.until}
	if s.ch == nil {
		if s.drained() {
			r.DropCursor(row)
			return
		}
		row.Alias = s.alias
	}
	r.Cursors = append(r.Cursors, row)
}

func putCreature(g section, r *journal.Record, c *creature) {
	if r != nil {
		r.Creatures = append(r.Creatures, c.row(g))
	}
}

func putHead(r *journal.Record, ch *channel) {
	if r != nil {
		r.Heads = append(r.Heads, journal.HeadRow{Channel: ch.id, Seq: ch.head})
	}
}
