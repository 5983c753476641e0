package sqlite

import (
	"database/sql/driver"
	"fmt"
)

// cellError says that a column holds a value of the wrong type. SQLite allows any type in
// any column of any file, so every column that is read is checked.
type cellError struct{ message string }

func (e *cellError) Error() string { return e.message }

// Malformed is the error for a value that no version of the program writes.
func Malformed(format string, args ...any) error { return &cellError{fmt.Sprintf(format, args...)} }

// TakeRow stores the columns of a row in variables: *int64, *uint64, *bool, *string,
// *[]byte or *[16]byte, or nil for a column to skip. None but []byte may be NULL.
func TakeRow[V driver.Value](row []V, to ...any) error {
	if len(row) < len(to) {
		return Malformed("a row has %d columns instead of %d", len(row), len(to))
	}
	for i, target := range to {
		if !put(row[i], target) {
			return Malformed("column %d of a row is %s, which %s", i+1, kindOfCell(row[i]), wantedCell(target))
		}
	}
	return nil
}

func put(cell driver.Value, target any) (ok bool) {
	switch to := target.(type) {
	case nil:
		return true
	case *int64:
		*to, ok = cell.(int64)
	case *uint64:
		var n int64
		n, ok = cell.(int64)
		*to = uint64(n)
	case *bool:
		var n int64
		n, ok = cell.(int64)
		*to = n != 0
	case *string:
		*to, ok = cell.(string)
	case *[]byte:
		*to, ok = cell.([]byte)
		ok = ok || cell == nil
	case *[16]byte:
		var b []byte
		b, ok = cell.([]byte)
		if ok = ok && len(b) == len(to); ok {
			*to = [16]byte(b)
		}
	}
	return ok
}

func kindOfCell(cell driver.Value) string {
	switch c := cell.(type) {
	case nil:
		return "NULL"
	case int64:
		return "an integer"
	case float64:
		return "a real number"
	case string:
		return "text"
	case []byte:
		return fmt.Sprintf("a blob of %d bytes", len(c))
	}
	return fmt.Sprintf("a %T", cell)
}

func wantedCell(target any) string {
	switch target.(type) {
	case *int64, *uint64, *bool:
		return "should be an integer"
	case *string:
		return "should be text"
	case *[]byte:
		return "should be a blob"
	case *[16]byte:
		return "should be a blob of 16 bytes"
	}
	return "is of a type that is not read"
}

// mostQuoted bounds how much of a value from a file a message repeats.
const mostQuoted = 80

// Shorten shortens a value from a file, for a message.
func Shorten(text string) string {
	if len(text) > mostQuoted {
		return text[:mostQuoted] + "…"
	}
	return text
}

// TextIn returns the text in a column of an untrusted file; "" for a value of another
// type.
func TextIn(v driver.Value) string {
	s, _ := v.(string)
	return s
}

// NumberIn returns the integer in a column; see [TextIn].
func NumberIn(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

// BytesIn returns the blob in a column; see [TextIn].
func BytesIn(v any) []byte {
	b, _ := v.([]byte)
	return b
}

// OptionalText stores "", which means not applicable, as NULL.
func OptionalText(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// OptionalInteger is [OptionalText] for 0.
func OptionalInteger(n int64) driver.Value {
	if n == 0 {
		return nil
	}
	return n
}

// OptionalBlob is [OptionalText] for nil.
func OptionalBlob(b []byte) driver.Value {
	if b == nil {
		return nil
	}
	return b
}
