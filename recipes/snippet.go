package recipes

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// snippet quotes the lines of the range and underlines exactly the range. Of a line
// that is wider than there is room it quotes what is around the range.
func (p *painter) snippet(d Diagnostic, code string) {
	gutter := len(fmt.Sprint(d.Range.Start.Line + len(d.Snippet) - 1))
	for i, line := range d.Snippet {
		number := d.Range.Start.Line + i
		from, to := underlined(d.Range, number, line)
		if p.width > 0 {
			line, from, to = excerpt(line, from, to, max(p.width-gutter-len("   | "), minRoom))
		}
		carets := strings.Repeat("^", max(columns(line[from:to]), 1))
		p.b.WriteString(p.paint(faint, fmt.Sprintf("  %*d |", gutter, number)) + " " + printable(line) + "\n")
		p.b.WriteString(p.paint(faint, fmt.Sprintf("  %*s |", gutter, "")) + " " + blankOf(line[:from]) + p.paint(code, carets) + "\n")
	}
}

// underlined returns the part of a line that the range covers.
func underlined(r Range, number int, line string) (from, to int) {
	from, to = len(line)-len(strings.TrimLeft(line, " \t")), len(line)
	if number == r.Start.Line {
		from = bytesOfColumn(line, r.Start.Column)
	}
	if number == r.End.Line {
		to = bytesOfColumn(line, r.End.Column)
	}
	return from, max(to, from)
}

// minRoom is how many columns of a line are quoted, however narrow the terminal.
const minRoom = 20

const ellipsis = "…"

// excerpt cuts a line that has more columns than there is room for: the beginning
// if the part between from and to is there, else what is around the beginning of
// that part. It returns where the part is now.
func excerpt(line string, from, to, room int) (string, int, int) {
	total := columns(line)
	if total <= room {
		return line, from, to
	}
	first := 0
	if columns(line[:to]) >= room { // the part would be cut
		first = min(max(columns(line[:from])-room/4, 0), total-room+1)
	}
	head, tail := "", ""
	start := 0
	if first > 0 { // else marks that the line begins with, which have no width, stay
		start = bytesBeyond(line, first)
		head = ellipsis
		room--
	}
	end := len(line)
	if columns(line[start:]) > room {
		tail = ellipsis
		end = start + bytesOfWidth(line[start:], room-1)
	}
	place := func(at int) int {
		switch {
		case at > end:
			return len(head) + end - start + len(tail)
		case at < start:
			return 0
		}
		return len(head) + at - start
	}
	return head + line[start:end] + tail, place(from), place(to)
}

// bytesOfWidth returns how much of a text goes into so many columns.
func bytesOfWidth(text string, most int) int {
	n := 0
	for i, r := range text {
		if n += columns(string(r)); n > most {
			return i
		}
	}
	return len(text)
}

// bytesBeyond returns the offset of the first character with at least so many columns
// before it.
func bytesBeyond(text string, least int) int {
	n := 0
	for i, r := range text {
		if n >= least && !combines(r) {
			return i
		}
		n += columns(string(r))
	}
	return len(text)
}

// bytesOfColumn returns the offset of a column, which counts characters as a
// reader sees them: marks that combine with the letter before do not count.
func bytesOfColumn(line string, column int) int {
	n := 0
	for i, r := range line {
		if combines(r) {
			continue
		}
		if n++; n == column {
			return i
		}
	}
	return len(line)
}

func combines(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) || r == '\u200d' }

// columns returns how wide a terminal shows text.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case combines(r):
		case width.LookupRune(r).Kind() == width.EastAsianWide, width.LookupRune(r).Kind() == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// blankOf keeps tabs, so that carets line up however wide a tab is shown.
func blankOf(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteString(strings.Repeat(" ", columns(string(r))))
		}
	}
	return b.String()
}
