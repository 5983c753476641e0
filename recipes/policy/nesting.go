package policy

import (
	"fmt"
	"strings"
)

// The bounds of nesting in a script. The parser recurses with it, and tries several
// readings of some constructs, so its time grows much faster than their number.
const (
	maxBrackets = 64  // nested brackets
	maxHidden   = 512 // brackets in texts and comments, and arrows anywhere
)

// tooDeep returns the line where brackets nest too deeply, or 0, and a message. It
// recognizes texts and comments but not regular expressions, which only a parser can tell
// from divisions. It may therefore take a part of a regular expression for a text. So
// brackets in texts do not nest, but they are counted.
func tooDeep(source string) (line int, why string) {
	s := bracketScan{line: 1}
	for i := 0; i < len(source); i++ {
		i += s.step(source[i:])
		switch {
		case s.depth > maxBrackets:
			return s.line, fmt.Sprintf("brackets nest more than %d deep", maxBrackets)
		case s.hidden > maxHidden:
			return s.line, fmt.Sprintf("there are more than %d arrows, and brackets in texts and comments", maxHidden)
		}
	}
	return 0, ""
}

type bracketScan struct {
	within        string // the end of the current text or comment; empty outside
	depth, hidden int
	line          int
}

// step reads the first byte of the rest, and returns how many more it has read.
func (s *bracketScan) step(rest string) int {
	b := rest[0]
	if b == '\n' {
		s.line++
	}
	if strings.HasPrefix(rest, "=>") {
		s.hidden++ // functions that return functions nest without brackets
	}
	if s.within != "" {
		return s.inside(rest)
	}
	switch {
	case b == '"', b == '\'', b == '`':
		s.within = rest[:1]
	case strings.HasPrefix(rest, "//"):
		s.within = "\n"
	case strings.HasPrefix(rest, "/*"):
		s.within = "*/"
		return 1
	case b == '(', b == '[', b == '{':
		s.depth++
	case b == ')', b == ']', b == '}':
		s.depth = max(s.depth-1, 0)
	}
	return 0
}

// inside is step within a text or comment.
func (s *bracketScan) inside(rest string) int {
	text := s.within == `"` || s.within == "'"
	switch b := rest[0]; {
	case strings.HasPrefix(rest, s.within):
		n := len(s.within) - 1
		s.within = ""
		return n
	case b == '\\' && (text || s.within == "`") && len(rest) > 1 && rest[1] != '\n':
		return 1
	case b == '\n' && text:
		s.within = "" // texts end with the line, so it was not a text
	case s.within == "`" && (b == '{' || b == '}'): // substitutions in a template are code
		s.depth = max(s.depth+map[byte]int{'{': 1, '}': -1}[b], 0)
	case b == '(', b == '[', b == '{':
		s.hidden++
	}
	return 0
}
