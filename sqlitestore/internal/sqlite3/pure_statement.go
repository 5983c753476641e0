//go:build !cgo || purego

package sqlite3

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"modernc.org/libc"
	c "modernc.org/sqlite/lib"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Stmt is a prepared statement of a connection.
type Stmt struct {
	conn  *Conn
	raw   uintptr // 0 after Close
	query string
	alone bool // the query has no other statement
}

var _ interface {
	driver.StmtExecContext
	driver.StmtQueryContext
} = (*Stmt)(nil)

// NumInput returns the number of the statement's parameters.
func (st *Stmt) NumInput() int {
	if st.raw == 0 || st.conn.tls == nil {
		return 0
	}
	return int(c.Xsqlite3_bind_parameter_count(st.conn.tls, st.raw))
}

// Close closes the statement.
func (st *Stmt) Close() error { return st.finalize() }

func (st *Stmt) finalize() error {
	if st.raw != 0 && st.conn.tls != nil {
		c.Xsqlite3_finalize(st.conn.tls, st.raw) // its result is that of the last execution
	}
	st.raw = 0
	return nil
}

// reset makes the statement ready for the next execution.
func (st *Stmt) reset() {
	if st.raw != 0 && st.conn.tls != nil {
		c.Xsqlite3_reset(st.conn.tls, st.raw)
		c.Xsqlite3_clear_bindings(st.conn.tls, st.raw)
	}
}

// Exec is ExecContext.
func (st *Stmt) Exec(args []driver.Value) (driver.Result, error) {
	return st.ExecContext(context.Background(), named(args))
}

