package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// maxJSONDepth bounds how deeply JSON that is judged may nest.
const maxJSONDepth = 1000

// CheckJSON refuses text that is not JSON, and JSON that does not say the same to every
// reader: an object in which a name stands twice, of which some readers take the first
// and others the last. Names that differ in case only count as the same, for there are
// readers that take one for the other. The error is [abi.InvalidArgument]. It takes time
// in proportion to the text.
func CheckJSON(text []byte) error {
	if !json.Valid(text) {
		var value any
		return &abi.Error{Code: abi.InvalidArgument, Message: "the arguments are not JSON", Remedy: "give one JSON object", Err: json.Unmarshal(text, &value)}
	}
	s := nameScan{text: text, room: len(text)}
	return s.run()
}

// maxToolValues bounds how many values the arguments of a tool consist of: each costs
// much more than a byte of a text does.
const maxToolValues = 1 << 14

// checkToolJSON is CheckJSON of the arguments of a tool.
func checkToolJSON(args []byte) error {
	if !json.Valid(args) {
		return CheckJSON(args)
	}
	s := nameScan{text: args, room: maxToolValues}
	return s.run()
}

// nameScan goes through valid JSON.
type nameScan struct {
	text []byte
	open []map[string]bool // the names of each open object; nil for an array
	name bool              // a text that comes next is a name
	room int               // for more values
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
				return &abi.Error{Code: abi.TooLarge, Message: "the JSON has more values than are read", Remedy: "pass large data as a text"}
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
			return errtext.Invalid("", fmt.Sprintf("the JSON nests more than %d deep", maxJSONDepth), "write it flatter")
		}
	}
	return nil
}

// noteName notes a name of the innermost object.
func (s *nameScan) noteName(quotedName []byte) error {
	var name string
	if err := json.Unmarshal(quotedName, &name); err != nil {
		return errtext.Invalid("", "a name is not a text: "+err.Error(), "write one JSON value")
	}
	names, key := s.open[len(s.open)-1], foldName(name)
	if names[key] {
		return errtext.Invalid("", fmt.Sprintf("the name %s stands twice in an object", errtext.Quoted([]byte(name))), "give every name once; upper and lower case make no difference")
	}
	names[key] = true
	return nil
}

// quotedEnd is where the text that begins at i ends.
func quotedEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// foldName is the same for names that differ in case only.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
