package terrarium

import (
	"strconv"
	"unicode/utf8"
)

// JSON is a JSON value as text, such as the awareness document. Its methods read it
// without package encoding/json, which would add half a megabyte to a module. They
// expect valid JSON, which the host provides; in other text they find nothing.
type JSON []byte

// Get returns a member of an object, or of objects in it for several names. It is nil
// if there is none.
func (j JSON) Get(names ...string) JSON {
	for _, name := range names {
		j = j.member(name)
	}
	return j
}

func (j JSON) member(name string) (value JSON) {
	j.each('{', func(member string, v JSON) {
		if member == name {
			value = v
		}
	})
	return value
}

// List returns the elements of a list; nil for anything else.
func (j JSON) List() (list []JSON) {
	j.each('[', func(_ string, v JSON) { list = append(list, v) })
	return list
}

// Text returns the content of a string, and "" for anything else.
func (j JSON) Text() string {
	if len(j) < 2 || j[0] != '"' {
		return ""
	}
	text, _ := unquote(j)
	return text
}

// Whole returns a whole number; ok is false for anything else and for a number that
// int64 cannot hold.
func (j JSON) Whole() (n int64, ok bool) {
	n, err := strconv.ParseInt(string(j), 10, 64)
	return n, err == nil && string(j) == strconv.FormatInt(n, 10)
}

// each calls f for the members of an object or the elements of a list.
func (j JSON) each(open byte, f func(name string, value JSON)) {
	if len(j) == 0 || j[0] != open {
		return
	}
	rest := skipSpace(j[1:])
	for len(rest) > 0 && rest[0] != open+2 { // ] and } come two after [ and {
		var name string
		if open == '{' {
			n := valueLen(rest)
			name = rest[:n].Text()
			rest = skipSpace(rest[n:])
			if len(rest) == 0 || rest[0] != ':' {
				return
			}
			rest = skipSpace(rest[1:])
		}
		n := valueLen(rest)
		if n == 0 {
			return
		}
		f(name, rest[:n])
		if rest = skipSpace(rest[n:]); len(rest) > 0 && rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
}

func skipSpace(j JSON) JSON {
	for len(j) > 0 && (j[0] == ' ' || j[0] == '\n' || j[0] == '\t' || j[0] == '\r') {
		j = j[1:]
	}
	return j
}

// valueLen returns the length of the value that j starts with.
func valueLen(j JSON) int {
	depth, quoted := 0, false
	for i := 0; i < len(j); i++ {
		switch c := j[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			return i
		}
	}
	return len(j)
}

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote returns the content of a JSON string.
func unquote(j JSON) (text string, ok bool) {
	var b []byte
	for i := 1; i < len(j)-1; i++ {
		if j[i] != '\\' {
			b = append(b, j[i])
			continue
		}
		if i++; i >= len(j)-1 {
			return "", false
		}
		if j[i] != 'u' {
			if c, special := escapes[j[i]]; special {
				b = append(b, c)
			} else {
				b = append(b, j[i])
			}
			continue
		}
		r, n := unicodeEscape(j[i-1:])
		b = utf8.AppendRune(b, r)
		i += n - 2
	}
	return string(b), true
}

// unicodeEscape reads \uXXXX, or two of them that are a surrogate pair, and returns the
// rune and how many bytes it was written with.
func unicodeEscape(j JSON) (rune, int) {
	high, ok := hex4(j)
	if !ok {
		return utf8.RuneError, min(len(j), 2)
	}
	if high < 0xD800 || high > 0xDFFF {
		return high, 6
	}
	if low, ok := hex4(j[6:]); ok && high < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF {
		return 0x10000 + (high-0xD800)<<10 + (low - 0xDC00), 12
	}
	return utf8.RuneError, 6
}

func hex4(j JSON) (rune, bool) {
	if len(j) < 6 || j[0] != '\\' || j[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(j[2:6]), 16, 16)
	return rune(n), err == nil
}

// AppendJSON appends a text as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendJSON(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
