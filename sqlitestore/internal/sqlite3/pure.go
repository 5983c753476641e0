//go:build !cgo || purego

package sqlite3

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"time"
	"unsafe"

	"modernc.org/libc"
	c "modernc.org/sqlite/lib"
)

// Name is the name of the driver.
const Name = "modernc.org/sqlite"

// FullText is the version of SQLite's full-text index: FTS5.
const FullText = 5

// Version returns the version of SQLite, as text and as a number.
func Version() (string, int) { return c.SQLITE_VERSION, c.SQLITE_VERSION_NUMBER }

// Driver is the driver of connections.
type Driver struct{}

// Open opens the database that a URI names.
func (*Driver) Open(uri string) (driver.Conn, error) { return Open(uri, 0, 0) }

// Conn is a connection, for one goroutine at a time. After Close it only returns errors.
type Conn struct {
	tls  *libc.TLS // nil after Close
	db   uintptr
	kept int
	// statements have been executed, and are not in use, the oldest first.
	statements []*Stmt
	registered []uintptr // functions
}

var _ interface {
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
} = (*Conn)(nil)

// Open opens the database that a URI names. A statement waits at most for the time busy
// for another process's lock. The connection keeps the given number of statements for
// repeated use.
func Open(uri string, busy time.Duration, kept int) (_ *Conn, err error) {
	conn := &Conn{tls: libc.NewTLS(), kept: kept}
	name, out := conn.text(uri), conn.tls.Alloc(int(unsafe.Sizeof(uintptr(0))))
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if name == 0 {
		return nil, errNoMemory
	}
	code := c.Xsqlite3_open_v2(conn.tls, name, out, c.SQLITE_OPEN_NOMUTEX|c.SQLITE_OPEN_READWRITE|c.SQLITE_OPEN_CREATE|c.SQLITE_OPEN_URI, 0)
	conn.db = *(*uintptr)(at(out))
	conn.tls.Free(int(unsafe.Sizeof(uintptr(0))))
	libc.Xfree(conn.tls, name)
	if code != c.SQLITE_OK {
		return nil, conn.failure(code)
	}
	c.Xsqlite3_extended_result_codes(conn.tls, conn.db, 1)
	c.Xsqlite3_busy_timeout(conn.tls, conn.db, int32(busy.Milliseconds()))
	return conn, nil
}

// Serialize returns the content of the file that a database in memory would have.
func Serialize(conn *Conn) ([]byte, error) {
	name, size := conn.text("main"), conn.tls.Alloc(8)
	defer conn.tls.Free(8)
	if name == 0 {
		return nil, errNoMemory
	}
	defer libc.Xfree(conn.tls, name)
	content := c.Xsqlite3_serialize(conn.tls, conn.db, name, size, 0)
	if content == 0 {
		return nil, errNoMemory
	}
	defer c.Xsqlite3_free(conn.tls, content)
	return slices.Clone(unsafe.Slice((*byte)(at(content)), *(*int64)(at(size)))), nil
}

// Defend sets SQLite's defensive mode.
func (conn *Conn) Defend() error {
	values := conn.tls.Alloc(16)
	defer conn.tls.Free(16)
	if code := c.Xsqlite3_db_config(conn.tls, conn.db, c.SQLITE_DBCONFIG_DEFENSIVE, libc.VaList(values, int32(1), uintptr(0))); code != c.SQLITE_OK {
		return conn.failure(code)
	}
	return nil
}

// SetLimit sets a limit, and returns the former one.
func (conn *Conn) SetLimit(id, value int) int {
	return int(c.Xsqlite3_limit(conn.tls, conn.db, int32(id), int32(value)))
}

// AutoCommit reports whether no transaction has begun.
func (conn *Conn) AutoCommit() bool {
	return conn.tls == nil || c.Xsqlite3_get_autocommit(conn.tls, conn.db) != 0
}

// Close closes the connection. Its statements must have been closed.
func (conn *Conn) Close() error {
	if conn.tls == nil {
		return nil
	}
	conn.forget(0)
	var err error
	if code := c.Xsqlite3_close_v2(conn.tls, conn.db); code != c.SQLITE_OK {
		err = conn.failure(code)
	}
	for _, number := range conn.registered {
		functions.Delete(number)
	}
	conn.tls.Close()
	conn.tls, conn.db, conn.registered = nil, 0, nil
	return err
}

// forget closes all kept statements but the newest.
func (conn *Conn) forget(newest int) {
	for len(conn.statements) > newest {
		_ = conn.statements[0].finalize() // its result was returned when it was executed
		conn.statements = conn.statements[1:]
	}
}

