package editor

// maxNesting bounds how deep blocks are nested; deeper ones count as a part of their
// parents.
const maxNesting = 64

// scanner finds the structure of a text. It expects mistakes everywhere: a value that is
// not finished ends where another attribute or block begins.
type scanner struct {
	f    *file
	at   int // of the next lexeme
	open []*block
}

// scan returns the structure of a text.
func scan(path string, src []byte) *file {
	f := &file{path: path, text: src}
	f.lex()
	f.structure()
	return f
}

// structure finds the blocks, attributes, references and calls of a text.
func (f *file) structure() {
	src := f.text
	f.closing = pairs(f.lexemes)
	f.body = &block{inside: Span{0, len(src)}, whole: Span{0, len(src)}}
	s := &scanner{f: f, open: []*block{f.body}}
	for s.at < len(f.lexemes) {
		s.item()
	}
	for _, b := range s.open[1:] { // which are not closed
		b.inside.End, b.whole.End = len(src), len(src)
	}
}

func (s *scanner) innermost() *block { return s.open[len(s.open)-1] }

func (s *scanner) kind(i int) lexemeKind {
	if i >= len(s.f.lexemes) {
		return newline
	}
	return s.f.lexemes[i].kind
}

// item scans what can be in a body: an attribute, a block, or the end of the body.
func (s *scanner) item() {
	switch s.kind(s.at) {
	case closeBrace:
		if len(s.open) > 1 {
			b := s.innermost()
			b.inside.End, b.whole.End = s.f.lexemes[s.at].Start, s.f.lexemes[s.at].End
			s.open = s.open[:len(s.open)-1]
		}
		s.at++
	case word:
		if s.kind(s.at+1) == equals {
			s.attribute()
			return
		}
		end, ok := s.header(s.at)
		if ok {
			s.block(end)
			return
		}
		s.at = max(s.at+1, end-1) // an attribute may follow the words
	default:
		s.at++
	}
}

// header returns the index of the brace that ends the header of a block. If there is no
// such header, it is not ok, and the index is that of the first lexeme that cannot be
// part of a header.
func (s *scanner) header(from int) (end int, ok bool) {
	i := from + 1
	for {
		switch s.kind(i) {
		case openBrace:
			return i, true
		case word:
			i++
		case openQuote:
			i++
			if s.kind(i) == text {
				i++
			}
			if s.kind(i) != closeQuote {
				return i, false
			}
			i++
		default:
			return i, false
		}
	}
}

func (s *scanner) block(brace int) {
	first := s.f.lexemes[s.at]
	kind := s.f.source(first.Span)
	if s.startsLine(s.at) && topLevel(kind) { // a block before it has no end
		for _, b := range s.open[1:] {
			b.inside.End, b.whole.End = first.Start, first.Start
		}
		s.open = s.open[:1]
	}
	parent := s.innermost()
	b := &block{kind: kind, name: first.Span, parent: parent, inside: Span{s.f.lexemes[brace].End, len(s.f.text)}}
	b.whole = Span{first.Start, len(s.f.text)}
	for i := s.at + 1; i < brace; i++ {
		switch l := s.f.lexemes[i]; l.kind {
		case word, text:
			b.labels = append(b.labels, label{s.f.source(l.Span), l.Span})
		case openQuote:
			if s.kind(i+1) == closeQuote {
				b.labels = append(b.labels, label{"", Span{l.End, l.End}})
			}
		}
	}
	parent.blocks = append(parent.blocks, b)
	s.at = brace + 1
	if len(s.open) < maxNesting {
		s.open = append(s.open, b)
	}
}

// startsLine reports whether a lexeme is at the very start of a line.
func (s *scanner) startsLine(i int) bool {
	at := s.f.lexemes[i].Start
	return at == 0 || s.f.text[at-1] == '\n'
}

