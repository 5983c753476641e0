package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// Statement is prepared when it is first used: most stores never need most of them.
type Statement struct {
	c     *Conn
	query string
	raw   *sqlite3.SQLiteStmt
	args  []driver.NamedValue
}

// NewStatement is a statement of a connection.
func NewStatement(c *Conn, query string) *Statement { return &Statement{c: c, query: query} }

// Close closes the statement, before its connection is closed.
func (s *Statement) Close() error {
	if s.raw == nil {
		return nil
	}
	return s.raw.Close()
}

// Values executes the statement with the given arguments.
func (s *Statement) Values(values ...driver.Value) error { return s.Run(values) }

// Run executes the statement. Arguments that are NULL need not be bound, and
// binding is most of what a statement costs.
func (s *Statement) Run(values []driver.Value) error {
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

// Bulk writes rows of one table, several with one statement.
type Bulk struct {
	Many, One *Statement // for several rows, and for one
	columns   int
	pending   []driver.Value
}

// NewBulk writes rows by a statement that ends before its values.
func NewBulk(c *Conn, columns int, query string) *Bulk {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	query += " VALUES "
	return &Bulk{columns: columns, One: NewStatement(c, query+row), Many: NewStatement(c, query+strings.Repeat(row+", ", rowsPerInsert-1)+row)}
}

// Add takes a row, and writes the waiting rows when there are enough.
func (b *Bulk) Add(row ...driver.Value) error {
	b.pending = append(b.pending, row...)
	if len(b.pending) < rowsPerInsert*b.columns {
		return nil
	}
	err := b.Many.Run(b.pending)
	b.pending = b.pending[:0]
	return err
}

// End writes the remaining rows.
func (b *Bulk) End() error {
	for i := 0; i < len(b.pending); i += b.columns {
		if err := b.One.Run(b.pending[i : i+b.columns]); err != nil {
			return err
		}
	}
	clear(b.pending[:cap(b.pending)]) // written rows must not be kept
	b.pending = b.pending[:0]
	return nil
}
