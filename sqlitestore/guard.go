package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/mattn/go-sqlite3"

	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// The bounds of every connection. A file may come from a stranger, and SQLite would
// take what it says of its own sizes at its word.
const (
	// maxValue is the most bytes that a row, a text or a blob may have. The largest that
	// is written is far smaller: a message has 16 MiB at most.
	maxValue = 128 << 20
	// maxStatement bounds the text of what is in a schema.
	maxStatement = 1 << 20
	// maxAttached is for the one file that is read while another is written.
	maxAttached = 1
)

// connector opens the connections to one file.
type connector struct {
	path  string
	mode  fileMode
	setup []string // pragmas of every connection
	// prepare gives a connection the functions that its statements call; nil: none.
	prepare func(*sqlite3.SQLiteConn) error
}

var _ driver.Connector = connector{}

// Connect opens a connection for a pool.
func (k connector) Connect(context.Context) (driver.Conn, error) {
	c, err := k.open()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Driver is what the connections are of.
func (k connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

func (k connector) open() (*sqlite3.SQLiteConn, error) {
	if err := files.CheckDatabase(k.path, k.mode.writes()); err != nil {
		return nil, err
	}
	raw, err := openGuarded(dataSource(k.path, k.mode), k.setup...)
	if err != nil || k.prepare == nil {
		return raw, err
	}
	if err := k.prepare(raw); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

// openGuarded opens a connection that does not trust what is in its file: values have
// a bound, and what the schema calls can only be what does no harm. (The driver has no
// call for SQLITE_DBCONFIG_DEFENSIVE, which would bound what our own statements may do:
// no statement comes from a file, since its schema is compared with ours.)
func openGuarded(dsn string, setup ...string) (*sqlite3.SQLiteConn, error) {
	opened, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	raw, ok := opened.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver has opened something else"), opened.Close())
	}
	raw.SetLimit(sqlite3.SQLITE_LIMIT_LENGTH, maxValue)
	raw.SetLimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, maxStatement)
	raw.SetLimit(sqlite3.SQLITE_LIMIT_ATTACHED, maxAttached)
	raw.SetLimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1)
	for _, pragma := range append([]string{"PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON"}, setup...) {
		if _, err := raw.ExecContext(context.Background(), pragma, nil); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	return raw, nil
}

// writes reports whether a connection may change its file.
func (m fileMode) writes() bool { return m == readWrite || m == readWriteCreate }
