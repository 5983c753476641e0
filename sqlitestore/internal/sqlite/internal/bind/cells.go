package bind

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
)

// The kinds of cell. A cell is a byte for its kind and, unless it is NULL, 8 bytes in the
// machine's order: a number, or the length of the bytes that follow. direct.c reads them.
const (
	isNull = iota
	isInteger
	isReal
	isText
	isBlob
)

// Cells are values for the parameters of a statement, in order, perhaps for several
// executions. They hold copies of texts and blobs. The zero Cells are empty.
type Cells struct{ packed []byte }

// Size returns the number of bytes that the cells take.
func (c *Cells) Size() int { return len(c.packed) }

// Forget removes all cells. It keeps at most this many bytes of memory for the next ones.
func (c *Cells) Forget(most int) {
	c.packed = c.packed[:0]
	if cap(c.packed) > most {
		c.packed = nil
	}
}

// Split returns the cells before and after a size.
func (c *Cells) Split(size int) (before, after Cells) {
	return Cells{c.packed[:size]}, Cells{c.packed[size:]}
}

// Null adds NULL.
func (c *Cells) Null() { c.packed = append(c.packed, isNull) }

// Integer adds an integer.
func (c *Cells) Integer(n int64) { c.number(isInteger, uint64(n)) }

// OptionalInteger adds an integer, or NULL for 0, which means not applicable.
func (c *Cells) OptionalInteger(n int64) {
	if n == 0 {
		c.Null()
		return
	}
	c.Integer(n)
}

// Text adds a text.
func (c *Cells) Text(s string) {
	c.number(isText, uint64(len(s)))
	c.packed = append(c.packed, s...)
}

// OptionalText adds a text, or NULL for "".
func (c *Cells) OptionalText(s string) {
	if s == "" {
		c.Null()
		return
	}
	c.Text(s)
}

// OptionalBlob adds a blob, or NULL for nil.
func (c *Cells) OptionalBlob(b []byte) {
	if b == nil {
		c.Null()
		return
	}
	c.number(isBlob, uint64(len(b)))
	c.packed = append(c.packed, b...)
}

func (c *Cells) number(kind byte, n uint64) {
	c.packed = binary.NativeEndian.AppendUint64(append(c.packed, kind), n)
}

// Value adds a value of a type that the driver knows, except for times.
func (c *Cells) Value(v driver.Value) error {
	switch v := v.(type) {
	case nil:
		c.Null()
	case int64:
		c.Integer(v)
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		c.Integer(n)
	case float64:
		c.number(isReal, math.Float64bits(v))
	case string:
		c.Text(v)
	case []byte:
		c.OptionalBlob(v)
	default:
		return fmt.Errorf("values of the type %T are never written", v)
	}
	return nil
}

// next removes the first cell, and returns its value; without cells, NULL.
func (c *Cells) next() driver.Value {
	if len(c.packed) == 0 {
		return nil
	}
	kind := c.packed[0]
	if c.packed = c.packed[1:]; kind == isNull {
		return nil
	}
	n := binary.NativeEndian.Uint64(c.packed)
	c.packed = c.packed[8:]
	switch kind {
	case isInteger:
		return int64(n)
	case isReal:
		return math.Float64frombits(n)
	}
	bytes := c.packed[:n:n]
	if c.packed = c.packed[n:]; kind == isText {
		return string(bytes)
	}
	return bytes
}
