package llmcap

import (
	"bytes"
	"encoding/json"
)

// Answers are read in place: to decode an answer into values would take many times its
// size, because a server can send millions of empty objects. The functions below expect
// valid JSON without white space around it, and copy only the texts and numbers that are
// used.

// member is a wanted member of an object, and its value, which is nil if the member is
// absent or null.
type member struct {
	name  string
	value []byte
}

// lookUp finds members of an object; if several have the same name, the last counts. It
// reports whether raw is an object.
func lookUp(raw []byte, wanted []member) bool {
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	for rest := space(raw[1:]); rest[0] != '}'; {
		name := value(rest)
		rest = space(space(rest[len(name):])[1:]) // the colon
		v := value(rest)
		rest = space(rest[len(v):])
		if rest[0] == ',' {
			rest = space(rest[1:])
		}
		for i := range wanted {
			if named(name, wanted[i].name) {
				if wanted[i].value = v; v[0] == 'n' {
					wanted[i].value = nil
				}
			}
		}
	}
	return true
}

// named reports whether a member's name, with its quotes, is a name.
func named(raw []byte, name string) bool {
	if bytes.IndexByte(raw, '\\') < 0 || len(raw) > 6*len(name)+2 { // six: \u0061
		return string(raw[1:len(raw)-1]) == name
	}
	var text string
	return json.Unmarshal(raw, &text) == nil && text == name
}

// each calls f with the elements of an array, up to the first error. It returns errNotJSON
// for another value.
func each(raw []byte, f func(element []byte) error) error {
	if raw[0] != '[' {
		return errNotJSON
	}
	for rest := space(raw[1:]); rest[0] != ']'; {
		v := value(rest)
		rest = space(rest[len(v):])
		if rest[0] == ',' {
			rest = space(rest[1:])
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// value returns the value at the beginning of valid JSON.
func value(raw []byte) []byte {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 { // the end of the object or array that contains the number or word
				return raw[:i]
			}
			depth--
		default:
			if depth == 0 && (raw[i] == ',' || blank(raw[i])) {
				return raw[:i]
			}
			continue
		}
		if depth == 0 {
			return raw[:i+1]
		}
	}
	return raw
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// space removes white space from the beginning.
func space(raw []byte) []byte {
	for len(raw) > 0 && blank(raw[0]) {
		raw = raw[1:]
	}
	return raw
}
