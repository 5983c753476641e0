package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// ownRows are the creatures and channels whose live rows a child takes over, except for
// rows that its first record contains. States and dead letters belong to a creature,
// producers' offsets and the cursors of outside readers to a channel.
type ownRows struct {
	cut       *journal.Cut
	number    int // of the child
	creatures map[string]bool
	channels  map[string]bool
}

func ownRowsOf(cut *journal.Cut, number int) ownRows {
	own, plan := ownRows{cut, number, map[string]bool{}, map[string]bool{}}, &cut.Children[number]
	for _, id := range plan.Creatures {
		own.creatures[string(id)] = true
	}
	for _, id := range plan.Channels {
		own.channels[string(id)] = true
	}
	return own
}

// parkedParent is a parent whose writer is parked, so that its connection can be used for
// reading. Attaching its file to those of the children would mean reading its schema for
// each of them, which usually takes longer than copying its few rows.
type parkedParent struct {
	w     *writer
	uuids map[int64]journal.Origin
	small *smallLog // its history, if that is copied
	gaps  *bool     // what lossy has found
}

// lossy reports whether the log may lack some of the values that creatures wrote to their states.
func (p *parkedParent) lossy() (bool, error) {
	if p.gaps == nil {
		gaps, err := lossy(p.w.c, math.MaxInt64)
		if err != nil {
			return false, err
		}
		gaps = gaps || p.w.lossy
		p.gaps = &gaps
	}
	return *p.gaps, nil
}

func newParkedParent(s *Store) *parkedParent {
	t := &parkedParent{w: s.w, uuids: make(map[int64]journal.Origin, len(s.w.origins))}
	for origin, no := range s.w.origins {
		t.uuids[no] = origin
	}
	return t
}

// rows reads the rows of a query.
func (p *parkedParent) rows(query string, args ...driver.Value) (out [][]driver.Value, err error) {
	if p.w.c == nil {
		return nil, errNoConnection
	}
	err = p.w.c.Query(query, args, func(v []driver.Value) error {
		out = append(out, slices.Clone(v))
		return nil
	})
	return out, err
}

// seal records in the parent's file the cut that parked it. A file with this record also
// has everything that the parent wrote before.
func (p *parkedParent) seal(cut string) error {
	if p.w.c == nil {
		return errNoConnection
	}
	err := p.w.c.SetDurable(false)
	if err == nil {
		err = storefile.WriteSeal(p.w.c, cut)
	}
	if err = errors.Join(err, p.w.pace()); err != nil {
		return err
	}
	return p.w.hooks.At(failpoint.Sealed, p.w.path)
}

// noteLoss notes for the writer of a child whether the log of the parent, or of its
// ancestors, may lack some of the values that creatures wrote to their states.
func (p *parkedParent) noteLoss(to *writer) error {
	gaps, err := p.lossy()
	to.lossy = to.lossy || gaps
	return err
}

// take copies the rows of a parent that the child owns into the child's file, within a
// transaction.
func (o ownRows) take(from *parkedParent, parent *journal.SessionInfo, to *writer) error {
	for _, id := range slices.Sorted(maps.Keys(o.creatures)) {
		if err := from.copyRows(to.st.setState, "SELECT creature, key, value FROM state_value WHERE creature = ?", id); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.channels)) {
		if err := from.copyRows(to.st.producer, "SELECT channel, producer, offset FROM producer WHERE channel = ?", id); err != nil {
			return err
		}
	}
	if err := o.takeReaders(from, to); err != nil {
		return err
	}
	return o.takeLetters(from, parent, to)
}

// copyRows writes the rows of a query with a statement of another file.
func (p *parkedParent) copyRows(into *sqlite.Statement, query string, args ...driver.Value) error {
	rows, err := p.rows(query, args...)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := into.Run(row); err != nil {
			return err
		}
	}
	return nil
}

