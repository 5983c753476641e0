package bind

import (
	"context"
	"database/sql/driver"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// Statement is a prepared statement that returns no rows.
type Statement interface {
	// Execute executes the statement, each time with as many cells as it has parameters,
	// until there are no more cells, and at least once. Parameters without a cell are NULL.
	// The error wraps one of the driver's.
	Execute(cells Cells) error
}

// Of returns the fastest way to execute a statement. The statement must not be closed
// before the last execution.
func Of(st *sqlite3.Stmt) Statement {
	if s, ok := direct(st); ok {
		return s
	}
	return &throughDriver{st: st, parameters: st.NumInput()}
}

// throughDriver executes a statement by the driver's own functions.
type throughDriver struct {
	st         *sqlite3.Stmt
	parameters int
	args       []driver.NamedValue
}

func (s *throughDriver) Execute(cells Cells) error {
	defer func() { clear(s.args[:cap(s.args)]) }() // the values must not be kept in memory
	for {
		s.args = s.args[:0]
		for i := range s.parameters {
			if v := cells.next(); v != nil { // parameters are NULL unless they are bound
				s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
			}
		}
		if _, err := s.st.ExecContext(context.Background(), s.args); err != nil || cells.Size() == 0 {
			return err
		}
	}
}
