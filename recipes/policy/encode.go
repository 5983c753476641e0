package policy

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// encode formats a value like JSON.stringify, but many times as fast. Anything but plain
// data is left to that function, and so are large values, which are measured there first.
// The text is valid until the next call. ok is false if the value has no JSON.
func (i *isolate) encode(v goja.Value) (text []byte, ok bool, err error) {
	i.encoder = encoder{out: i.encoder.out[:0]}
	if _, err := i.encodePlain(goja.Undefined(), v); err != nil {
		return nil, false, err
	}
	if i.encoder.whole {
		return i.encoder.out, true, nil
	}
	written, err := i.write(goja.Undefined(), v)
	if err != nil {
		return nil, false, err
	}
	s, ok := written.Export().(string)
	return []byte(s), ok, nil
}

// encodePlainData is encodePlain. It is a function of the runtime, because it may run the
// script, whose exceptions must end there.
func (i *isolate) encodePlainData(call goja.FunctionCall) goja.Value {
	i.encoder.whole = i.encoder.value(call.Argument(0))
	return goja.Undefined()
}

// encoder appends JSON. Its methods return false to leave a value to JSON.stringify.
type encoder struct {
	out   []byte
	depth int
	whole bool // the value has been written
}

// The bounds of the encoder. Both are above what a policy may remember.
const (
	maxEncoded = 32 << 10 // bytes
	maxListed  = 16 << 10 // elements of an array
)

func (e *encoder) value(v goja.Value) bool {
	if o, ok := v.(*goja.Object); ok {
		return e.object(o)
	}
	switch x := v.Export().(type) {
	case nil:
		if !goja.IsNull(v) {
			return false
		}
		e.out = append(e.out, "null"...)
	case bool:
		e.out = strconv.AppendBool(e.out, x)
	case int64:
		e.out = strconv.AppendInt(e.out, x, 10)
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			e.out = append(e.out, "null"...)
		} else {
			e.out = append(e.out, v.String()...)
		}
	case string:
		return e.quote(x)
	default:
		return false
	}
	return len(e.out) <= maxEncoded
}

// object encodes an object or an array. Reading its fields may run the script.
func (e *encoder) object(o *goja.Object) bool {
	if e.depth++; e.depth > maxDepth {
		return false
	}
	defer func() { e.depth-- }()
	if _, custom := o.Get("toJSON").(*goja.Object); custom {
		return false
	}
	switch o.ClassName() {
	case "Object":
		return e.members(o)
	case "Array":
		return e.elements(o)
	}
	return false // a function, a date, …
}

func (e *encoder) members(o *goja.Object) bool {
	e.out = append(e.out, '{')
	separate := false
	for _, key := range o.Keys() {
		v := o.Get(key)
		if v == nil || goja.IsUndefined(v) {
			continue
		}
		if separate {
			e.out = append(e.out, ',')
		}
		if separate = true; !e.quote(key) {
			return false
		}
		e.out = append(e.out, ':')
		if !e.value(v) {
			return false
		}
	}
	e.out = append(e.out, '}')
	return true
}

func (e *encoder) elements(o *goja.Object) bool {
	n := o.Get("length").ToInteger()
	if n > maxListed {
		return false
	}
	e.out = append(e.out, '[')
	for k := range int(n) {
		if k > 0 {
			e.out = append(e.out, ',')
		}
		v := o.Get(strconv.Itoa(k))
		if v == nil || goja.IsUndefined(v) {
			v = goja.Null()
		}
		if !e.value(v) {
			return false
		}
	}
	e.out = append(e.out, ']')
	return true
}

// quote encodes a text. Half of a surrogate pair, which has become the replacement
// character here, is left to JSON.stringify.
func (e *encoder) quote(s string) bool {
	if len(s) > maxEncoded || strings.ContainsRune(s, utf8.RuneError) {
		return false
	}
	e.out = append(e.out, '"')
	for k := range len(s) {
		switch c := s[k]; {
		case c == '"' || c == '\\':
			e.out = append(e.out, '\\', c)
		case c >= ' ':
			e.out = append(e.out, c)
		default:
			e.out = append(e.out, controls[c]...)
		}
	}
	e.out = append(e.out, '"')
	return true
}

// controls are the escapes of control characters in JSON.
var controls = func() (out [' ']string) {
	const hex = "0123456789abcdef"
	for c := range out {
		out[c] = `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	out['\b'], out['\t'], out['\n'], out['\f'], out['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	return out
}()
