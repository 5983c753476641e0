package editor

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/seed47132306/terrarium/recipes"
)

// lexeme is a token of a text.
type lexeme struct {
	Span
	kind lexemeKind
}

// lexemeKind says what a token is, as far as the structure depends on it.
type lexemeKind uint8

const (
	other lexemeKind = iota
	word
	newline
	equals
	colon
	comma
	dot
	text // in quotes or a heredoc
	// Opening and closing tokens. An opening token is followed by its closing one.
	openBrace
	closeBrace
	openBracket
	closeBracket
	openParen
	closeParen
	openQuote
	closeQuote
	openHeredoc
	closeHeredoc
	openTemplate // ${ or %{
	closeTemplate
)

var kinds = map[hclsyntax.TokenType]lexemeKind{
	hclsyntax.TokenIdent: word, hclsyntax.TokenNewline: newline, hclsyntax.TokenEqual: equals, hclsyntax.TokenColon: colon, hclsyntax.TokenComma: comma,
	hclsyntax.TokenDot: dot, hclsyntax.TokenQuotedLit: text, hclsyntax.TokenStringLit: text,
	hclsyntax.TokenOBrace: openBrace, hclsyntax.TokenCBrace: closeBrace, hclsyntax.TokenOBrack: openBracket, hclsyntax.TokenCBrack: closeBracket,
	hclsyntax.TokenOParen: openParen, hclsyntax.TokenCParen: closeParen, hclsyntax.TokenOQuote: openQuote, hclsyntax.TokenCQuote: closeQuote,
	hclsyntax.TokenOHeredoc: openHeredoc, hclsyntax.TokenCHeredoc: closeHeredoc,
	hclsyntax.TokenTemplateInterp: openTemplate, hclsyntax.TokenTemplateControl: openTemplate, hclsyntax.TokenTemplateSeqEnd: closeTemplate,
}

func (k lexemeKind) opens() bool  { return k >= openBrace && (k-openBrace)%2 == 0 }
func (k lexemeKind) closes() bool { return k > openBrace && (k-openBrace)%2 == 1 }

// maxRestarts bounds how often a text is split again after a quote that is not closed.
const maxRestarts = 4

// lex splits a text into tokens, apart from its comments. A quote that is not closed ends
// with its line: otherwise code and text would be confused from there on.
func (f *file) lex() {
	from := 0
	for range maxRestarts {
		if from = f.lexFrom(from); from < 0 {
			return
		}
	}
	f.lexFrom(from)
}

// lexFrom splits a text from an offset. It stops at the end of a line with a quote that is
// not closed, and returns the offset; else it returns -1.
func (f *file) lexFrom(base int) int {
	for _, t := range recipes.Tokens("", f.text[base:]) {
		at := Span{base + t.Range.Start.Byte, base + t.Range.End.Byte}
		switch t.Type {
		case hclsyntax.TokenQuotedNewline:
			f.lexemes = append(f.lexemes, lexeme{Span{at.Start, at.Start}, closeQuote})
			return at.Start
		case hclsyntax.TokenComment:
			if n := len(t.Bytes); n > 0 && t.Bytes[n-1] == '\n' { // it includes the end of its line
				at.End--
				f.lexemes = append(f.lexemes, lexeme{Span{at.End, at.End + 1}, newline})
			}
			f.comments = append(f.comments, at)
		case hclsyntax.TokenEOF:
		default:
			if n := len(f.lexemes); kinds[t.Type] == text && n > 0 && f.lexemes[n-1].kind == text && f.lexemes[n-1].End == at.Start {
				f.lexemes[n-1].End = at.End // of a heredoc with several lines
				continue
			}
			f.lexemes = append(f.lexemes, lexeme{at, kinds[t.Type]})
		}
	}
	return -1
}
