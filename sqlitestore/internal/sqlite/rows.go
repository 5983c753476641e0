package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Querier is a pool of connections, or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Each calls row for every row of a query.
func Each(ctx context.Context, q Querier, row func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	scan := func(to ...any) error {
		if err := rows.Scan(to...); err != nil { // a column is of another type than it should be
			return Malformed("%s", strings.TrimPrefix(err.Error(), "sql: "))
		}
		return nil
	}
	for rows.Next() {
		if err := row(scan); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// EndRead ends a transaction that has only read; one whose context has ended
// is over already.
func EndRead(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// Unsigned scans an unsigned number. SQLite stores those in the upper half of the range as
// negative numbers.
func Unsigned(to *uint64) sql.Scanner { return unsigned{to} }

type unsigned struct{ to *uint64 }

// Scan takes an integer.
func (s unsigned) Scan(value any) error {
	n, ok := value.(int64)
	*s.to = uint64(n)
	if !ok {
		return fmt.Errorf("it is %s, and should be an integer", kindOfCell(value))
	}
	return nil
}
