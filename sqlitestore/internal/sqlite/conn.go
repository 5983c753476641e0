package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// busyTimeout is how long a statement waits for another process's lock. It is
// long enough for a short transaction in the sqlite3 shell.
const busyTimeout = 5 * time.Second

// minSQLite is the first version without a race that could lose commits when
// the write-ahead log was reset.
const minSQLite = 3_051_003

// Library names the version of SQLite, and the library that it comes from.
func Library() string {
	version, _ := sqlite3.Version()
	return "SQLite " + version + " by " + sqlite3.Name
}

// FullText is the version of SQLite's full-text index, FTS4 or FTS5: no library has both.
const FullText = sqlite3.FullText

// CheckVersion refuses an SQLite that may lose commits.
func CheckVersion() error {
	if version, number := sqlite3.Version(); number < minSQLite {
		return &abi.Error{
			Code:    abi.Unsupported,
			Op:      "open",
			Message: "SQLite " + version + " may lose commits",
			Remedy:  "build with SQLite 3.51.3 or later",
		}
	}
	return nil
}

// Mode says what a connection may do with its file.
type Mode string

const (
	// ReadWrite is for a file that exists.
	ReadWrite Mode = "rw"
	// ReadOnly never changes the file, and empties no write-ahead log into it.
	ReadOnly Mode = "ro"
	// Create makes the file if it does not exist.
	Create Mode = "rwc"
	// leaving is for removing an empty write-ahead log. As it writes nothing else, the
	// file may have several names, like an export that was killed at its end.
	leaving Mode = "rw&cache=private"
	// Immutable is for read-only media: SQLite takes no locks and ignores a write-ahead
	// log.
	Immutable Mode = "ro&immutable=1"
)

// keptStatements is how many statements a connection keeps for repeated use.
const keptStatements = 24

// fileURI returns the name of a file in the form of a URI, so that no character of the
// path is misinterpreted.
func fileURI(path string, mode Mode) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=" + string(mode)
}

// Conn is a connection, which is used by one goroutine at a time. It bypasses
// database/sql, whose pool and contexts cost more than the statements.
type Conn struct {
	raw  *sqlite3.Conn
	Path string // of its file, for messages
	Mode Mode   // in which that was opened
	pace string // the pragma that was last set by SetDurable
}

// Open opens a database, whose content it does not trust.
func Open(path string, mode Mode) (*Conn, error) {
	if err := files.CheckDatabase(path, mode.writes()); err != nil {
		return nil, err
	}
	raw, err := openGuarded(fileURI(path, mode))
	if err != nil {
		return nil, err
	}
	return &Conn{raw: raw, Path: path, Mode: mode}, nil
}

// Temporary opens a database of its own that is removed when it is closed.
func Temporary() (*Conn, error) {
	raw, err := openGuarded("file:?mode=rwc")
	if err != nil {
		return nil, err
	}
	return &Conn{raw: raw, Path: "a temporary index"}, nil
}

// Close closes the connection. Uncommitted changes are rolled back.
func (c *Conn) Close() error {
	if c.Mode.writes() {
		// An interrupt that comes when its statement has just ended stays in effect until the
		// next statement begins. Until then, SQLite would not empty the write-ahead log.
		_ = c.Exec("SELECT 1")
	}
	return c.raw.Close()
}

// Exec runs statements.
func (c *Conn) Exec(query string, args ...driver.Value) error {
	return c.ExecWithin(context.Background(), query, args...)
}

// ExecWithin is [Conn.Exec] for long statements: SQLite is interrupted when ctx ends.
func (c *Conn) ExecWithin(ctx context.Context, query string, args ...driver.Value) error {
	_, err := c.raw.ExecContext(ctx, query, named(args))
	return err
}

// SetDurable sets whether commits from now on are durable. It is always set explicitly:
// the driver's default in the presence of a write-ahead log is not safe against power
// loss.
func (c *Conn) SetDurable(durable bool) error {
	pace := "PRAGMA synchronous = NORMAL"
	if durable {
		pace = "PRAGMA synchronous = FULL"
	}
	if pace == c.pace {
		return nil
	}
	if err := c.Exec(pace); err != nil {
		return err
	}
	c.pace = pace
	return nil
}