// ExecContext executes the statement.
func (st *Stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	rows, err := st.begin(ctx, args)
	if err != nil {
		return nil, err
	}
	for err == nil {
		err = rows.step()
	}
	if err = errors.Join(rows.Close(), ended(err)); err != nil {
		return nil, err
	}
	return driver.RowsAffected(c.Xsqlite3_changes64(st.conn.tls, st.conn.db)), nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Query is QueryContext.
func (st *Stmt) Query(args []driver.Value) (driver.Rows, error) {
	return st.QueryContext(context.Background(), named(args))
}

// QueryContext begins to execute the statement.
func (st *Stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := st.begin(ctx, args)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func (st *Stmt) begin(ctx context.Context, args []driver.NamedValue) (*Rows, error) {
	if st.raw == 0 || st.conn.tls == nil {
		return nil, driver.ErrBadConn
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range args {
		if err := st.bind(args[i].Ordinal, args[i].Value); err != nil {
			st.reset()
			return nil, err
		}
	}
	return &Rows{st: st, watch: st.conn.interruptAfter(ctx)}, nil
}

func named(values []driver.Value) []driver.NamedValue {
	out := make([]driver.NamedValue, len(values))
	for i, v := range values {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return out
}

// transient makes SQLite copy what is bound.
const transient = ^uintptr(0)

func (st *Stmt) bind(ordinal int, value driver.Value) error {
	tls, i := st.conn.tls, int32(ordinal)
	var code int32
	switch v := value.(type) {
	case nil:
		code = c.Xsqlite3_bind_null(tls, st.raw, i)
	case int64:
		code = c.Xsqlite3_bind_int64(tls, st.raw, i, v)
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		code = c.Xsqlite3_bind_int64(tls, st.raw, i, n)
	case float64:
		code = c.Xsqlite3_bind_double(tls, st.raw, i, v)
	case string:
		p := st.conn.text(v)
		if p == 0 {
			return errNoMemory
		}
		code = c.Xsqlite3_bind_text(tls, st.raw, i, p, int32(len(v)), transient)
		libc.Xfree(tls, p)
	case []byte:
		switch {
		case v == nil:
			code = c.Xsqlite3_bind_null(tls, st.raw, i)
		case len(v) == 0:
			code = c.Xsqlite3_bind_zeroblob(tls, st.raw, i, 0)
		default:
			p := libc.Xmalloc(tls, libc.Tsize_t(len(v)))
			if p == 0 {
				return errNoMemory
			}
			copy(unsafe.Slice((*byte)(at(p)), len(v)), v)
			code = c.Xsqlite3_bind_blob(tls, st.raw, i, p, int32(len(v)), transient)
			libc.Xfree(tls, p)
		}
	default:
		return errors.New("values of this type are never written")
	}
	if code != c.SQLITE_OK {
		return st.conn.failure(code)
	}
	return nil
}

// Rows are the rows of a query.
type Rows struct {
	st    *Stmt
	watch *watch
	owned bool // the statement belongs to the query
	done  bool
}

// Columns returns the names of the columns.
func (r *Rows) Columns() []string {
	out := make([]string, c.Xsqlite3_column_count(r.st.conn.tls, r.st.raw))
	for i := range out {
		out[i] = libc.GoString(c.Xsqlite3_column_name(r.st.conn.tls, r.st.raw, int32(i)))
	}
	return out
}

// step goes to the next row; after the last, the error is io.EOF.
func (r *Rows) step() error {
	if r.done || r.st.conn.tls == nil {
		return io.EOF
	}
	if r.watch.interrupted.Load() { // before the first step, which would not notice
		return r.watch.cause()
	}
	switch code := c.Xsqlite3_step(r.st.conn.tls, r.st.raw); code {
	case c.SQLITE_ROW:
		return nil
	case c.SQLITE_DONE:
		r.done = true
		return io.EOF
	default:
		if code&0xff == c.SQLITE_INTERRUPT && r.watch.interrupted.Load() {
			return r.watch.cause()
		}
		return r.st.conn.failure(code)
	}
}

// Next implements [driver.Rows].
func (r *Rows) Next(row []driver.Value) error {
	if err := r.step(); err != nil {
		return err
	}
	tls, raw := r.st.conn.tls, r.st.raw
	for i := range row {
		switch n := int32(i); c.Xsqlite3_column_type(tls, raw, n) {
		case c.SQLITE_INTEGER:
			row[i] = c.Xsqlite3_column_int64(tls, raw, n)
		case c.SQLITE_FLOAT:
			row[i] = c.Xsqlite3_column_double(tls, raw, n)
		case c.SQLITE_TEXT:
			p := c.Xsqlite3_column_text(tls, raw, n) // before its size
			row[i] = string(memory(p, c.Xsqlite3_column_bytes(tls, raw, n)))
		case c.SQLITE_BLOB:
			p := c.Xsqlite3_column_blob(tls, raw, n)
			row[i] = append([]byte{}, memory(p, c.Xsqlite3_column_bytes(tls, raw, n))...)
		default:
			row[i] = nil
		}
	}
	return nil
}

// memory returns memory of SQLite, which is valid until the next call for the same row.
func memory(p uintptr, size int32) []byte {
	if p == 0 || size <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(at(p)), size)
}

// Close ends the query.
func (r *Rows) Close() error {
	if r.watch == nil {
		return nil
	}
	r.watch.end()
	r.watch = nil
	r.st.reset()
	if r.owned {
		r.st.conn.keep(r.st)
	}
	return nil
}

// watch interrupts a connection when a context ends.
type watch struct {
	stop        func() bool
	wait        sync.WaitGroup
	interrupted atomic.Bool
	cause       func() error // why, if it was interrupted
}

func (conn *Conn) interruptAfter(ctx context.Context) *watch {
	w := &watch{}
	if ctx.Done() == nil {
		return w
	}
	db := conn.db
	w.cause = ctx.Err
	w.wait.Add(1)
	w.stop = context.AfterFunc(ctx, func() {
		defer w.wait.Done()
		tls := libc.NewTLS()
		defer tls.Close()
		w.interrupted.Store(true)
		c.Xsqlite3_interrupt(tls, db)
	})
	return w
}

// end waits for an interrupt that has begun, so that it does not affect the next
// statement.
func (w *watch) end() {
	if w.stop == nil {
		return
	}
	if w.stop() {
		w.wait.Done()
	}
	w.wait.Wait()
}
