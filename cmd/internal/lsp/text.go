package lsp

import (
	"bytes"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/recipes/editor"
)

// lines maps positions of the protocol, which count UTF-16 code units, to offsets in bytes.
type lines struct {
	text   []byte
	starts []int
	last   position // that was requested last, and its offset
	lastAt int
}

func newLines(text []byte) *lines {
	l := &lines{text: text, starts: []int{0}}
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return l
		}
		at += n + 1
		l.starts = append(l.starts, at)
	}
}

// offset returns the offset of a position. A position outside the text is moved into it,
// as the protocol asks.
func (l *lines) offset(p position) int {
	switch {
	case p.Line < 0:
		return 0
	case p.Line >= len(l.starts):
		return len(l.text)
	}
	at, end := l.starts[p.Line], len(l.text)
	if p.Line+1 < len(l.starts) {
		end = l.starts[p.Line+1] - 1
	}
	for units := 0; at < end; {
		r, size := utf8.DecodeRune(l.text[at:end])
		if units += unitsOf(r); units > p.Character {
			break
		}
		at += size
	}
	return at
}

// position returns the position of an offset.
func (l *lines) position(offset int) position {
	offset = min(max(offset, 0), len(l.text))
	line, found := slices.BinarySearch(l.starts, offset)
	if !found {
		line--
	}
	p, at := position{Line: line}, l.starts[line]
	if l.last.Line == line && l.lastAt >= at && l.lastAt <= offset { // most are requested in their order
		p, at = l.last, l.lastAt
	}
	for at < offset {
		r, size := utf8.DecodeRune(l.text[at:])
		p.Character += unitsOf(r)
		at += size
	}
	l.last, l.lastAt = p, at
	return p
}

func unitsOf(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

func (l *lines) span(s editor.Span) textRange {
	return textRange{l.position(s.Start), l.position(s.End)}
}

// pathOf returns the path of a document; it is not ok if it is not a file.
func pathOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || strings.ContainsRune(u.Path, 0) {
		return "", false
	}
	path := u.Path
	if len(path) > 2 && path[2] == ':' { // /c:/folder
		path = path[1:]
	}
	path = filepath.Clean(filepath.FromSlash(path))
	return path, filepath.IsAbs(path)
}

func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