// Sync makes everything in the file durable. Only a commit that writes a page syncs the
// write-ahead log, and storing the version again writes one.
func (c *Conn) Sync(s *Schema) error {
	if err := c.SetDurable(true); err != nil {
		return err
	}
	return c.Exec(fmt.Sprintf("PRAGMA user_version = %d", s.Version))
}

// Query calls row with the columns of every row. The values are only valid
// during the call.
func (c *Conn) Query(query string, args []driver.Value, row func([]driver.Value) error) error {
	return c.QueryWithin(context.Background(), query, args, row)
}

// QueryWithin is [Conn.Query] for long queries: SQLite is interrupted when ctx ends.
func (c *Conn) QueryWithin(ctx context.Context, query string, args []driver.Value, row func([]driver.Value) error) error {
	rows, err := c.raw.QueryContext(ctx, query, named(args))
	if err != nil {
		return err
	}
	return each(ctx, rows, row)
}

// QueryOnce is [Conn.Query] for a statement that is executed once in the life of the connection. It
// does not take the place of a statement that is kept for repeated use.
func (c *Conn) QueryOnce(query string, row func([]driver.Value) error) (err error) {
	ctx := context.Background()
	st, err := c.raw.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	asked, ok := st.(driver.StmtQueryContext)
	if !ok {
		return errors.New("the SQLite driver has prepared something else")
	}
	rows, err := asked.QueryContext(ctx, nil)
	if err != nil {
		return err
	}
	return each(ctx, rows, row)
}

// each calls row with the columns of every row, and closes the rows.
func each(ctx context.Context, rows driver.Rows, row func([]driver.Value) error) error {
	defer rows.Close()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := ctx.Err(); err != nil { // an interrupt before a step is lost
			return err
		}
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

// Integer returns the first column of the first row; ok is false if there is no row, or
// the column is not an integer.
func (c *Conn) Integer(query string, args ...driver.Value) (n int64, ok bool, err error) {
	return c.IntegerWithin(context.Background(), query, args...)
}

// IntegerWithin is [Conn.Integer] for an untrusted file: SQLite is interrupted
// when ctx ends.
func (c *Conn) IntegerWithin(ctx context.Context, query string, args ...driver.Value) (n int64, ok bool, err error) {
	err = c.QueryWithin(ctx, query, args, func(v []driver.Value) error {
		n, ok = v[0].(int64)
		return nil
	})
	return n, ok, err
}

// Transact runs f in a transaction that takes the write lock at once.
func (c *Conn) Transact(f func() error) error {
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.Exec("COMMIT")
	}
	if err != nil {
		return errors.Join(err, c.Rollback())
	}
	return nil
}

// Attached calls f while another database is attached as parent, for reading.
func (c *Conn) Attached(path string, mode Mode, f func() error) error {
	if err := files.CheckDatabase(path, mode.writes()); err != nil {
		return err
	}
	if err := c.Exec("ATTACH ? AS parent", fileURI(path, mode)); err != nil {
		return err
	}
	return errors.Join(f(), c.Exec("DETACH parent"))
}

// CopyTo writes the content of the database, including its write-ahead log, to a new file
// that needs no other.
func (c *Conn) CopyTo(ctx context.Context, path string) error {
	return c.ExecWithin(ctx, "VACUUM INTO ?", path)
}

// Transacting reports whether a transaction has begun and has not ended.
func (c *Conn) Transacting() bool { return !c.raw.AutoCommit() }

// Rollback ends a transaction that failed, unless SQLite has done so already.
func (c *Conn) Rollback() error {
	if !c.Transacting() {
		return nil
	}
	return c.Exec("ROLLBACK")
}

func named(values []driver.Value) []driver.NamedValue {
	out := make([]driver.NamedValue, len(values))
	for i, v := range values {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return out
}
