package deploy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// Prompt is the template of what an output wire delivers: a sequence of texts and
// placeholders.
type Prompt []promptPiece

type promptPiece struct {
	text  string
	field PromptField // or promptText
}

// PromptField is a placeholder of a template.
type PromptField uint8

// The placeholders {output}, {source} and {channel}.
const (
	promptText PromptField = iota
	PromptOutput
	PromptSource
	PromptChannel
)

var promptFields = map[string]PromptField{"output": PromptOutput, "source": PromptSource, "channel": PromptChannel}

// CheckPrompt refuses an invalid template. The placeholders are {output}, {source} and
// {channel}; literal braces are doubled. The error is about the template alone, and has
// the code invalid_argument.
func CheckPrompt(template string, withContent bool) error {
	_, err := ParsePrompt(template, withContent)
	return err
}

// ParsePrompt is [CheckPrompt], and returns the parsed template.
func ParsePrompt(template string, withContent bool) (Prompt, error) {
	if !utf8.ValidString(template) {
		return nil, errtext.Invalid("wire", "the prompt is not UTF-8", "write text")
	}
	var out Prompt
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
		case field == PromptOutput && !withContent:
			return nil, errtext.Invalid("wire", "the prompt has {output}, but the wire carries no content", "set with_content, or leave {output} out")
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
		return errtext.Invalid("wire", "the prompt has the unknown placeholder "+errtext.Quoted([]byte("{"+name+"}")), remedy)
	}
	return errtext.Invalid("wire", fmt.Sprintf("the prompt has a single brace at %s", errtext.Quoted([]byte(rest))), remedy)
}

// Size is the length of the filled template.
func (p Prompt) Size(values [4][]byte) (n int64) {
	for _, piece := range p {
		n += int64(len(piece.text) + len(values[piece.field]))
	}
	return n
}

// Fill replaces the placeholders by their values.
func (p Prompt) Fill(values [4][]byte) []byte {
	out := make([]byte, 0, p.Size(values))
	for _, piece := range p {
		out = append(append(out, piece.text...), values[piece.field]...)
	}
	return out
}
