package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// statement is prepared when it is first used: most stores never need most of
// them.
type statement struct {
	c     *conn
	query string
	raw   *sqlite3.SQLiteStmt
	args  []driver.NamedValue
}

// values executes the statement with the given arguments.
func (s *statement) values(values ...driver.Value) error { return s.run(values) }

// run executes the statement. Arguments that are NULL need not be bound, and
// binding is most of what a statement costs.
func (s *statement) run(values []driver.Value) error {
	if s.raw == nil {
		raw, err := s.c.raw.PrepareContext(context.Background(), s.query)
		if err != nil {
			return err
		}
		s.raw = raw.(*sqlite3.SQLiteStmt)
	}
	s.args = s.args[:0]
	for i, v := range values {
		if v != nil {
			s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
		}
	}
	_, err := s.raw.ExecContext(context.Background(), s.args)
	return err
}

// rowsPerInsert is where one statement for several rows stops gaining.
const rowsPerInsert = 16

// bulk writes rows of one table, several with one statement.
type bulk struct {
	many, one *statement
	columns   int
	pending   []driver.Value
}

// add takes a row, and writes those that wait when there are enough.
func (b *bulk) add(row ...driver.Value) error {
	b.pending = append(b.pending, row...)
	if len(b.pending) < rowsPerInsert*b.columns {
		return nil
	}
	err := b.many.run(b.pending)
	b.pending = b.pending[:0]
	return err
}

// end writes the rows that still wait.
func (b *bulk) end() error {
	for i := 0; i < len(b.pending); i += b.columns {
		if err := b.one.run(b.pending[i : i+b.columns]); err != nil {
			return err
		}
	}
	clear(b.pending[:cap(b.pending)]) // what is written must not be kept
	b.pending = b.pending[:0]
	return nil
}

// statements are those of a writer.
type statements struct {
	all []*statement

	events, cursors, heads     *bulk
	origin, producer           *statement
	setState, deleteState      *statement
	creature, channel, edge    *statement
	timer, request, letter     *statement
	wire, dropWire             *statement
	dropEdge, dropCursor, meta *statement
	dropTimer, dropRequest     *statement
	dropLetter, change         *statement
	dropCreature, dropChannel  []*statement
}

func newStatements(c *conn) statements {
	var s statements
	add := func(query string) *statement {
		st := &statement{c: c, query: query}
		s.all = append(s.all, st)
		return st
	}
	into := func(columns int, query string) *bulk {
		row := "(?" + strings.Repeat(", ?", columns-1) + ")"
		query += " VALUES "
		return &bulk{columns: columns, one: add(query + row), many: add(query + strings.Repeat(row+", ", rowsPerInsert-1) + row)}
	}
	s.events = into(13, "INSERT INTO event (id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause, sum)")
	s.cursors = into(5, "REPLACE INTO cursor (reader, channel, seq, until, alias)")
	s.heads = into(2, "REPLACE INTO head (channel, seq)")
	s.origin = add("INSERT INTO origin (no, uuid) VALUES (?, ?)")
	s.producer = add("REPLACE INTO producer (channel, producer, offset) VALUES (?, ?, ?)")
	s.setState = add("INSERT INTO state_value (creature, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value")
	s.deleteState = add("DELETE FROM state_value WHERE creature = ? AND key = ?")
	s.creature = add("REPLACE INTO creature (id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	s.channel = add("REPLACE INTO channel (id, name, description, deployment, address, born, report, inbox) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
	s.edge = add("REPLACE INTO edge (creature, channel, direction, alias, ord) VALUES (?, ?, ?, ?, ?)")
	s.timer = add("INSERT INTO timer (creature, name, due, period, payload) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET due = excluded.due, period = excluded.period, payload = excluded.payload")
	s.request = add("REPLACE INTO request (id, creature, tag, deadline) VALUES (?, ?, ?, ?)")
	s.wire = add("REPLACE INTO wire (id, name, source, target, with_content, prompt, predicate, allow_self, ord) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	s.letter = add("REPLACE INTO letter (id, ts, creature, message, kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	s.meta = add("REPLACE INTO meta (key, value) VALUES (?, ?)")
	s.change = add("INSERT INTO change (event, part, first, base, rows, sum) VALUES (?, ?, ?, ?, ?, ?)")
	s.dropEdge = add("DELETE FROM edge WHERE creature = ? AND channel = ? AND direction = ?")
	s.dropCursor = add("DELETE FROM cursor WHERE reader = ? AND channel = ? AND until = ?")
	s.dropTimer = add("DELETE FROM timer WHERE creature = ? AND name = ?")
	s.dropRequest = add("DELETE FROM request WHERE id = ?")
	s.dropWire = add("DELETE FROM wire WHERE id = ?")
	s.dropLetter = add("DELETE FROM letter WHERE id = ?")
	for _, query := range []string{
		"DELETE FROM creature WHERE id = ?",
		"DELETE FROM state_value WHERE creature = ?",
		"DELETE FROM cursor WHERE reader = ?",
		"DELETE FROM edge WHERE creature = ?",
		"DELETE FROM timer WHERE creature = ?",
		"DELETE FROM request WHERE creature = ?",
		"DELETE FROM wire WHERE source = ?",
	} {
		s.dropCreature = append(s.dropCreature, add(query))
	}
	for _, query := range []string{
		"DELETE FROM channel WHERE id = ?",
		"DELETE FROM head WHERE channel = ?",
		"DELETE FROM cursor WHERE channel = ?",
		"DELETE FROM producer WHERE channel = ?",
		"DELETE FROM edge WHERE channel = ?",
	} {
		s.dropChannel = append(s.dropChannel, add(query))
	}
	return s
}

func (s *statements) close() (err error) {
	for _, st := range s.all {
		if st.raw != nil {
			err = errors.Join(err, st.raw.Close())
		}
	}
	s.all = nil
	return err
}
