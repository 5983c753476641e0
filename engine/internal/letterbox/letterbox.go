// Package letterbox keeps the dead letters of a graph without a store.
package letterbox

import (
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Bounds of a box; it drops older letters.
const (
	maxLetters = 1000
	maxBytes   = 2 << 20
)

// Box holds the last dead letters of a graph. Its zero value is empty.
type Box struct {
	rows  []journal.DeadLetterRow
	bytes int64
}

// Keep adds a dead letter.
func (b *Box) Keep(l journal.DeadLetterRow) {
	b.rows = append(b.rows, l)
	b.bytes += l.Size()
	drop := 0
	for len(b.rows)-drop > maxLetters || b.bytes > maxBytes && drop < len(b.rows)-1 {
		b.bytes -= b.rows[drop].Size()
		b.rows[drop] = journal.DeadLetterRow{}
		drop++
	}
	b.rows = b.rows[drop:] // append moves the rest when the capacity behind it is used up
}

// Drop drops the dead letters that drop reports.
func (b *Box) Drop(drop func(*journal.DeadLetterRow) bool) {
	b.rows = slices.DeleteFunc(b.rows, func(l journal.DeadLetterRow) bool {
		if !drop(&l) {
			return false
		}
		b.bytes -= l.Size()
		return true
	})
}

// DropOne drops the dead letter with an id.
func (b *Box) DropOne(id journal.EventID) {
	b.Drop(func(l *journal.DeadLetterRow) bool { return l.ID == id })
}

// MoveTo moves the dead letters of one creature, or of all, to another box.
func (b *Box) MoveTo(to *Box, c journal.CreatureID) {
	b.Drop(func(l *journal.DeadLetterRow) bool {
		moves := c == "" || l.Creature == c
		if moves {
			to.Keep(*l)
		}
		return moves
	})
}

// Rows are the dead letters, oldest first. They must not be changed.
func (b *Box) Rows() []journal.DeadLetterRow { return b.rows }

// Page copies the dead letters of one creature, or of all, after the one with the given
// id: at most limit.
func (b *Box) Page(creature journal.CreatureID, after journal.EventID, limit int) []journal.DeadLetterRow {
	rows := b.rows
	if i := slices.IndexFunc(rows, func(l journal.DeadLetterRow) bool { return l.ID == after }); i >= 0 {
		rows = rows[i+1:]
	}
	out := []journal.DeadLetterRow{}
	for _, l := range rows {
		if len(out) < limit && (creature == "" || l.Creature == creature) {
			out = append(out, l)
		}
	}
	return out
}
