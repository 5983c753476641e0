package editor

// Span is a part of a text, as offsets in bytes; End is exclusive.
type Span struct{ Start, End int }

// touches reports whether a cursor at an offset is in the span, or at its end.
func (s Span) touches(offset int) bool { return s.Start <= offset && offset <= s.End }

// file is the structure of one text.
type file struct {
	path string
	text []byte
	// body has the blocks and attributes of the text itself; its type is empty.
	body     *block
	lexemes  []lexeme
	comments []Span
	// closing has the index of the closing bracket of each opening one.
	closing map[int]int
	refs    []*reference
	calls   []call
}

// block is a block, as far as it is written.
type block struct {
	kind   string
	name   Span // of kind
	labels []label
	parent *block
	attrs  []*attr
	blocks []*block
	inside Span // between the braces
	whole  Span
}

// label is a label of a block; its span is without quotes.
type label struct {
	text string
	Span
}

// attr is an attribute, as far as it is written.
type attr struct {
	name  string
	at    Span // of the name
	value Span
	in    *block
	// from and to are the lexemes of the value.
	from, to int
}

// reference is a traversal such as channel.tasks["north"].
type reference struct {
	steps []step
	in    *attr
}

// step is one word of a reference, or an index.
type step struct {
	name string
	Span
	index bool
}

// call is the name of a function where it is called.
type call struct {
	name string
	Span
	in *attr
}

// within returns the innermost block around an offset; the body of the file if there is
// none.
func (f *file) within(offset int) *block {
	b := f.body
	for {
		inner := b.blockAround(offset)
		if inner == nil {
			return b
		}
		b = inner
	}
}

func (b *block) blockAround(offset int) *block {
	for _, n := range b.blocks {
		if n.inside.touches(offset) {
			return n
		}
	}
	return nil
}

// attr returns the attribute with a name, or nil.
func (b *block) attr(name string) *attr {
	for _, a := range b.attrs {
		if a.name == name {
			return a
		}
	}
	return nil
}

// label returns the text of the last label, by which references name the block.
func (b *block) label() (label, bool) {
	if len(b.labels) == 0 {
		return label{}, false
	}
	return b.labels[len(b.labels)-1], true
}

// source returns the text of a span.
func (f *file) source(s Span) string { return string(f.text[s.Start:s.End]) }

// literal returns the text of a value that is nothing but a quoted text, and its span
// without the quotes.
func (f *file) literal(a *attr) (string, Span, bool) {
	l := f.lexemes[a.from:a.to]
	if len(l) != 3 || l[0].kind != openQuote || l[1].kind != text || l[2].kind != closeQuote {
		return "", Span{}, false
	}
	return f.source(l[1].Span), l[1].Span, true
}
