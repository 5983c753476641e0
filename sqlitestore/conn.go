package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// busyTimeout is how long a statement waits for another process's lock. It is
// long enough for somebody's short transaction in the sqlite3 shell.
const busyTimeout = 5 * time.Second

// minSQLite is the first version without a race that could lose commits when
// the write-ahead log was reset.
const minSQLite = 3_051_003

func checkSQLite() error {
	if version, number, _ := sqlite3.Version(); number < minSQLite {
		return &abi.Error{
			Code:    abi.Unsupported,
			Op:      "open",
			Message: "SQLite " + version + " may lose commits",
			Remedy:  "build with SQLite 3.51.3 or later",
		}
	}
	return nil
}

// fileMode says what a connection may do with its file.
type fileMode string

const (
	readWrite fileMode = "rw"
	readOnly  fileMode = "ro"
	// readWriteCreate makes the file if it is not there.
	readWriteCreate fileMode = "rwc"
	// leaving is for removing an empty write-ahead log. As it writes nothing else, the
	// file may have several names, as an export has that was killed at its end.
	leaving fileMode = "rw&cache=private"
	// immutable is for media that nobody can write to: SQLite takes no locks
	// and ignores a write-ahead log.
	immutable fileMode = "ro&immutable=1"
)

// dataSource is the name of a file in the form of a URI, so that no character
// of the path is taken for anything else. A connection is used by one goroutine
// at a time, so SQLite need not lock it.
func dataSource(path string, mode fileMode) string {
	return fmt.Sprintf("%s&_busy_timeout=%d&_stmt_cache_size=24&_mutex=no", fileURI(path, mode), busyTimeout.Milliseconds())
}

func fileURI(path string, mode fileMode) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=" + string(mode)
}

// conn is one connection that is used by one goroutine at a time. It goes past
// database/sql, whose pool and contexts cost more than the statements.
type conn struct {
	raw  *sqlite3.SQLiteConn
	path string
	pace string // the pragma that was last set by tempo
}

func openConn(path string, mode fileMode) (*conn, error) {
	raw, err := connector{path: path, mode: mode}.open()
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, path: path}, nil
}

// openTemporary opens a database that is nobody else's and goes when it is closed.
func openTemporary() (*conn, error) {
	raw, err := openGuarded("file:?_mutex=no&_stmt_cache_size=16")
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, path: "a temporary index"}, nil
}

func (c *conn) close() error { return c.raw.Close() }

func (c *conn) exec(query string, args ...driver.Value) error {
	return c.execWithin(context.Background(), query, args...)
}

// execWithin is exec for what takes long: SQLite is interrupted when ctx ends.
func (c *conn) execWithin(ctx context.Context, query string, args ...driver.Value) error {
	_, err := c.raw.ExecContext(ctx, query, named(args))
	return err
}

// tempo says whether commits from now on are durable. It is always set explicitly: the
// driver's default in the presence of a write-ahead log is not safe against power loss.
func (c *conn) tempo(durable bool) error {
	pace := "PRAGMA synchronous = NORMAL"
	if durable {
		pace = "PRAGMA synchronous = FULL"
	}
	if pace == c.pace {
		return nil
	}
	if err := c.exec(pace); err != nil {
		return err
	}
	c.pace = pace
	return nil
}

// sync makes everything durable that the file holds. Only a commit that writes a
// page syncs the write-ahead log, and storing the version again writes one.
func (c *conn) sync(s *schema) error {
	if err := c.tempo(true); err != nil {
		return err
	}
	return c.exec(fmt.Sprintf("PRAGMA user_version = %d", s.version))
}

// query calls row with the columns of every row. The values are only valid
// during the call.
func (c *conn) query(query string, args []driver.Value, row func([]driver.Value) error) error {
	return c.queryWithin(context.Background(), query, args, row)
}

// queryWithin is query for what takes long: SQLite is interrupted when ctx ends.
func (c *conn) queryWithin(ctx context.Context, query string, args []driver.Value, row func([]driver.Value) error) error {
	rows, err := c.raw.QueryContext(ctx, query, named(args))
	if err != nil {
		return err
	}
	defer rows.Close()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

// integer answers the first column of the first row; ok is false without a
// row or when it is NULL.
func (c *conn) integer(query string, args ...driver.Value) (n int64, ok bool, err error) {
	return c.integerWithin(context.Background(), query, args...)
}

// integerWithin is integer for a file that nobody vouches for: SQLite is interrupted
// when ctx ends.
func (c *conn) integerWithin(ctx context.Context, query string, args ...driver.Value) (n int64, ok bool, err error) {
	err = c.queryWithin(ctx, query, args, func(v []driver.Value) error {
		n, ok = v[0].(int64)
		return nil
	})
	return n, ok, err
}

// transact runs f in a transaction that takes the write lock at once.
func (c *conn) transact(f func() error) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

// attached calls f while another database is attached as parent, for reading.
func (c *conn) attached(path string, mode fileMode, f func() error) error {
	if err := files.CheckDatabase(path, mode.writes()); err != nil {
		return err
	}
	if err := c.exec("ATTACH ? AS parent", fileURI(path, mode)); err != nil {
		return err
	}
	return errors.Join(f(), c.exec("DETACH parent"))
}

// rollback ends a transaction that failed, unless SQLite did so already.
func (c *conn) rollback() error {
	if c.raw.AutoCommit() {
		return nil
	}
	return c.exec("ROLLBACK")
}

func named(values []driver.Value) []driver.NamedValue {
	out := make([]driver.NamedValue, len(values))
	for i, v := range values {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return out
}

// openPool opens a pool of connections for reading.
func openPool(path string, mode fileMode, connections int) (*sql.DB, error) {
	if err := files.CheckDatabase(path, mode.writes()); err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{path: path, mode: mode, setup: []string{"PRAGMA query_only = ON"}})
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(1) // a connection costs descriptors, and there may be many stores
	db.SetConnMaxIdleTime(time.Minute)
	return db, nil
}
