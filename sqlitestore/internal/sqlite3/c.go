//go:build cgo && !purego

package sqlite3

import (
	"errors"
	"fmt"
	"time"

	"github.com/mattn/go-sqlite3"
)

// Name is the name of the driver.
const Name = "mattn/go-sqlite3"

// FullText is the version of SQLite's full-text index: FTS4.
const FullText = 4

type (
	// Conn is a connection, for one goroutine at a time.
	Conn = sqlite3.SQLiteConn
	// Stmt is a prepared statement of a connection.
	Stmt = sqlite3.SQLiteStmt
	// Driver is the driver of connections.
	Driver = sqlite3.SQLiteDriver
	// Error is an error of SQLite.
	Error = sqlite3.Error
	// ErrNo is a result code of SQLite.
	ErrNo = sqlite3.ErrNo
	// ErrNoExtended is an extended result code of SQLite.
	ErrNoExtended = sqlite3.ErrNoExtended
)

// The result codes that callers tell apart.
var (
	ErrBusy       = sqlite3.ErrBusy
	ErrLocked     = sqlite3.ErrLocked
	ErrReadonly   = sqlite3.ErrReadonly
	ErrPerm       = sqlite3.ErrPerm
	ErrAuth       = sqlite3.ErrAuth
	ErrFull       = sqlite3.ErrFull
	ErrTooBig     = sqlite3.ErrTooBig
	ErrCorrupt    = sqlite3.ErrCorrupt
	ErrNotADB     = sqlite3.ErrNotADB
	ErrCantOpen   = sqlite3.ErrCantOpen
	ErrConstraint = sqlite3.ErrConstraint
	ErrIoErr      = sqlite3.ErrIoErr
	ErrIoErrFsync = sqlite3.ErrIoErrFsync
)

// The limits of a connection.
const (
	LimitLength       = sqlite3.SQLITE_LIMIT_LENGTH
	LimitSQLLength    = sqlite3.SQLITE_LIMIT_SQL_LENGTH
	LimitAttached     = sqlite3.SQLITE_LIMIT_ATTACHED
	LimitTriggerDepth = sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH
)

// Serialize returns the content of the file that a database in memory would have.
func Serialize(c *Conn) ([]byte, error) { return c.Serialize("") }

// Version returns the version of SQLite, as text and as a number.
func Version() (string, int) {
	text, number, _ := sqlite3.Version()
	return text, number
}

// Open opens the database that a URI names. The URI must have a query. A statement waits
// at most for the time busy for another process's lock. The connection keeps the given
// number of statements for repeated use.
func Open(uri string, busy time.Duration, kept int) (*Conn, error) {
	opened, err := (&sqlite3.SQLiteDriver{}).Open(fmt.Sprintf("%s&_busy_timeout=%d&_stmt_cache_size=%d&_mutex=no", uri, busy.Milliseconds(), kept))
	if err != nil {
		return nil, err
	}
	c, ok := opened.(*Conn)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver has opened something else"), opened.Close())
	}
	return c, nil
}
