package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The HCL parser and evaluator recurse, and a stack overflow ends the process without
// recovery. So every text is measured before it is parsed, with a scanner that does not
// recurse.
const (
	maxNesting   = 64   // brackets, templates and blocks inside each other
	maxOperators = 1024 // operators, indexes and splats in one operand list
	maxJSONDepth = 256
)

type lexer func(src []byte, filename string, start hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics)

// measure returns the place where a text nests too deeply, or nil. Other mistakes are
// left to the parser.
func measure(lex lexer, src []byte, filename string) *hcl.Diagnostic {
	tokens, _ := lex(src, filename, hcl.InitialPos)
	var m meter
	for _, t := range tokens {
		if m.token(t) {
			return tooDeep(t.Range)
		}
		if t.Type == hclsyntax.TokenNumberLit && excessive(string(t.Bytes)) {
			return numberTooLarge(t.Range)
		}
	}
	return nil
}

// maxLexed is how much of a text is measured at a time, where possible: the tokens of a
// large recipe take far more memory than its text.
const maxLexed = 32 << 10

// measureConfig measures a file, in pieces if needed. A piece ends with a line that ends
// outside of all brackets, where the scanner needs no earlier context.
func measureConfig(src []byte, filename string) *hcl.Diagnostic {
	if shallow(src) {
		return nil
	}
	return measurePieces(src, filename)
}

func measurePieces(src []byte, filename string) *hcl.Diagnostic {
	start := hcl.InitialPos
	for size := maxLexed; size < len(src); {
		end, ok := calmEnd(src[:size], filename, start)
		if !ok {
			size *= 2
			continue
		}
		src, start, size = src[end.Byte-start.Byte:], end, maxLexed
	}
	return measure(func(src []byte, filename string, _ hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics) {
		return hclsyntax.LexConfig(src, filename, start)
	}, src, filename)
}

// calmEnd returns the end of the last line of a piece that ends outside of all brackets.
// It is not ok if there is no such line, if something nests too deeply, or if the piece
// could end within a block comment, which the scanner would not recognize.
func calmEnd(piece []byte, filename string, start hcl.Pos) (end hcl.Pos, ok bool) {
	if bytes.Contains(piece, []byte("/*")) {
		return end, false
	}
	tokens, _ := hclsyntax.LexConfig(piece, filename, start) // the parser reports mistakes
	var m meter
	for _, t := range tokens {
		if m.token(t) || t.Type == hclsyntax.TokenNumberLit && excessive(string(t.Bytes)) {
			return end, false
		}
		if t.Type == hclsyntax.TokenNewline && len(m.open) == 0 && m.controls == 0 {
			end, ok = t.Range.End, true
		}
	}
	return end, ok
}

func tooDeep(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  "Nesting too deep",
		Detail: fmt.Sprintf("Brackets, blocks and templates can be nested at most %d deep, and an expression can have at most %d operators.",
			maxNesting, maxOperators),
		Subject: at.Ptr(),
	}
}

// meter counts the tokens that make the parser or the evaluator recurse.
type meter struct {
	open     []frame
	top      frame // outside of all brackets
	controls int   // open %{ if } and %{ for } of all templates
	control  bool  // the previous token began a %{ sequence
}

type frame struct {
	operators int
	braces    bool // newlines separate the items inside
}

func (m *meter) current() *frame {
	if n := len(m.open); n > 0 {
		return &m.open[n-1]
	}
	return &m.top
}

// token counts a token and reports whether it exceeds a limit.
func (m *meter) token(t hclsyntax.Token) bool {
	if m.control {
		m.controlWord(string(t.Bytes))
		m.control = false
	}
	switch t.Type {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		m.control = t.Type == hclsyntax.TokenTemplateControl
		m.current().operators++ // a[b][c] nests although no bracket does
		m.open = append(m.open, frame{braces: t.Type == hclsyntax.TokenOBrace})
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		if n := len(m.open); n > 0 {
			m.open = m.open[:n-1]
		}
	case hclsyntax.TokenComma:
		m.current().operators = 0
	case hclsyntax.TokenNewline, hclsyntax.TokenComment: // which ends with its line
		if f := m.current(); f.braces || len(m.open) == 0 {
			f.operators = 0
		}
	case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenEqual, hclsyntax.TokenEOF:
	case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
		// The parts of a template are siblings and do not nest.
		m.current().operators = 0
	default:
		m.current().operators++
	}
	return len(m.open)+m.controls > maxNesting || m.current().operators > maxOperators
}

func (m *meter) controlWord(word string) {
	switch word {
	case "if", "for":
		m.controls++
	case "endif", "endfor":
		m.controls = max(m.controls-1, 0)
	}
}

// measureJSON does the same for JSON, whose strings are templates or, in places,
// expressions.
func measureJSON(src []byte, filename string) *hcl.Diagnostic {
	if at := jsonTooDeep(src, maxNesting); at >= 0 {
		return tooDeep(byteRange(src, filename, at, at+1))
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			break // at the end, or where the parser will report a mistake
		}
		end := int(dec.InputOffset())
		at := byteRange(src, filename, end-1, end)
		if number, ok := token.(json.Number); ok && excessive(number.String()) {
			return numberTooLarge(at)
		}
		text, ok := token.(string)
		if !ok {
			continue
		}
		if d := measureText(text, at); d != nil {
			return d
		}
	}
	return nil
}

// measureText measures a string of JSON both as a template and as an expression. An
// expression there is a reference, so its numbers are ignored.
func measureText(text string, at hcl.Range) *hcl.Diagnostic {
	if d := measure(hclsyntax.LexTemplate, []byte(text), at.Filename); d != nil {
		d.Subject = &at
		return d
	}
	if d := measure(hclsyntax.LexExpression, []byte(text), at.Filename); d != nil && d.Summary == tooDeep(at).Summary {
		return tooDeep(at)
	}
	return nil
}

// jsonTooDeep returns the offset of the first bracket beyond the limit, or -1.
func jsonTooDeep(src []byte, limit int) int {
	depth, quoted := 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > limit {
				return i
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return -1
}

func byteRange(src []byte, filename string, from, to int) hcl.Range {
	return hcl.Range{Filename: filename, Start: posOf(src, from), End: posOf(src, to)}
}

func posOf(src []byte, offset int) hcl.Pos {
	offset = min(max(offset, 0), len(src))
	before := src[:offset]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	column := 1
	for _, r := range string(before[lineStart:]) {
		if !combines(r) {
			column++
		}
	}
	return hcl.Pos{Line: 1 + bytes.Count(before, []byte{'\n'}), Column: column, Byte: offset}
}
