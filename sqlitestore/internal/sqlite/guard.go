package sqlite

import (
	"context"
	"errors"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite/internal/bind"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// The bounds of every connection. A file may come from an untrusted source, and SQLite
// would believe the sizes that it states.
const (
	// maxValue is the largest size of a row, a text or a blob, in bytes. All written values
	// are far smaller: a message has at most 16 MiB.
	maxValue = 128 << 20
	// maxStatement bounds the text of the statements in a schema.
	maxStatement = 1 << 20
	// maxAttached is for the one file that is read while another is written.
	maxAttached = 1
)

// openGuarded opens a connection that does not trust the content of its file: values are
// bounded, the schema can only call harmless functions, and SQLite's defensive mode is on,
// where it can be set.
func openGuarded(uri string) (*sqlite3.Conn, error) {
	raw, err := sqlite3.Open(uri, busyTimeout, keptStatements)
	if err != nil {
		return nil, err
	}
	raw.SetLimit(sqlite3.LimitLength, maxValue)
	raw.SetLimit(sqlite3.LimitSQLLength, maxStatement)
	raw.SetLimit(sqlite3.LimitAttached, maxAttached)
	raw.SetLimit(sqlite3.LimitTriggerDepth, 1)
	if _, err := bind.Defend(raw); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	for _, pragma := range []string{"PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON"} {
		if _, err := raw.ExecContext(context.Background(), pragma, nil); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	return raw, nil
}

// writes reports whether a connection may change its file.
func (m Mode) writes() bool { return m == ReadWrite || m == Create }
