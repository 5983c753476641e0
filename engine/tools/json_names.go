package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// maxJSONDepth bounds how deeply JSON arguments may nest.
const maxJSONDepth = 1000

// CheckJSON refuses text that is not JSON, and JSON that readers may interpret
// differently: an object with a duplicate name, where some readers take the
// first value and others the last. Names that differ only in case count as
// duplicates, because some readers ignore case. The error is
// [abi.InvalidArgument]. CheckJSON takes time proportional to the text.
func CheckJSON(text []byte) error {
	if !json.Valid(text) {
		var value any
		return &abi.Error{Code: abi.InvalidArgument, Message: "the arguments are not JSON", Remedy: "pass one JSON object", Err: plainly.JSON(text, json.Unmarshal(text, &value))}
	}
	s := nameScan{text: text, room: len(text)}
	return s.run()
}

// maxToolValues bounds the number of values in the arguments of a tool: a
// value costs much more than a byte of text.
const maxToolValues = 1 << 14

// checkToolJSON is CheckJSON for the arguments of a tool.
func checkToolJSON(args []byte) error {
	if !json.Valid(args) {
		return CheckJSON(args)
	}
	s := nameScan{text: args, room: maxToolValues}
	return s.run()
}

// nameScan scans valid JSON for duplicate names.
type nameScan struct {
	text []byte
	open []map[string]bool // the names of each open object; nil for an array
	name bool              // a string that comes next is a name
	room int               // how many more values are allowed
}

func (s *nameScan) run() error {
	for i := 0; i < len(s.text); i++ {
		switch s.text[i] {
		case '{':
			s.open, s.name = append(s.open, map[string]bool{}), true
		case '[':
			s.open, s.name = append(s.open, nil), false
		case '}', ']':
			s.open, s.name = s.open[:len(s.open)-1], false
		case ',':
			if s.room--; s.room < 0 {
				return &abi.Error{Code: abi.TooLarge, Message: "the JSON has too many values", Remedy: "pass large data as one string"}
			}
			s.name = len(s.open) > 0 && s.open[len(s.open)-1] != nil
		case '"':
			end := quotedEnd(s.text, i)
			if s.name {
				if err := s.noteName(s.text[i:end]); err != nil {
					return err
				}
				s.name = false
			}
			i = end - 1
		}
		if len(s.open) > maxJSONDepth {
			return errtext.Invalid("", fmt.Sprintf("the JSON is nested more than %d deep", maxJSONDepth), "use less nesting")
		}
	}
	return nil
}

// noteName records a name of the innermost object.
func (s *nameScan) noteName(quotedName []byte) error {
	var name string
	if err := json.Unmarshal(quotedName, &name); err != nil {
		return errtext.Invalid("", "a name is not a string: "+err.Error(), "write one JSON value")
	}
	names, key := s.open[len(s.open)-1], foldName(name)
	if names[key] {
		return errtext.Invalid("", fmt.Sprintf("the name %s occurs twice in an object", errtext.Quoted([]byte(name))), "use every name once; case is ignored")
	}
	names[key] = true
	return nil
}

// quotedEnd returns the end of the string that begins at i.
func quotedEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// foldName returns the same value for names that differ only in case.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
