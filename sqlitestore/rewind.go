package sqlitestore

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"math"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// change is a row of the table of that name.
type change struct {
	event, part int64
	rows        string
}

// rewind restores the live rows of a session as they were at the end of the history in the
// file, within a transaction. own are the origins under which the session wrote. Their
// changes begin with a base, to which everything after it is applied.
func (w *writer) rewind(e catalog.Entry, own []journal.Origin) error {
	line, err := w.inOrder(own)
	if err != nil {
		return err
	}
	at, base, err := w.lastBase(line)
	if err != nil {
		return err
	}
	if at < 0 {
		return unknownRows(e)
	}
	rows, err := w.restore(base.rows)
	if err != nil {
		return err
	}
	if rows[stateTable.name] == nil {
		if err := w.recallState(e, base.event); err != nil {
			return err
		}
	}
	for _, no := range line[at:] {
		from := max(no<<storefile.SeqBits, base.event)
		if from>>storefile.SeqBits != no {
			from = no << storefile.SeqBits
		}
		if err := w.replay(from, base); err != nil {
			return err
		}
	}
	return w.flush()
}

// unknownRows is the error if the log does not determine the rows at a cursor.
func unknownRows(e catalog.Entry) error {
	return tooEarly(e, "the state of the creatures of session %s at the cursor is not known: an older version wrote it, or history has been pruned since", abi.Unsupported)
}

// inOrder returns the numbers of some origins, in the order in which they were written. An
// origin without events may have changes nevertheless: it is placed right before the
// origins with a higher number, as those were added later.
func (w *writer) inOrder(own []journal.Origin) (line []int64, err error) {
	begun := map[int64]int64{}
	for _, origin := range own {
		no, known := w.origins[origin]
		if !known {
			continue
		}
		ts, found, err := w.c.Integer("SELECT ts FROM event WHERE id > ? AND id < ? ORDER BY id LIMIT 1", no<<storefile.SeqBits, (no+1)<<storefile.SeqBits)
		if err != nil {
			return nil, err
		}
		if found {
			begun[no] = ts
		}
		line = append(line, no)
	}
	slices.Sort(line)
	next := int64(math.MaxInt64) // when the first of those with higher numbers began
	for _, no := range slices.Backward(line) {
		if ts, found := begun[no]; found {
			next = min(next, ts)
		} else {
			begun[no] = next
		}
	}
	slices.SortFunc(line, func(a, b int64) int {
		return cmp.Or(cmp.Compare(begun[a], begun[b]), cmp.Compare(a, b))
	})
	return line, nil
}

// lastBase finds the last base in a line of origins; at is -1 if there is none.
func (w *writer) lastBase(line []int64) (at int, base change, err error) {
	for at, no := range slices.Backward(line) {
		found := false
		err := w.c.Query("SELECT event, part, rows FROM change WHERE event >= ? AND event < ? AND base ORDER BY event DESC, part DESC LIMIT 1",
			[]driver.Value{no << storefile.SeqBits, (no + 1) << storefile.SeqBits}, func(v []driver.Value) error {
				found = true
				return sqlite.TakeRow(v, &base.event, &base.part, &base.rows)
			})
		if err != nil || found {
			return at, base, err
		}
	}
	return -1, base, nil
}

// replay applies the records of one origin after a place.
func (w *writer) replay(from int64, base change) error {
	end := (from>>storefile.SeqBits + 1) << storefile.SeqBits
	var changes []struct {
		change
		first int64
	}
	err := w.c.Query("SELECT event, part, rows, first FROM change WHERE event >= ? AND event < ? AND NOT base ORDER BY event, part",
		[]driver.Value{from, end}, func(v []driver.Value) error {
			var c change
			var first int64
			if err := sqlite.TakeRow(v, &c.event, &c.part, &c.rows, &first); err != nil {
				return err
			}
			if c.event != base.event || c.part > base.part {
				changes = append(changes, struct {
					change
					first int64
				}{c, first})
			}
			return nil
		})
	if err != nil {
		return err
	}
	upTo := func(id int64) error { // applies the changes before an event
		for len(changes) > 0 && changes[0].event < id {
			if err := w.redo(changes[0].rows); err != nil {
				return err
			}
			changes = changes[1:]
		}
		return nil
	}
	err = w.c.Query("SELECT id, kind, creature, channel, seq, CASE kind WHEN 4 THEN payload END FROM event WHERE id > ? AND id < ? AND (kind IN (2, 4) OR "+isMessage+") ORDER BY id",
		[]driver.Value{from, end}, func(v []driver.Value) error {
			var id, kind int64
			if err := sqlite.TakeRow(v, &id, &kind); err != nil {
				return err
			}
			if err := upTo(id); err != nil {
				return err
			}
			byChanges := len(changes) > 0 && changes[0].first <= id // by the changes of its record
			w.redoEvent(journal.EventKind(kind), v, byChanges)
			return nil
		})
	if err != nil {
		return err
	}
	return upTo(end)
}

