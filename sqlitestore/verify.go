package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"

	"github.com/seed47132306/terrarium/engine"
)

// verification checks one store. All of it reads one snapshot.
type verification struct {
	r      *reader
	ctx    context.Context
	tx     *sql.Tx
	report engine.VerifyReport
	// partial says that earlier history has not been copied yet.
	partial bool
	// unlogged is when the last graph without a store became part of this one,
	// or 0. What was sent there before need not be in the log.
	unlogged int64
}

func (r *reader) verify(ctx context.Context, e entry) (report engine.VerifyReport, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, endRead(tx)) }()
	v := verification{r: r, ctx: ctx, tx: tx, report: engine.VerifyReport{Session: e.Session}}
	if !e.Complete {
		v.partial = true
		for _, p := range e.Parents {
			if p != volatileParent {
				v.report.IncompleteFrom = append(v.report.IncompleteFrom, p)
			}
		}
	}
	for _, check := range []func() error{v.integrity, v.lineage, v.numbers, v.channels, v.index, v.liveRows} {
		err := check()
		if damaged(err) {
			v.report.Damage = append(v.report.Damage, err.Error())
		} else if err != nil {
			return v.report, err
		}
	}
	return v.report, nil
}

// damaged reports whether an error is a finding: SQLite stumbled upon damage.
func damaged(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && (se.Code == sqlite3.ErrCorrupt || se.Code == sqlite3.ErrNotADB)
}

func (v *verification) each(row func(scan func(...any) error) error, query string) error {
	return each(v.ctx, v.tx, row, query)
}

func (v *verification) integrity() error {
	return v.each(func(scan func(...any) error) error {
		var line string
		err := scan(&line)
		if err == nil && line != "ok" {
			v.report.Damage = append(v.report.Damage, line)
		}
		return err
	}, "PRAGMA integrity_check")
}

// lineage finds out when the last graph without a store came in.
func (v *verification) lineage() error {
	return v.each(func(scan func(...any) error) error { return scan(&v.unlogged) },
		"SELECT coalesce(max(created), 0) FROM ancestor WHERE parent = '"+volatileParent+"'")
}

// name answers the id that a packed one stands for.
func (v *verification) name(packed int64) string {
	id, err := v.r.unpack(v.ctx, v.tx, packed)
	if err != nil {
		return fmt.Sprintf("event %d of the unknown origin %d", packed&seqMask, packed>>seqBits)
	}
	return id.String()
}

// numbers counts the events and looks for gaps in the numbers of each origin,
// which begin at 1.
func (v *verification) numbers() error {
	var gaps [][2]int64
	last := int64(0)
	err := v.each(func(scan func(...any) error) error {
		var id int64
		if err := scan(&id); err != nil {
			return err
		}
		v.report.Events++
		if id>>seqBits != last>>seqBits {
			last = id >> seqBits << seqBits
		}
		if id != last+1 {
			gaps = append(gaps, [2]int64{last + 1, id - 1})
		}
		last = id
		return nil
	}, "SELECT id FROM event ORDER BY id")
	if len(v.report.IncompleteFrom) > 0 {
		return err
	}
	for _, gap := range gaps {
		v.missing(v.name(gap[0]), v.name(gap[1]))
	}
	return err
}

func (v *verification) missing(first, last string) {
	if first != last {
		first += " to " + last
	}
	v.report.Missing = append(v.report.Missing, first)
}

// channels looks at the numbers of the messages of each channel. It does not
// rely on the index of messages.
func (v *verification) channels() error {
	heads := map[string]int64{}
	if err := v.each(func(scan func(...any) error) error {
		var channel string
		var seq int64
		err := scan(&channel, &seq)
		heads[channel] = seq
		return err
	}, "SELECT channel, seq FROM head"); err != nil {
		return err
	}
	type message struct {
		id, ts, seq int64
		channel     string
	}
	var last message
	var odd []func() // findings that need names, which cost a query
	end := func() {
		if head := heads[last.channel]; head > last.seq && !v.partial && last.ts >= v.unlogged {
			v.gap(last.channel, last.seq+1, head)
		}
		delete(heads, last.channel)
	}
	err := v.each(func(scan func(...any) error) error {
		var m message
		if err := scan(&m.id, &m.ts, &m.channel, &m.seq); err != nil {
			return err
		}
		before := last
		if m.channel != before.channel {
			end()
			before = message{channel: m.channel}
		}
		last = m
		switch {
		case m.seq == before.seq && before.id != 0:
			odd = append(odd, func() {
				v.report.Duplicate = append(v.report.Duplicate, fmt.Sprintf("channel %s number %d: %s and %s", m.channel, m.seq, v.name(before.id), v.name(m.id)))
			})
			return nil
		case m.seq > before.seq+1 && before.ts >= v.unlogged && !(v.partial && before.id == 0) && len(v.report.IncompleteFrom) == 0:
			v.gap(m.channel, before.seq+1, m.seq-1)
		}
		if before.id != 0 && m.ts <= before.ts {
			odd = append(odd, func() {
				v.report.OutOfOrder = append(v.report.OutOfOrder, fmt.Sprintf("channel %s number %d: %s is not later than %s, number %d",
					m.channel, m.seq, v.name(m.id), v.name(before.id), before.seq))
			})
		}
		return nil
	}, "SELECT id, ts, channel, seq FROM event WHERE "+isMessage+" AND channel IS NOT NULL AND seq IS NOT NULL ORDER BY channel, seq, id")
	if err != nil {
		return err
	}
	end()
	for _, finding := range odd {
		finding()
	}
	return v.silent(heads)
}

