package sqlitestore

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// smallEvents and smallBytes bound the history that a cut copies from a parent's file.
// Creatures wait during the copy, for at most half a millisecond.
const (
	smallEvents int64 = 48
	smallBytes  int64 = 32 << 10
)

func smallestNeeded(h failpoint.Hooks) int64 { return cmp.Or(h.SmallEvents, smallEvents) }

// smallLog is the part of the history in the file of a small parent. A cut copies it to the
// files of the children, which then do not need the parent's file. Otherwise every
// short-lived session would leave a file that is needed until a background task has copied
// it, and cuts in quick succession would leave more files than the task can copy.
type smallLog struct {
	uuids                             map[int64]journal.Origin // of the parent's file
	events, changes, ancestors, wrote [][]driver.Value
}

// The columns of the tables of a history.
const (
	changeColumns   = "event, part, first, base, rows, sum"
	ancestorColumns = "session, ordinal, parent, graph, created, merged_at, split_at, born, durability, cut, kind"
)

// readSmall reads the history in a parent's file. It reads nothing, and leaves small nil, if the
// history is not small or may lack events. The parent's file must then be kept.
func (p *parkedParent) readSmall() error {
	most := smallestNeeded(p.w.hooks)
	if p.w.c == nil || p.w.lossy || p.w.behind > uint64(most) {
		return nil
	}
	if gaps, err := p.lossy(); err != nil || gaps {
		return err
	}
	h, left := &smallLog{uuids: p.uuids}, smallBytes
	events, fits, err := p.few(most, &left, `SELECT id, ts, kind, graph, creature, turn, attempt, channel, seq, `+cutValue("headers")+`, `+cutValue("payload")+`, cause, sum,
		coalesce(octet_length(payload), 0) + coalesce(octet_length(headers), 0) FROM event ORDER BY id LIMIT ?`)
	if err != nil || !fits {
		return err
	}
	changes, fits, err := p.few(most-int64(len(events)), &left, "SELECT event, part, first, base, "+cutValue("rows")+", sum, octet_length(rows) FROM change LIMIT ?")
	if err != nil || !fits {
		return err
	}
	if h.ancestors, err = p.rows("SELECT "+ancestorColumns+" FROM ancestor LIMIT ?", most+1); err != nil || len(h.ancestors) > int(most) {
		return err
	}
	if h.wrote, err = p.rows("SELECT session, uuid, highest FROM wrote"); err != nil {
		return err
	}
	h.events, h.changes, p.small = events, changes, h
	return nil
}

// cutValue is an expression for a column. It is NULL if the value is large, so that it is not read.
func cutValue(column string) string {
	return fmt.Sprintf("iif(octet_length(%s) <= %d, %s, NULL)", column, smallBytes, column)
}

// few reads the rows of a query whose last column is a size and whose argument bounds the rows. It
// reports whether there are at most that many rows, and their sizes fit into what is left.
func (p *parkedParent) few(most int64, left *int64, query string) (rows [][]driver.Value, fits bool, err error) {
	rows, err = p.rows(query, most+1)
	for i, row := range rows {
		size, ok := row[len(row)-1].(int64)
		if !ok {
			return nil, false, sqlite.Malformed("the size of a row is %v", row[len(row)-1])
		}
		*left -= size
		rows[i] = row[:len(row)-1]
	}
	return rows, len(rows) <= int(most) && *left >= 0, err
}

// fewOrigins is the largest number of origins for which a cut counts the events of a
// parent. If there are more, the events are counted in the background.
const fewOrigins = 256

// describe returns the description of the parent's session from its file. It returns nil if
// that would take long.
func (p *parkedParent) describe(meta string) (*catalog.Description, error) {
	if p.w.c == nil || len(p.uuids) > fewOrigins {
		return nil, nil
	}
	of := catalog.Description{Meta: meta}
	if p.small != nil {
		of.Events = p.small.count()
		return &of, nil
	}
	return &of, p.w.c.Query(`SELECT coalesce(sum(last - first + 1), 0) FROM (SELECT no,
		(SELECT id FROM event WHERE id > no << 40 ORDER BY id LIMIT 1) AS first,
		(SELECT id FROM event WHERE id < (no + 1) << 40 ORDER BY id DESC LIMIT 1) AS last FROM origin) WHERE first >> 40 = no`, nil, func(v []driver.Value) error {
		return sqlite.TakeRow(v, &of.Events)
	})
}

