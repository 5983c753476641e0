package editor

import "bytes"

// rescan returns the structure of a text that differs from an earlier one, usually in few
// places. Splitting a text into tokens takes most of the time, so only the lines that have
// changed are split again.
func rescan(old *file, src []byte) *file {
	f := &file{path: old.path, text: src}
	if !f.relex(old) {
		f.lexemes, f.comments = nil, nil
		f.lex()
	}
	f.structure()
	return f
}

// relex takes over the tokens before and after the lines that differ. It is not ok if
// these lines end within a text or a comment, so that what follows must be split too.
func (f *file) relex(old *file) bool {
	prefix, suffix := common(old.text, f.text)
	delta := len(f.text) - len(old.text)
	first, last := old.safeAround(prefix, len(old.text)-suffix)
	from, end := 0, len(f.text)
	if first >= 0 {
		from = old.lexemes[first].End
	}
	if last < len(old.lexemes) {
		end = old.lexemes[last].End + delta
	}
	changed := f.text[from:end]
	if bytes.Contains(changed, []byte("/*")) || bytes.Contains(changed, []byte("*/")) {
		return false
	}
	part := &file{text: changed}
	part.lex()
	if last < len(old.lexemes) && !part.endsSafely() {
		return false
	}
	f.lexemes = make([]lexeme, 0, first+1+len(part.lexemes)+max(len(old.lexemes)-last-1, 0))
	f.lexemes = append(f.lexemes, old.lexemes[:first+1]...)
	f.lexemes = appendShifted(f.lexemes, part.lexemes, from)
	f.lexemes = appendShifted(f.lexemes, old.lexemes[min(last+1, len(old.lexemes)):], delta)
	for _, c := range old.comments {
		if c.End <= from {
			f.comments = append(f.comments, c)
		}
	}
	for _, c := range part.comments {
		f.comments = append(f.comments, Span{c.Start + from, c.End + from})
	}
	for _, c := range old.comments {
		if c.Start >= end-delta {
			f.comments = append(f.comments, Span{c.Start + delta, c.End + delta})
		}
	}
	return true
}

func appendShifted(to, from []lexeme, delta int) []lexeme {
	for _, l := range from {
		l.Start += delta
		l.End += delta
		to = append(to, l)
	}
	return to
}

// common returns how many bytes two texts have in common at their starts and ends.
func common(a, b []byte) (prefix, suffix int) {
	most := min(len(a), len(b))
	for prefix < most && a[prefix] == b[prefix] {
		prefix++
	}
	for suffix < most-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	return prefix, suffix
}

// safeAround returns the indices of the ends of lines around a part of the text at which
// the text can be split apart: those that are not within a text or a template. They are -1
// and the number of lexemes if there are none.
func (f *file) safeAround(start, end int) (first, last int) {
	first, depth := -1, 0
	for i, l := range f.lexemes {
		switch {
		case l.kind >= openQuote && l.kind.opens():
			depth++
		case l.kind >= openQuote && l.kind.closes():
			depth--
		case l.kind != newline || depth != 0:
		case l.End <= start:
			first = i
		case l.Start >= end:
			return first, i
		}
	}
	return first, len(f.lexemes)
}

// endsSafely reports whether a text ends with the end of a line that is not within a text
// or a template.
func (f *file) endsSafely() bool {
	n := len(f.lexemes)
	if n == 0 || f.lexemes[n-1].kind != newline || f.lexemes[n-1].End != len(f.text) {
		return false
	}
	_, last := f.safeAround(0, f.lexemes[n-1].Start)
	return last == n-1
}
