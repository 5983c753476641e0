//go:build !cgo || purego

package sqlite3

import (
	"modernc.org/libc"
	c "modernc.org/sqlite/lib"
	"sync"
	"sync/atomic"
	"unsafe"
)

// functions are those that SQL can call, by the number that SQLite passes to call.
var functions struct {
	sync.Map // by number
	last     atomic.Uintptr
}

// RegisterFunc lets SQL of the connection call a function of any number of values.
func (conn *Conn) RegisterFunc(name string, function func(...any) (int64, error), deterministic bool) error {
	number := functions.last.Add(1)
	functions.Store(number, function)
	conn.registered = append(conn.registered, number)
	text := conn.text(name)
	if text == 0 {
		return errNoMemory
	}
	defer libc.Xfree(conn.tls, text)
	how := int32(c.SQLITE_UTF8)
	if deterministic {
		how |= c.SQLITE_DETERMINISTIC
	}
	f := call
	pointer := *(*uintptr)(unsafe.Pointer(&f)) // as translated C calls a function of Go
	if code := c.Xsqlite3_create_function_v2(conn.tls, conn.db, text, -1, how, number, pointer, 0, 0, 0); code != c.SQLITE_OK {
		return conn.failure(code)
	}
	return nil
}

// call calls a function with the values that SQL gives it.
func call(tls *libc.TLS, ctx uintptr, n int32, values uintptr) {
	found, _ := functions.Load(c.Xsqlite3_user_data(tls, ctx))
	f, ok := found.(func(...any) (int64, error))
	if !ok {
		c.Xsqlite3_result_error_code(tls, ctx, c.SQLITE_MISUSE)
		return
	}
	given := make([]any, n)
	for i, v := range unsafe.Slice((*uintptr)(at(values)), n) {
		switch c.Xsqlite3_value_type(tls, v) {
		case c.SQLITE_INTEGER:
			given[i] = c.Xsqlite3_value_int64(tls, v)
		case c.SQLITE_FLOAT:
			given[i] = c.Xsqlite3_value_double(tls, v)
		case c.SQLITE_TEXT:
			p := c.Xsqlite3_value_text(tls, v) // before its size
			given[i] = string(memory(p, c.Xsqlite3_value_bytes(tls, v)))
		case c.SQLITE_BLOB:
			p := c.Xsqlite3_value_blob(tls, v)
			given[i] = append([]byte{}, memory(p, c.Xsqlite3_value_bytes(tls, v))...)
		}
	}
	result, err := f(given...)
	if err != nil {
		text := libc.Xmalloc(tls, libc.Tsize_t(len(err.Error())+1))
		if text == 0 {
			c.Xsqlite3_result_error_nomem(tls, ctx)
			return
		}
		defer libc.Xfree(tls, text)
		copy(unsafe.Slice((*byte)(at(text)), len(err.Error())), err.Error())
		c.Xsqlite3_result_error(tls, ctx, text, int32(len(err.Error())))
		return
	}
	c.Xsqlite3_result_int64(tls, ctx, result)
}