// count returns how many events the origins have from their first to their last event.
func (h *smallLog) count() (n int64) {
	last := int64(-1)
	for _, row := range h.events { // by rising id
		id, ok := row[0].(int64)
		if !ok {
			continue
		}
		if id>>storefile.SeqBits != last>>storefile.SeqBits {
			last = id - 1 // the origin begins
		}
		n += id - last
		last = id
	}
	return n
}

// last returns the number of the highest event of each origin.
func (h *smallLog) last() map[journal.Origin]int64 {
	out := map[journal.Origin]int64{}
	for _, row := range h.events { // by rising id
		if id, ok := row[0].(int64); ok {
			out[h.uuids[id>>storefile.SeqBits]] = id & storefile.SeqMask
		}
	}
	return out
}

// copyHistories adds histories to a new file, within a transaction and before the first event
// of its session. The inherited origins therefore get lower numbers in the file, and the
// index of messages gets their events first. If several histories have events of an origin,
// one of them has all of its events.
func copyHistories(to *writer, from []*smallLog) error {
	longest := map[journal.Origin]*smallLog{}
	end := map[journal.Origin]int64{}
	for _, h := range from {
		for origin, last := range h.last() {
			if last > end[origin] {
				longest[origin], end[origin] = h, last
			}
		}
	}
	for _, h := range from {
		if err := h.copyTo(to, longest); err != nil {
			return err
		}
	}
	return nil
}

func (h *smallLog) copyTo(to *writer, longest map[journal.Origin]*smallLog) error {
	for _, of := range h.events {
		row := slices.Clone(of) // the row is copied to the next child as well
		origin, err := h.renumber(to, row, 0, 5, 11)
		if err != nil {
			return err
		}
		if longest[origin] != h {
			continue
		}
		if err := to.st.events.One.Run(row); err != nil {
			return err
		}
		to.unspanned++
		if kind, _ := row[2].(int64); journal.EventKind(kind).IsMessage() {
			to.unindexed++
		}
	}
	for _, of := range h.changes {
		row := slices.Clone(of)
		origin, err := h.renumber(to, row, 0, 2)
		if err != nil {
			return err
		}
		if owner, known := longest[origin]; known && owner != h {
			continue
		}
		if err := to.st.inheritChange.Run(row); err != nil {
			return err
		}
	}
	for _, row := range h.ancestors {
		if err := to.st.inheritAncestor.Run(row); err != nil {
			return err
		}
	}
	for _, row := range h.wrote {
		if err := to.st.inheritWrote.Run(row); err != nil {
			return err
		}
	}
	return nil
}

// renumber replaces the ids in some columns of a row, if they are present, by the ids that
// another file uses for the same events. It returns the origin of the first id.
func (h *smallLog) renumber(to *writer, row []driver.Value, columns ...int) (of journal.Origin, err error) {
	for i, column := range columns {
		packed, ok := row[column].(int64)
		if !ok {
			continue
		}
		origin, known := h.uuids[packed>>storefile.SeqBits]
		if !known {
			return of, sqlite.Malformed("the id %d has an origin that the file does not have", packed)
		}
		if i == 0 {
			of = origin
		}
		no, err := to.number(origin)
		if err != nil {
			return of, err
		}
		row[column] = no<<storefile.SeqBits | packed&storefile.SeqMask
	}
	return of, nil
}

// settleNeeds determines for each child which parents' histories are copied to its file, and
// which other sessions' files it needs. A child that needs no other file is complete.
func settleNeeds(children []*child, parents map[journal.SessionID]*Store, parked map[journal.SessionID]*parkedParent) error {
	for session, p := range parked {
		err := p.readSmall()
		if err == nil {
			parents[session].cuts.ending, err = p.describe(parents[session].metaText())
		}
		if err != nil {
			return err
		}
	}
	for _, c := range children {
		for _, p := range c.plan.Parents {
			switch {
			case parked[p].small == nil:
				c.Needs = append(c.Needs, p)
			case !parents[p].complete.Load():
				c.Needs = append(c.Needs, parents[p].cuts.needs...)
			}
			if h := parked[p].small; h != nil {
				c.histories = append(c.histories, h)
			}
		}
		slices.Sort(c.Needs)
		c.Needs = slices.Compact(c.Needs)
		c.Complete, c.relations.copied = len(c.Needs) == 0, len(c.histories) > 0
	}
	return nil
}
