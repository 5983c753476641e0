package main

import (
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// role is the meaning of a parameter. The tables have Wasm types only, so the
// names carry the meaning: a parameter ptr or something_ptr is followed by its
// length (len) or, when the host writes there, by its capacity (cap).
type role int

const (
	number  role = iota
	input        // the host reads there
	outcome      // the host writes there
)

func roleOf(f abi.Function, i int) role {
	name := f.Params[i].Name
	switch {
	case name != "ptr" && !strings.HasSuffix(name, "_ptr"):
		return number
	case f.Params[i+1].Name == "cap", f.Name == "random":
		return outcome
	default:
		return input
	}
}

func typeName(t abi.ValueType) string {
	if t == abi.I64 {
		return "i64"
	}
	return "i32"
}

// upper is a table name as C constants spell it.
func upper(name string) string { return strings.ToUpper(name) }

// camel is a table name as Go spells it.
func camel(name string) string {
	initialisms := map[string]string{"id": "ID", "json": "JSON", "http": "HTTP"}
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if s, ok := initialisms[word]; ok {
			b.WriteString(s)
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// wrap breaks text into lines of at most width bytes, each after prefix.
func wrap(prefix, text string, width int) string {
	var b strings.Builder
	line := prefix
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width && line != prefix {
			b.WriteString(line + "\n")
			line = prefix
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}
