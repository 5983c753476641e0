//go:build cgo && !windows && !purego

package bind

/*
#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup
#include "direct.h"
*/
import "C"

import (
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"unsafe"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// The fields of the driver's types that hold the pointers of SQLite. The driver does not
// export them.
var (
	statementField  = fieldOf(reflect.TypeFor[sqlite3.Stmt](), "s", "sqlite3_stmt")
	connectionField = fieldOf(reflect.TypeFor[sqlite3.Conn](), "db", "sqlite3")
)

// fieldOf finds a field that points to a type of C; nil if there is none.
func fieldOf(in reflect.Type, name, of string) []int {
	field, found := in.FieldByName(name)
	if !found || C.terrarium_linked() == 0 || field.Type.Kind() != reflect.Pointer || strings.TrimPrefix(field.Type.Elem().Name(), "_Ctype_struct_") != of {
		return nil
	}
	return field.Index
}

// pointer returns the value of such a field; nil if there is no such field.
func pointer(to any, field []int) unsafe.Pointer {
	if field == nil {
		return nil
	}
	return reflect.ValueOf(to).Elem().FieldByIndex(field).UnsafePointer()
}

// Defend turns on SQLite's defensive mode: statements cannot write to the schema table or
// to the shadow tables of virtual tables, nor turn off the journal. It reports whether
// the connection can be reached for that.
func Defend(conn *sqlite3.Conn) (reached bool, err error) {
	db := (*C.sqlite3)(pointer(conn, connectionField))
	if db == nil {
		return false, nil
	}
	if rc := C.terrarium_defend(db); rc != 0 {
		return true, fmt.Errorf("SQLite refuses its defensive mode (%d)", int(rc))
	}
	return true, nil
}

type directly struct {
	owner *sqlite3.Stmt // must not be finalized
	st    *C.sqlite3_stmt
}

// direct returns a statement that bypasses the driver, if its pointer can be reached.
func direct(st *sqlite3.Stmt) (Statement, bool) {
	raw := (*C.sqlite3_stmt)(pointer(st, statementField))
	return &directly{st, raw}, raw != nil
}

func (s *directly) Execute(cells Cells) error {
	if C.terrarium_execute(s.st, (*C.uchar)(unsafe.SliceData(cells.packed)), C.longlong(len(cells.packed))) == 0 {
		return nil
	}
	var failure C.terrarium_failure
	C.terrarium_fail(s.st, &failure)
	err := sqlite3.Error{Code: sqlite3.ErrNo(failure.code), ExtendedCode: sqlite3.ErrNoExtended(failure.extended)}
	if err.Code == sqlite3.ErrCantOpen || err.Code == sqlite3.ErrIoErr {
		err.SystemErrno = syscall.Errno(failure.system)
	}
	return &failed{err, C.GoString(&failure.message[0])}
}

// failed is an error of SQLite with its message: in the driver's type, only the driver can
// set the message.
type failed struct {
	code    sqlite3.Error
	message string
}

func (f *failed) Error() string {
	if f.code.SystemErrno != 0 {
		return f.message + ": " + f.code.SystemErrno.Error()
	}
	return f.message
}

// Unwrap returns the driver's error.
func (f *failed) Unwrap() error { return f.code }