func (v *verification) gap(channel string, first, last int64) {
	text := fmt.Sprintf("channel %s number %d", channel, first)
	if last != first {
		text += fmt.Sprintf(" to %d", last)
	}
	v.report.Missing = append(v.report.Missing, text)
}

// silent looks at channels that have a head and no message at all.
func (v *verification) silent(heads map[string]int64) error {
	if v.partial || v.unlogged > 0 {
		return nil
	}
	return v.each(func(scan func(...any) error) error {
		var channel string
		err := scan(&channel)
		if head := heads[channel]; head > 0 {
			v.gap(channel, 1, head)
		}
		return err
	}, "SELECT channel FROM head ORDER BY channel")
}

// index compares the index of messages with the log.
func (v *verification) index() error {
	return v.each(func(scan func(...any) error) error {
		var indexed, messages, wrong int64
		err := scan(&indexed, &messages, &wrong)
		if err == nil && (indexed != messages || wrong > 0) {
			v.report.Damage = append(v.report.Damage, fmt.Sprintf("the index of messages has %d entries, %d of them wrong, and the log has %d messages", indexed, wrong, messages))
		}
		return err
	}, `SELECT (SELECT count(*) FROM message),
		(SELECT count(*) FROM event WHERE id <= (SELECT through FROM indexed) AND `+isMessage+` AND channel IS NOT NULL AND seq IS NOT NULL),
		(SELECT count(*) FROM message m LEFT JOIN event e ON e.id = m.event WHERE e.channel IS NOT m.channel OR e.seq IS NOT m.seq)`)
}

// strangers are the live rows that cannot be: each query answers a line. A
// backlog may outlive its channel here: that was removed, or is in another graph
// since a split.
const strangers = `
SELECT 'the cursor of ' || c.reader || ' in ' || c.channel || ' stands at ' || c.seq || ', beyond the head ' || coalesce(h.seq, 0)
	FROM cursor c LEFT JOIN head h ON h.channel = c.channel WHERE c.until = 0 AND c.seq > coalesce(h.seq, 0)
UNION ALL SELECT 'the backlog of ' || c.reader || ' in ' || c.channel || ' ends at ' || c.until || ', beyond the head ' || h.seq
	FROM cursor c JOIN head h ON h.channel = c.channel WHERE c.until > h.seq
UNION ALL SELECT 'the backlog of ' || reader || ' in ' || channel || ' stands at ' || seq || ', beyond its end ' || until
	FROM cursor WHERE until <> 0 AND seq > until
UNION ALL SELECT 'the cursor of ' || reader || ' is in the channel ' || channel || ', which does not exist'
	FROM cursor WHERE until = 0 AND channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the cursor in ' || channel || ' is of the creature ' || reader || ', which does not exist'
	FROM cursor WHERE substr(reader, 1, 7) <> 'reader:' AND reader NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the edge of ' || creature || ' is to the channel ' || channel || ', which does not exist'
	FROM edge WHERE channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the edge to ' || channel || ' is of the creature ' || creature || ', which does not exist'
	FROM edge WHERE creature NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the head is of the channel ' || channel || ', which does not exist'
	FROM head WHERE channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the producer ' || producer || ' is of the channel ' || channel || ', which does not exist'
	FROM producer WHERE channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the inbox ' || id || ' is of the creature ' || inbox || ', which does not exist'
	FROM channel WHERE inbox <> '' AND inbox NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the state ' || key || ' is of the creature ' || creature || ', which does not exist'
	FROM state_value WHERE creature NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the timer ' || name || ' is of the creature ' || creature || ', which does not exist'
	FROM timer WHERE creature NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the request ' || lower(hex(o.uuid)) || '-' || (r.id & 0xffffffffff) || ' is of the creature ' || r.creature || ', which does not exist'
	FROM request r LEFT JOIN origin o ON o.no = r.id >> 40 WHERE r.creature NOT IN (SELECT id FROM creature)`

// liveRows checks that rows fit together. Dead letters may outlive their
// creature.
func (v *verification) liveRows() error {
	return v.each(func(scan func(...any) error) error {
		var line string
		err := scan(&line)
		if err == nil {
			v.report.Damage = append(v.report.Damage, line)
		}
		return err
	}, strangers)
}
