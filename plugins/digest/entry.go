package main

import (
	"encoding/base64"
	"unicode/utf8"
)

// An entry holds the parts of a line. Empty members are left out of the JSON,
// except for level and text.
type entry struct {
	time    string // as ISO 8601, without a zone unless the line has one
	level   string // debug, info, warn or error
	action  string
	state   string // of a package, after the action status
	subject string // a package, a file or a program
	from    string // the version before
	version string // the version after
	text    string
	raw     []byte // the line, if it is not UTF-8
}

// appendJSON appends the entry as one JSON object.
func (e *entry) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for _, m := range [...]struct {
		name, value string
		always      bool
	}{
		{"time", e.time, false},
		{"level", e.level, true},
		{"action", e.action, false},
		{"state", e.state, false},
		{"subject", e.subject, false},
		{"from", e.from, false},
		{"version", e.version, false},
		{"text", e.text, true},
	} {
		if m.value != "" || m.always {
			b = appendMember(b, m.name, m.value)
		}
	}
	if e.raw != nil {
		b = appendMember(b, "base64", base64.StdEncoding.EncodeToString(e.raw))
	}
	return append(b, '}')
}

func appendMember(b []byte, name, value string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendString(b, name)
	b = append(b, ':')
	return appendString(b, value)
}

// appendString appends s as a JSON string, with U+FFFD for invalid UTF-8.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
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
