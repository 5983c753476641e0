package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite/internal/bind"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// Statement is prepared when it is first used: most stores never need most of them.
type Statement struct {
	c     *Conn
	query string
	raw   *sqlite3.Stmt
	bound bind.Statement // the same
	cells bind.Cells     // for the next execution
}

// NewStatement returns a statement of a connection.
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

// Run executes the statement.
func (s *Statement) Run(values []driver.Value) error {
	defer s.cells.Forget(keptCells)
	for _, v := range values {
		if err := s.cells.Value(v); err != nil {
			return err
		}
	}
	return s.execute(s.cells)
}

// execute executes the statement with cells for one or more executions.
func (s *Statement) execute(cells bind.Cells) error {
	if s.raw == nil {
		prepared, err := s.c.raw.PrepareContext(context.Background(), s.query)
		if err != nil {
			return err
		}
		raw, ok := prepared.(*sqlite3.Stmt)
		if !ok {
			return errors.Join(errors.New("the SQLite driver has prepared something else"), prepared.Close())
		}
		s.raw, s.bound = raw, bind.Of(raw)
	}
	return s.bound.Execute(cells)
}

const (
	// rowsPerInsert is the number of rows in a statement beyond which more rows make it no
	// faster.
	rowsPerInsert = 16
	// fullCells is the size at which waiting rows are written: by then the call to SQLite
	// costs nothing in comparison.
	fullCells = 64 << 10
	// keptCells is the most memory that a statement keeps. There may be many stores.
	keptCells = 128 << 10
)

// Bulk writes rows of one table, several with one statement. The values of a row are
// added in order, then [Bulk.EndRow] is called.
type Bulk struct {
	bind.Cells            // of the waiting rows
	Many, One  *Statement // for several rows, and for one
	rows       int        // that wait
	even       int        // size of the cells of the rows for Many
}

// NewBulk returns a Bulk for a statement, which is given without its values.
func NewBulk(c *Conn, columns int, query string) *Bulk {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	query += " VALUES "
	return &Bulk{One: NewStatement(c, query+row), Many: NewStatement(c, query+strings.Repeat(row+", ", rowsPerInsert-1)+row)}
}

// EndRow ends a row, and writes the waiting rows when there are enough.
func (b *Bulk) EndRow() error {
	if b.rows++; b.rows%rowsPerInsert == 0 {
		if b.even = b.Size(); b.even >= fullCells {
			return b.End()
		}
	}
	return nil
}

// End writes the remaining rows.
func (b *Bulk) End() error {
	several, single := b.Split(b.even)
	defer b.drop()
	if several.Size() > 0 {
		if err := b.Many.execute(several); err != nil {
			return err
		}
	}
	if single.Size() > 0 {
		return b.One.execute(single)
	}
	return nil
}

// drop forgets the waiting rows.
func (b *Bulk) drop() {
	b.rows, b.even = 0, 0
	b.Forget(keptCells)
}
