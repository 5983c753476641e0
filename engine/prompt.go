package engine

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// prompt is the template of what an output wire delivers: pieces of text and
// placeholders, one after the other.
type prompt []promptPiece

type promptPiece struct {
	text  string
	field promptField // or promptText
}

type promptField uint8

const (
	promptText promptField = iota
	promptOutput
	promptSource
	promptChannel
)

var promptFields = map[string]promptField{"output": promptOutput, "source": promptSource, "channel": promptChannel}

// CheckPrompt refuses a template that cannot be carried out. {output}, {source}
// and {channel} are placeholders; braces that are meant as such are doubled. An
// error is about the template alone, and has the code invalid_argument.
func CheckPrompt(template string, withContent bool) error {
	_, err := parsePrompt(template, withContent)
	return err
}

func parsePrompt(template string, withContent bool) (prompt, error) {
	if !utf8.ValidString(template) {
		return nil, invalid("wire", "the prompt is not UTF-8", "write text")
	}
	var out prompt
	var text strings.Builder
	for rest := template; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			text.WriteString(rest)
			break
		}
		text.WriteString(rest[:at])
		rest = rest[at:]
		if len(rest) > 1 && rest[1] == rest[0] {
			text.WriteByte(rest[0])
			rest = rest[2:]
			continue
		}
		name, after, closed := strings.Cut(rest[1:], "}")
		field, known := promptFields[name]
		switch {
		case rest[0] == '}' || !closed || !known:
			return nil, badPrompt(rest, name, closed && rest[0] == '{')
		case field == promptOutput && !withContent:
			return nil, invalid("wire", "the prompt has {output}, but the wire carries no content", "set with_content, or leave {output} out")
		}
		out = append(out, promptPiece{text: text.String()}, promptPiece{field: field})
		text.Reset()
		rest = after
	}
	return append(out, promptPiece{text: text.String()}), nil
}

func badPrompt(rest, name string, closed bool) error {
	const remedy = "the placeholders are {output}, {source} and {channel}; write {{ and }} for braces"
	if closed {
		return invalid("wire", "the prompt has the unknown placeholder "+quoted([]byte("{"+name+"}")), remedy)
	}
	return invalid("wire", fmt.Sprintf("the prompt has a single brace at %s", quoted([]byte(rest))), remedy)
}

// size is how long the text becomes.
func (p prompt) size(values [4][]byte) (n int64) {
	for _, piece := range p {
		n += int64(len(piece.text) + len(values[piece.field]))
	}
	return n
}

// fill puts the values, by field, in their places.
func (p prompt) fill(values [4][]byte) []byte {
	out := make([]byte, 0, p.size(values))
	for _, piece := range p {
		out = append(append(out, piece.text...), values[piece.field]...)
	}
	return out
}
