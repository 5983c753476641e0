//go:build !cgo || purego

package sqlite3

import (
	"modernc.org/libc"
	c "modernc.org/sqlite/lib"
	"syscall"
)

// Error is an error of SQLite.
type Error struct {
	Code         ErrNo
	ExtendedCode ErrNoExtended
	SystemErrno  syscall.Errno // of the operating system; 0 if it has none
	text         string
}

// Error returns SQLite's text.
func (e Error) Error() string {
	if e.SystemErrno != 0 {
		return e.text + ": " + e.SystemErrno.Error()
	}
	return e.text
}

type (
	// ErrNo is a result code of SQLite.
	ErrNo int
	// ErrNoExtended is an extended result code of SQLite.
	ErrNoExtended int
)

// The result codes that callers tell apart.
const (
	ErrBusy       = ErrNo(c.SQLITE_BUSY)
	ErrLocked     = ErrNo(c.SQLITE_LOCKED)
	ErrReadonly   = ErrNo(c.SQLITE_READONLY)
	ErrPerm       = ErrNo(c.SQLITE_PERM)
	ErrAuth       = ErrNo(c.SQLITE_AUTH)
	ErrFull       = ErrNo(c.SQLITE_FULL)
	ErrTooBig     = ErrNo(c.SQLITE_TOOBIG)
	ErrCorrupt    = ErrNo(c.SQLITE_CORRUPT)
	ErrNotADB     = ErrNo(c.SQLITE_NOTADB)
	ErrCantOpen   = ErrNo(c.SQLITE_CANTOPEN)
	ErrConstraint = ErrNo(c.SQLITE_CONSTRAINT)
	ErrIoErr      = ErrNo(c.SQLITE_IOERR)
	ErrIoErrFsync = ErrNoExtended(c.SQLITE_IOERR_FSYNC)
)

// The limits of a connection.
const (
	LimitLength       = c.SQLITE_LIMIT_LENGTH
	LimitSQLLength    = c.SQLITE_LIMIT_SQL_LENGTH
	LimitAttached     = c.SQLITE_LIMIT_ATTACHED
	LimitTriggerDepth = c.SQLITE_LIMIT_TRIGGER_DEPTH
)

func (conn *Conn) failure(code int32) error {
	e := Error{Code: ErrNo(code & 0xff), ExtendedCode: ErrNoExtended(code), text: libc.GoString(c.Xsqlite3_errstr(conn.tls, code))}
	if conn.db == 0 {
		return e
	}
	e.text = libc.GoString(c.Xsqlite3_errmsg(conn.tls, conn.db))
	if e.Code == ErrCantOpen || e.Code == ErrIoErr && code != c.SQLITE_IOERR_NOMEM {
		e.SystemErrno = syscall.Errno(c.Xsqlite3_system_errno(conn.tls, conn.db))
	}
	return e
}