// redo applies the changes of a record.
func (w *writer) redo(text string) error {
	c, err := decodeChanges(text)
	if err != nil {
		return err
	}
	return w.apply([]*journal.Record{c.record()})
}

// redoEvent applies what an event implies for the rows. v is the event's id, kind,
// creature, channel, number and, for an event of state, payload. byChanges says that the
// changes of its record contain the row, unless that is of state.
func (w *writer) redoEvent(kind journal.EventKind, v []driver.Value, byChanges bool) {
	creature, _ := v[2].(string)
	if kind == journal.EventState {
		payload, _ := v[5].([]byte)
		w.pending.putState(stateRow(creature, payload))
		return
	}
	if byChanges {
		return
	}
	channel, _ := v[3].(string)
	seq, _ := v[4].(int64)
	cursor, head := implied(kind, journal.CreatureID(creature), journal.ChannelID(channel), uint64(seq))
	if cursor.Reader != "" {
		w.pending.putCursor(cursor)
	}
	if head.Channel != "" {
		w.pending.heads.put(head.Channel, head)
	}
}

// stateRow returns the row that an event of the kind state implies.
func stateRow(creature string, payload []byte) journal.StateRow {
	key, value, deleted := journal.DecodeStateEvent(payload)
	return journal.StateRow{Creature: journal.CreatureID(creature), Key: key, Value: bytes.Clone(value), Deleted: deleted}
}

// recallState finds the state that the creatures of the file had at an event, in the log
// before it, and writes it. It fails if the log may lack some of it.
func (w *writer) recallState(e catalog.Entry, upTo int64) error {
	type latest struct {
		ts, id int64
	}
	values := map[stateKey]latest{}
	until, err := w.timeOf(upTo)
	if err != nil {
		return err
	}
	if gaps, err := lossy(w.c, until); err != nil || gaps {
		if err == nil {
			err = unknownRows(e)
		}
		return err
	}
	err = w.c.Query("SELECT id, ts, creature, payload FROM event WHERE kind = 4 AND ts <= ? AND creature IN (SELECT id FROM creature) ORDER BY id", []driver.Value{until},
		func(v []driver.Value) error {
			var id, ts int64
			var creature string
			var payload []byte
			if err := sqlite.TakeRow(v, &id, &ts, &creature, &payload); err != nil {
				return err
			}
			key, _, _ := bytes.Cut(payload, []byte{0})
			at := stateKey{journal.CreatureID(creature), string(key)}
			if ts >= values[at].ts {
				values[at] = latest{ts, id}
			}
			return nil
		})
	if err != nil {
		return err
	}
	for at, last := range values {
		err := w.c.Query("SELECT payload FROM event WHERE id = ?", []driver.Value{last.id}, func(v []driver.Value) error {
			payload, _ := v[0].([]byte)
			return w.writeState(stateRow(string(at.creature), payload))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// timeOf returns when an event was logged. For an id before the first event of its origin,
// it returns a time before that event.
func (w *writer) timeOf(id int64) (int64, error) {
	ts, found, err := w.c.Integer("SELECT ts FROM event WHERE id = ?", id)
	if err != nil || found {
		return ts, err
	}
	ts, found, err = w.c.Integer("SELECT min(ts) - 1 FROM event WHERE id > ? AND id < ?", id, (id>>storefile.SeqBits+1)<<storefile.SeqBits)
	if !found {
		ts = math.MaxInt64
	}
	return ts, err
}
