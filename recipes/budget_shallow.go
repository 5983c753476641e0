package recipes

import "bytes"

// shallow reports whether a text certainly nests little enough for the parser. It is much
// faster than the scanner of HCL, and knows enough of the language for nearly all
// recipes. If it is not sure it returns false, and the text is measured.
func shallow(src []byte) bool {
	s := shallowScan{text: src}
	for len(s.text) > 0 {
		if !s.step() {
			return false
		}
	}
	return true
}

// shallowScan scans a text from its start, and cuts off the part that it has read.
type shallowScan struct {
	text []byte
	open []opened
	top  opened // outside of all brackets
}

// opened is a bracket, quote or template that is not closed yet. It counts at least as
// many operators as a meter.
type opened struct {
	kind      byte // { [ ( " or $
	operators int
}

func (s *shallowScan) current() *opened {
	if n := len(s.open); n > 0 {
		return &s.open[n-1]
	}
	return &s.top
}

// step reads one character, or several that belong together.
func (s *shallowScan) step() bool {
	if s.current().kind == '"' {
		return s.quoted()
	}
	c := s.text[0]
	switch {
	case c == '#' || bytes.HasPrefix(s.text, []byte("//")):
		s.skipTo('\n')
		return true
	case bytes.HasPrefix(s.text, []byte("/*")):
		return false
	case bytes.HasPrefix(s.text, []byte("<<")):
		return s.heredoc()
	}
	s.text = s.text[1:]
	switch {
	case c == '{' || c == '[' || c == '(' || c == '"':
		return s.openBracket(c)
	case c == '}' || c == ']' || c == ')':
		return s.closeBracket(c)
	case c == '\n':
		return s.newline()
	case c == ',':
		s.current().operators = 0
	case isWord(c):
	default:
		return s.operator()
	}
	return true
}

func isWord(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (s *shallowScan) openBracket(kind byte) bool {
	fine := s.operator()
	s.open = append(s.open, opened{kind: kind})
	return fine && len(s.open) <= maxNesting
}

func (s *shallowScan) closeBracket(c byte) bool {
	kind := s.current().kind
	switch {
	case c == '}' && (kind == '{' || kind == '$'), c == ']' && kind == '[', c == ')' && kind == '(':
		s.open = s.open[:len(s.open)-1]
		return true
	}
	return false
}

func (s *shallowScan) operator() bool {
	o := s.current()
	o.operators++
	return o.operators <= maxOperators
}

// newline separates items in braces, and cannot occur in a template here.
func (s *shallowScan) newline() bool {
	for _, o := range s.open {
		if o.kind == '$' {
			return false
		}
	}
	if o := s.current(); o.kind == '{' || len(s.open) == 0 {
		o.operators = 0
	}
	return true
}

func (s *shallowScan) skipTo(c byte) {
	n := bytes.IndexByte(s.text, c)
	if n < 0 {
		n = len(s.text)
	}
	s.text = s.text[n:]
}

func (s *shallowScan) quoted() bool {
	n := bytes.IndexAny(s.text, "\"\\\n$%")
	if n < 0 || n == len(s.text)-1 && s.text[n] != '"' {
		return false
	}
	c, next := s.text[n], byte(0)
	if n+1 < len(s.text) {
		next = s.text[n+1]
	}
	switch {
	case c == '"':
		s.open = s.open[:len(s.open)-1]
	case c == '\\' && bytes.IndexByte([]byte(`nrtuU"\`), next) >= 0:
		n++
	case c == '\\', c == '\n', c == next, c == '%' && next == '{':
		return false
	case next == '{':
		s.text = s.text[n+2:]
		return s.openBracket('$')
	}
	s.text = s.text[n+1:]
	return true
}

func (s *shallowScan) heredoc() bool {
	line, rest, _ := bytes.Cut(s.text, []byte("\n"))
	tag := bytes.TrimPrefix(bytes.TrimSuffix(line[2:], []byte("\r")), []byte("-"))
	if !isTag(tag) || len(s.open) >= maxNesting || !s.operator() {
		return false
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if bytes.Equal(bytes.TrimSpace(line), tag) {
			s.text = rest
			return s.newline()
		}
		if bytes.Contains(line, []byte("${")) || bytes.Contains(line, []byte("%{")) {
			return false
		}
	}
	return false
}

// isTag reports whether a text is just the tag of a heredoc.
func isTag(text []byte) bool {
	for k, c := range text {
		if !isWord(c) || c <= ' ' || k == 0 && '0' <= c && c <= '9' {
			return false
		}
	}
	return len(text) > 0
}