func (s *scanner) attribute() {
	in := s.innermost()
	name := s.f.lexemes[s.at].Span
	a := &attr{name: s.f.source(name), at: name, in: in, from: s.at + 2}
	a.value.Start = s.f.lexemes[s.at+1].End
	a.to = s.valueEnd(a.from)
	a.value.End = len(s.f.text)
	if a.to < len(s.f.lexemes) {
		a.value.End = s.f.lexemes[a.to].Start
	}
	in.attrs = append(in.attrs, a)
	s.expressions(a)
	s.at = a.to
}

// valueEnd returns the index of the lexeme after a value.
func (s *scanner) valueEnd(from int) int {
	var open []lexemeKind
	for i := from; i < len(s.f.lexemes); i++ {
		k := s.kind(i)
		switch {
		case k == newline && (len(open) == 0 || s.abandoned(i+1, open)):
			return i
		case k.opens():
			open = append(open, k)
		case k.closes() && len(open) > 0 && open[len(open)-1] == k-1:
			open = open[:len(open)-1]
		case k == closeBrace && (len(open) == 0 || open[len(open)-1] == openBracket || open[len(open)-1] == openParen):
			return i // of the block
		}
	}
	return len(s.f.lexemes)
}

// abandoned reports whether the line that starts at a lexeme cannot belong to a value in
// which something is open. Within a value, an attribute can be only in braces, and a
// block nowhere.
func (s *scanner) abandoned(i int, open []lexemeKind) bool {
	switch open[len(open)-1] {
	case openBracket, openParen, openTemplate:
		if s.kind(i) == word && s.kind(i+1) == equals {
			return true
		}
	case openBrace:
	default:
		return false // text
	}
	if s.kind(i) != word || s.kind(i+1) != openQuote {
		return false
	}
	_, ok := s.header(i)
	return ok
}

// expressions finds the references and calls in a value.
func (s *scanner) expressions(a *attr) {
	for i := a.from; i < a.to; i++ {
		l := s.f.lexemes[i]
		if l.kind != word || i > a.from && s.kind(i-1) == dot {
			continue
		}
		name := s.f.source(l.Span)
		switch {
		case s.kind(i+1) == openParen && i+1 < a.to:
			s.f.calls = append(s.f.calls, call{name, l.Span, a})
		case s.isKey(a, i):
		default:
			s.f.refs = append(s.f.refs, &reference{steps: s.steps(i, a.to), in: a})
		}
	}
}

// isKey reports whether a word is a key of an object.
func (s *scanner) isKey(a *attr, i int) bool {
	if next := s.kind(i + 1); next != equals && next != colon {
		return false
	}
	if i == a.from {
		return false
	}
	before := s.kind(i - 1)
	return before == openBrace || before == comma || before == newline
}

// steps returns the words and indices of a reference that begins at a lexeme.
func (s *scanner) steps(i, end int) []step {
	l := s.f.lexemes[i]
	out := []step{{name: s.f.source(l.Span), Span: l.Span}}
	for i++; i < end; {
		switch {
		case s.kind(i) == dot && i+1 < end && s.kind(i+1) == word:
			at := s.f.lexemes[i+1].Span
			out = append(out, step{name: s.f.source(at), Span: at})
			i += 2
		case s.kind(i) == openBracket:
			closing, ok := s.f.closing[i]
			if !ok || closing >= end {
				return out
			}
			index := step{index: true, Span: Span{s.f.lexemes[i].Start, s.f.lexemes[closing].End}}
			if closing == i+4 && s.kind(i+2) == text {
				index.name = s.f.source(s.f.lexemes[i+2].Span)
			}
			out = append(out, index)
			i = closing + 1
		default:
			return out
		}
	}
	return out
}

// pairs finds the pairs of brackets.
func pairs(lexemes []lexeme) map[int]int {
	out := map[int]int{}
	var open []int
	for i, l := range lexemes {
		switch l.kind {
		case openBracket:
			open = append(open, i)
		case closeBracket:
			if n := len(open); n > 0 {
				out[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
	return out
}
