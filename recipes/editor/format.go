package editor

import (
	"bytes"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/recipes"
)

// formatter remembers how the parts of one text are laid out: between two edits of a text,
// most of its parts stay the same, and splitting a part into tokens takes long. It can be
// used by several goroutines.
type formatter struct {
	mu    sync.Mutex
	parts map[string][]byte // by the text of a part; nil if the part has mistakes
}

// Format returns a function that lays out an open text as it is now, as recipes.Format
// does. It can be called by any goroutine. It returns nil if the text has mistakes.
func (w *Workspace) Format(path string) func() []byte {
	f := w.open[path]
	if f == nil || !strings.HasSuffix(path, ".hcl") {
		return func() []byte { return nil }
	}
	to := w.formatters[path]
	if to == nil {
		to = &formatter{}
		w.formatters[path] = to
	}
	return func() []byte { return to.format(path, f.text, f.parts()) }
}

// format lays out the parts of a text. Mistakes in one part can lie in another, so a text
// with mistakes is looked at as a whole.
func (m *formatter) format(path string, text []byte, parts []Span) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := make(map[string][]byte, len(parts))
	out := make([]byte, 0, len(text)+len(text)/8)
	broken := false
	for _, p := range parts {
		part := string(text[p.Start:p.End])
		laid, ok := known[part]
		if !ok {
			if laid, ok = m.parts[part]; !ok {
				laid = one(path, []byte(part))
			}
			known[part] = laid
		}
		broken = broken || laid == nil
		out = append(out, laid...)
	}
	m.parts = known
	if broken {
		return one(path, text)
	}
	return out
}

// one lays out one text; nil if it has mistakes.
func one(path string, text []byte) []byte {
	out, diags := recipes.Format(path, text)
	if diags.HasErrors() {
		return nil
	}
	if out == nil {
		return []byte{}
	}
	return out
}

// parts splits a text where the layout of a line does not depend on the one before it: in
// front of a block after an empty line, or after a line with nothing but the end of a
// block. Equals signs and comments are aligned with those of neighbouring lines only.
func (f *file) parts() []Span {
	var out []Span
	from := 0
	for _, b := range f.body.blocks {
		at := b.whole.Start
		if at > from && at <= len(f.text) && (bytes.HasSuffix(f.text[:at], []byte("\n\n")) || bytes.HasSuffix(f.text[:at], []byte("\n}\n"))) {
			out = append(out, Span{from, at})
			from = at
		}
	}
	return append(out, Span{from, len(f.text)})
}
