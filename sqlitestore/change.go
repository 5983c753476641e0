package sqlitestore

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// A fork can begin at any time in the past, because the log determines the live rows at
// any time. Most records are plain: their events alone determine which rows they changed.
// For the others, the table change has the rows. It begins with a base: all rows as they
// were when the table was begun for the session.

// rowChanges are the rows of a record that is not plain. State has events of its own.
type rowChanges struct {
	Drop      *journal.Drop           `json:",omitempty"`
	Cursors   []journal.CursorRow     `json:",omitempty"`
	Producers []journal.ProducerRow   `json:",omitempty"`
	Creatures []journal.CreatureRow   `json:",omitempty"`
	Channels  []journal.ChannelRow    `json:",omitempty"`
	Heads     []journal.HeadRow       `json:",omitempty"`
	Edges     []journal.EdgeRow       `json:",omitempty"`
	Timers    []journal.TimerRow      `json:",omitempty"`
	Requests  []journal.RequestRow    `json:",omitempty"`
	Wires     []orderedWire           `json:",omitempty"`
	Letters   []journal.DeadLetterRow `json:",omitempty"`
	Meta      map[string]string       `json:",omitempty"`
	Spelt     bool                    `json:",omitempty"` // texts have a character for each byte
}

// orderedWire is an output wire with its place, which its event omits.
type orderedWire struct {
	journal.OutputWire
	Place uint64
}

func changesOf(r *journal.Record) rowChanges {
	c := rowChanges{
		Cursors: r.Cursors, Producers: r.Producers, Creatures: r.Creatures, Channels: r.Channels, Heads: r.Heads, Edges: r.Edges,
		Timers: r.Timers, Requests: r.Requests, Letters: r.Letters, Meta: r.Meta,
	}
	if dropsAny(&r.Drop) {
		c.Drop = &r.Drop
	}
	for _, w := range r.Wires {
		c.Wires = append(c.Wires, orderedWire{w, w.Order})
	}
	return c
}

// record returns the record from which the changes were made, without its events.
func (c *rowChanges) record() *journal.Record {
	r := &journal.Record{
		Cursors: c.Cursors, Producers: c.Producers, Creatures: c.Creatures, Channels: c.Channels, Heads: c.Heads, Edges: c.Edges,
		Timers: c.Timers, Requests: c.Requests, Letters: c.Letters, Meta: c.Meta,
	}
	if c.Drop != nil {
		r.Drop = *c.Drop
	}
	for _, w := range c.Wires {
		w.Order = w.Place
		r.Wires = append(r.Wires, w.OutputWire)
	}
	return r
}

func dropsAny(d *journal.Drop) bool {
	return len(d.Creatures)+len(d.Channels)+len(d.Edges)+len(d.Timers)+len(d.Requests)+len(d.Wires)+len(d.Letters)+len(d.Cursors) > 0
}

// implied returns what an event implies for the live rows: how far a creature has read a
// channel, or that a channel has one more message.
func implied(kind journal.EventKind, creature journal.CreatureID, channel journal.ChannelID, seq uint64) (cursor journal.CursorRow, head journal.HeadRow) {
	switch {
	case channel == "" || seq == 0:
	case kind == journal.EventTurnEnded:
		cursor = journal.CursorRow{Reader: journal.ReaderID(creature), Channel: channel, Seq: seq}
	case kind.IsMessage():
		head = journal.HeadRow{Channel: channel, Seq: seq}
	}
	return cursor, head
}

// plain reports whether the events of a record determine exactly the rows that it
// changes.
func plain(r *journal.Record) bool {
	if len(r.Producers)+len(r.Creatures)+len(r.Channels)+len(r.Edges)+len(r.Timers)+len(r.Requests)+len(r.Wires)+len(r.Letters)+len(r.Meta) > 0 ||
		dropsAny(&r.Drop) {
		return false
	}
	var cursors, heads int
	for i := range r.Events {
		ev := &r.Events[i]
		cursor, head := implied(ev.Kind, ev.Creature, ev.Channel, ev.Seq)
		if cursor.Reader != "" {
			if cursors++; !slices.Contains(r.Cursors, cursor) {
				return false
			}
		}
		if head.Channel != "" {
			if heads++; heads > len(r.Heads) || r.Heads[heads-1] != head {
				return false
			}
		}
	}
	return cursors == len(r.Cursors) && heads == len(r.Heads)
}

// noteChanges writes the changes that the events of a group do not imply, within the
// group's transaction and before its other rows. Cursors of outside readers are not part
// of the past, so a record that only moves these is skipped.
func (w *writer) noteChanges(group []*journal.Record) error {
	if err := w.layBase(); err != nil {
		return err
	}
	for _, r := range group {
		if n := len(r.Events); n > 0 {
			w.behind, w.parts = r.Events[n-1].ID.Seq, 0
		}
		if plain(r) || acknowledges(r) {
			continue
		}
		if err := w.noteChange(r); err != nil {
			return err
		}
	}
	return nil
}

// acknowledges reports whether a record only moves cursors of outside readers.
func acknowledges(r *journal.Record) bool {
	changes := changesOf(r)
	cursors := changes.Cursors
	changes.Cursors = nil
	return len(r.Events) == 0 && changes.empty() && !slices.ContainsFunc(cursors, func(c journal.CursorRow) bool { return !outside(c.Reader) })
}

func (c *rowChanges) empty() bool {
	return c.Drop == nil && len(c.Cursors)+len(c.Producers)+len(c.Creatures)+len(c.Channels)+len(c.Heads)+len(c.Edges)+
		len(c.Timers)+len(c.Requests)+len(c.Wires)+len(c.Letters)+len(c.Meta) == 0
}

// outside reports whether a reader is not a creature.
func outside(id journal.ReaderID) bool { return len(id) >= 7 && id[:7] == "reader:" }

func (w *writer) noteChange(r *journal.Record) error {
	changes := changesOf(r)
	rows, err := changes.encode()
	if err != nil {
		return err
	}
	last, err := w.pack(journal.EventID{Origin: w.own, Seq: max(w.behind, 1)})
	if err != nil {
		return err
	}
	if w.behind == 0 {
		last--
	}
	first := last + 1
	if len(r.Events) > 0 {
		first = last + 1 - int64(len(r.Events))
	}
	w.parts++
	return w.writeChange(w.own, last, w.parts, first, 0, string(rows))
}

// writeChange writes a row of the table change for an event of an origin.
func (w *writer) writeChange(origin journal.Origin, event, part, first, base int64, rows string) error {
	return w.st.change.Values(event, part, first, base, rows, storefile.ChangeDigest(origin, event, part, first, base, rows))
}

// loadChanges finds out where the table of changes continues.
func (w *writer) loadChanges() (err error) {
	if _, w.based, err = w.c.Integer("SELECT 1 FROM store WHERE key = '" + storefile.Based + "'"); err != nil {
		return err
	}
	w.behind, w.parts = 0, 0
	no, known := w.origins[w.own]
	if !known {
		return nil
	}
	last, _, err := w.c.Integer("SELECT max(id) FROM event WHERE id > ? AND id < ?", no<<storefile.SeqBits, (no+1)<<storefile.SeqBits)
	if err != nil {
		return err
	}
	w.behind = uint64(last & storefile.SeqMask)
	parts, _, err := w.c.Integer("SELECT max(part) FROM change WHERE event = ?", no<<storefile.SeqBits|int64(w.behind))
	w.parts = parts
	return err
}
