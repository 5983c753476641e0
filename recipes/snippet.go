package recipes

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// snippet quotes the lines of the range and underlines the range. A line that is too wide
// is cut to the text around the range.
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

// minRoom is the minimum number of quoted columns, even in a narrow terminal.
const minRoom = 20

const ellipsis = "…"

// excerpt cuts a line that has more columns than room: to its start if that includes the
// part between from and to, else to the text around the start of the part. It returns the
// new position of the part.
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
	if first > 0 { // else keep combining marks at the start of the line, which have no width
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

// bytesOfWidth returns how much of a text fits into a number of columns.
func bytesOfWidth(text string, most int) int {
	n := 0
	for i, r := range text {
		if n += columns(string(r)); n > most {
			return i
		}
	}
	return len(text)
}

// bytesBeyond returns the offset of the first character after a number of columns.
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

// bytesOfColumn returns the offset of a column, which counts characters as displayed:
// combining marks do not count.
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

// columns returns the width of a text in a terminal.
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

// blankOf keeps tabs, so that carets line up at any width of tabs.
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