// takeReaders takes over the cursors of outside readers.
func (o ownRows) takeReaders(from *parkedParent, to *writer) error {
	rows, err := from.rows("SELECT reader, channel, seq, until, alias FROM cursor WHERE reader >= 'reader:' AND reader < 'reader;'")
	if err != nil {
		return err
	}
	for _, row := range rows {
		var channel string
		if err := sqlite.TakeRow(row, nil, &channel); err != nil {
			return err
		}
		if !o.channels[channel] {
			continue
		}
		if err := to.st.cursors.One.Run(row); err != nil {
			return err
		}
	}
	return nil
}

// takeLetters takes over dead letters: see [journal.Cut.LetterSuccessors].
func (o ownRows) takeLetters(from *parkedParent, parent *journal.SessionInfo, to *writer) error {
	letters, err := from.rows("SELECT id, message, creature, sender FROM letter ORDER BY id")
	if err != nil || len(letters) == 0 {
		return err
	}
	successor := o.cut.LetterSuccessors(parent)
	var ids []int64
	origins := map[int64]bool{}
	for _, row := range letters {
		var id int64
		var creature, sender string
		if err := sqlite.TakeRow(row, &id, nil, &creature, &sender); err != nil {
			return err
		}
		if successor(journal.CreatureID(creature), journal.CreatureID(sender)) != o.number {
			continue
		}
		ids = append(ids, id)
		origins[id>>storefile.SeqBits] = true
		if message, ok := row[1].(int64); ok {
			origins[message>>storefile.SeqBits] = true
		}
	}
	// Letters are sorted by the number of their origin. The new numbers are assigned in the
	// same order, so that the letters keep theirs.
	number := map[int64]int64{}
	for _, no := range slices.Sorted(maps.Keys(origins)) {
		if number[no], err = to.number(from.uuids[no]); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := takeLetter(from, to, id, number); err != nil {
			return err
		}
	}
	return nil
}

// takeLetter takes over one dead letter. number maps the parent's numbers of origins to
// those in the child's file.
func takeLetter(from *parkedParent, to *writer, id int64, number map[int64]int64) error {
	rows, err := from.rows(`SELECT id, ts, creature, message, kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload
		FROM letter WHERE id = ?`, id)
	if err != nil || len(rows) == 0 {
		return err
	}
	row := rows[0]
	for _, i := range []int{0, 3} {
		if packed, ok := row[i].(int64); ok {
			row[i] = number[packed>>storefile.SeqBits]<<storefile.SeqBits | packed&storefile.SeqMask
		}
	}
	return to.st.letter.Run(row)
}

// takeAllRows replaces the live rows by those of the attached database parent, whose
// origins are known in this file.
func takeAllRows(c *sqlite.Conn) error {
	for _, table := range []string{"store", "meta", "creature", "channel", "head", "edge", "cursor", "state_value", "producer", "timer", "wire", "own"} {
		if err := c.Exec("DELETE FROM main." + table); err != nil {
			return err
		}
		if err := c.Exec("INSERT INTO main." + table + " SELECT * FROM parent." + table); err != nil {
			return err
		}
	}
	for _, query := range []string{
		"DELETE FROM main.request",
		"INSERT INTO main.request SELECT " + renumbered("id") + ", creature, tag, deadline FROM parent.request",
		"DELETE FROM main.letter",
		"INSERT INTO main.letter SELECT " + letterColumns + " FROM parent.letter",
	} {
		if err := c.Exec(query); err != nil {
			return err
		}
	}
	return nil
}

var letterColumns = renumbered("id") + ", ts, creature, " + renumbered("message") +
	", kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload"

// renumbered returns the SQL expression that converts a column of packed ids of the
// database parent to the numbers of origins in this file.
func renumbered(column string) string {
	return "(SELECT o.no << 40 FROM parent.origin p JOIN main.origin o ON o.uuid = p.uuid WHERE p.no = " + column + " >> 40) | (" +
		column + " & 0xffffffffff)"
}