// Prepare is PrepareContext.
func (conn *Conn) Prepare(query string) (driver.Stmt, error) {
	return conn.PrepareContext(context.Background(), query)
}

// PrepareContext compiles the first statement of the query.
func (conn *Conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	st, _, err := conn.prepare(query)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// prepare compiles the first statement of a query, and returns the rest of it. The
// statement is nil if there is none.
func (conn *Conn) prepare(query string) (st *Stmt, rest string, err error) {
	if conn.tls == nil {
		return nil, "", driver.ErrBadConn
	}
	for i, kept := range conn.statements {
		if kept.query == query {
			conn.statements = append(conn.statements[:i:i], conn.statements[i+1:]...)
			return kept, "", nil
		}
	}
	if strings.IndexByte(query, 0) >= 0 {
		return nil, "", errors.New("a statement has a zero byte")
	}
	text := conn.text(query)
	if text == 0 {
		return nil, "", errNoMemory
	}
	defer libc.Xfree(conn.tls, text)
	const size = int(unsafe.Sizeof(uintptr(0)))
	out := conn.tls.Alloc(2 * size)
	defer conn.tls.Free(2 * size)
	tail := out + uintptr(size)
	if code := c.Xsqlite3_prepare_v3(conn.tls, conn.db, text, int32(len(query)+1), 0, out, tail); code != c.SQLITE_OK {
		return nil, "", conn.failure(code)
	}
	rest = strings.TrimSpace(query[*(*uintptr)(at(tail))-text:])
	raw := *(*uintptr)(at(out))
	if raw == 0 {
		return nil, rest, nil
	}
	return &Stmt{conn: conn, raw: raw, query: query, alone: rest == ""}, rest, nil
}

// ExecContext executes all statements of a query.
func (conn *Conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result := driver.Result(driver.ResultNoRows)
	for query != "" {
		st, rest, err := conn.prepare(query)
		if err != nil {
			return nil, err
		}
		query = rest
		if st == nil {
			continue
		}
		own := make([]driver.NamedValue, min(st.NumInput(), len(args)))
		for i := range own {
			own[i] = driver.NamedValue{Ordinal: i + 1, Value: args[i].Value}
		}
		result, err = st.ExecContext(ctx, own)
		if args = args[len(own):]; err != nil {
			return nil, errors.Join(err, st.finalize())
		}
		conn.keep(st)
	}
	return result, nil
}

// keep keeps a statement for repeated use.
func (conn *Conn) keep(st *Stmt) {
	if !st.alone || conn.kept == 0 {
		_ = st.finalize() // its result was returned when it was executed
		return
	}
	conn.statements = append(conn.statements, st)
	conn.forget(conn.kept)
}

// QueryContext executes a query of one statement.
func (conn *Conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	st, _, err := conn.prepare(query)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return nil, errors.New("the query is empty")
	}
	rows, err := st.begin(ctx, args)
	if err != nil {
		return nil, errors.Join(err, st.finalize())
	}
	rows.owned = true
	return rows, nil
}

// Begin is BeginTx.
func (conn *Conn) Begin() (driver.Tx, error) {
	return conn.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx begins a transaction that takes no lock yet.
func (conn *Conn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if _, err := conn.ExecContext(ctx, "BEGIN", nil); err != nil {
		return nil, err
	}
	return tx{conn}, nil
}

type tx struct{ conn *Conn }

// Commit implements [driver.Tx].
func (t tx) Commit() error { return t.end("COMMIT") }

// Rollback implements [driver.Tx].
func (t tx) Rollback() error { return t.end("ROLLBACK") }

func (t tx) end(how string) error {
	_, err := t.conn.ExecContext(context.Background(), how, nil)
	if err != nil && !t.conn.AutoCommit() { // a transaction that could not be committed does not stay open
		_, rollbackErr := t.conn.ExecContext(context.Background(), "ROLLBACK", nil)
		err = errors.Join(err, rollbackErr)
	}
	return err
}

// at converts an address in SQLite's memory, which Go's collector does not move or free.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// text copies a text into SQLite's memory, with a zero byte at its end; 0 if there is no
// memory for it.
func (conn *Conn) text(s string) uintptr {
	p := libc.Xmalloc(conn.tls, libc.Tsize_t(len(s)+1))
	if p != 0 {
		memory := unsafe.Slice((*byte)(at(p)), len(s)+1)
		memory[copy(memory, s)] = 0
	}
	return p
}

var errNoMemory = errors.New("out of memory")
