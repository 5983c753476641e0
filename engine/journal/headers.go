package journal

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// EncodeHeaders writes headers in the form that the ABI uses and stores keep:
// name NUL value NUL, repeated, sorted by name. ok is false if a name is empty
// or a name or value contains NUL.
func EncodeHeaders(h map[string]string) (encoded []byte, ok bool) {
	if len(h) == 0 {
		return nil, true
	}
	names, size := make([]string, 0, 16), 0 // on the stack, unless there are more
	for name, value := range h {
		if name == "" || strings.IndexByte(name, 0) >= 0 || strings.IndexByte(value, 0) >= 0 {
			return nil, false
		}
		names, size = append(names, name), size+len(name)+len(value)+2
	}
	slices.Sort(names)
	b := make([]byte, 0, size)
	for _, name := range names {
		b = append(b, name...)
		b = append(b, 0)
		b = append(b, h[name]...)
		b = append(b, 0)
	}
	return b, true
}

// DecodeHeaders reads what [EncodeHeaders] writes. It returns nil for none. If a name
// occurs twice, the last value counts.
func DecodeHeaders(b []byte) map[string]string {
	if len(b) == 0 {
		return nil
	}
	h := map[string]string{}
	for name, value := range EachHeader(b) {
		h[string(name)] = string(value)
	}
	return h
}

// EachHeader visits the names and values of headers, in their order. They share the memory of b.
func EachHeader(b []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for len(b) > 0 {
			name, rest, ok := bytes.Cut(b, []byte{0})
			if !ok {
				return
			}
			value, rest, ok := bytes.Cut(rest, []byte{0})
			if !ok || !yield(name, value) {
				return
			}
			b = rest
		}
	}
}

// FindHeader finds a header by name. It returns its value, and where the header begins and
// ends in b. If there is none, from and to are 0.
func FindHeader(b []byte, wanted string) (value []byte, from, to int) {
	for at := 0; at < len(b); {
		name, rest, ok := bytes.Cut(b[at:], []byte{0})
		value, _, whole := bytes.Cut(rest, []byte{0})
		if !ok || !whole {
			break
		}
		end := at + len(name) + len(value) + 2
		if string(name) == wanted {
			return value, at, end
		}
		at = end
	}
	return nil, 0, 0
}

// ValidHeaders reports whether b is in the form of [EncodeHeaders], in any
// order.
func ValidHeaders(b []byte) bool {
	for len(b) > 0 {
		name := bytes.IndexByte(b, 0)
		if name <= 0 {
			return false
		}
		value := bytes.IndexByte(b[name+1:], 0)
		if value < 0 {
			return false
		}
		b = b[name+value+2:]
	}
	return true
}

// ReservedPrefix begins the names of headers that only the engine writes, so that
// creatures can trust them.
const ReservedPrefix = "terrarium-"

// The headers of a message that a group tool has sent.
const (
	HeaderMessage = ReservedPrefix + "message"  // its id
	HeaderReplyTo = ReservedPrefix + "reply-to" // id of the message that its sender answers
)

// HasReservedHeader reports whether headers, which are valid, have such a name.
func HasReservedHeader(b []byte) bool {
	for len(b) > 0 {
		name, rest, _ := bytes.Cut(b, []byte{0})
		if len(name) >= len(ReservedPrefix) && bytes.EqualFold(name[:len(ReservedPrefix)], []byte(ReservedPrefix)) {
			return true
		}
		_, b, _ = bytes.Cut(rest, []byte{0})
	}
	return false
}

// ReservedHeaderError is the error for a message with a header that only the engine writes.
func ReservedHeaderError(op string) error {
	return errtext.Invalid(op, "names of headers that begin with "+ReservedPrefix+" are reserved for the host", "use another name")
}

// WithoutReserved removes the host's headers from a message that a creature passes on:
// they describe the delivery that the creature received, not the new message. Invalid
// headers are left unchanged.
func WithoutReserved(headers, delivery []byte) []byte {
	if !ValidHeaders(headers) || !HasReservedHeader(headers) {
		return headers
	}
	said := DecodeHeaders(delivery)
	var out []byte
	for rest := headers; len(rest) > 0; {
		name, after, _ := bytes.Cut(rest, []byte{0})
		value, next, _ := bytes.Cut(after, []byte{0})
		known, is := said[string(name)]
		if pair := rest[:len(rest)-len(next)]; !is || known != string(value) || !HasReservedHeader(pair) {
			out = append(out, pair...)
		}
		rest = next
	}
	return out
}
