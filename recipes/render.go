package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// WriteText writes findings for people: place, block, snippet with carets,
// explanation, values in play and remedy. Prose is wrapped at width columns;
// 0 means that it is not. With colour it uses terminal escape sequences.
func WriteText(w io.Writer, ds Diagnostics, width int, colour bool) error {
	p := painter{colour: colour, width: width}
	for i, d := range ds {
		if i > 0 {
			p.b.WriteByte('\n')
		}
		p.diagnostic(d)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

type painter struct {
	b      strings.Builder
	colour bool
	width  int
}

const (
	red    = "1;31"
	yellow = "1;33"
	bold   = "1"
	faint  = "2"
)

func (p *painter) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *painter) diagnostic(d Diagnostic) {
	word, code := "Error: ", red
	if d.Severity == Warning {
		word, code = "Warning: ", yellow
	}
	p.b.WriteString(p.paint(code, word) + p.paint(bold, printable(d.Summary)) + "\n")
	if place := d.place(); place != "" {
		if d.Block != "" {
			place += ", in " + d.Block
		}
		p.b.WriteString("  " + printable(place) + "\n")
	}
	p.snippet(d, code)
	p.paragraph("", d.Detail)
	p.paragraph("", d.question())
	for _, v := range d.Values {
		p.paragraph("- ", v.Name+" is "+v.Text)
	}
	p.paragraph("= ", d.Remedy)
}

// snippet quotes the lines of the range and underlines exactly the range.
func (p *painter) snippet(d Diagnostic, code string) {
	gutter := len(fmt.Sprint(d.Range.Start.Line + len(d.Snippet) - 1))
	for i, line := range d.Snippet {
		number := d.Range.Start.Line + i
		p.b.WriteString(p.paint(faint, fmt.Sprintf("  %*d |", gutter, number)) + " " + printable(line) + "\n")
		before, under := underline(d.Range, number, line)
		p.b.WriteString(p.paint(faint, fmt.Sprintf("  %*s |", gutter, "")) + " " + before + p.paint(code, under) + "\n")
	}
}

// underline returns the blank that lines up with what precedes the range on a
// line, and the carets for the range itself.
func underline(r Range, number int, line string) (blank, carets string) {
	from, to := 0, len(line)
	if number == r.Start.Line {
		from = bytesOfColumn(line, r.Start.Column)
	} else {
		from = len(line) - len(strings.TrimLeft(line, " \t"))
	}
	if number == r.End.Line {
		to = bytesOfColumn(line, r.End.Column)
	}
	to = max(to, from)
	n := max(columns(line[from:to]), 1)
	return blankOf(line[:from]), strings.Repeat("^", n)
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

// printable replaces what could move a terminal's cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) || combines(r) {
			return r
		}
		return '\ufffd'
	}, s)
}

// paragraph writes text indented by two, and further lines under the first
// letter after mark.
func (p *painter) paragraph(mark, text string) {
	if text == "" {
		return
	}
	for _, line := range strings.Split(text, "\n") {
		indent := "  " + mark
		for _, part := range wrap(printable(line), p.width-len(indent)) {
			p.b.WriteString(indent + part + "\n")
			indent = "  " + strings.Repeat(" ", len(mark))
		}
		mark = strings.Repeat(" ", len(mark))
	}
}

// wrap breaks text at spaces; a limit that is not positive means no breaks.
func wrap(text string, limit int) []string {
	if limit <= 0 || utf8.RuneCountInString(text) <= limit {
		return []string{text}
	}
	var lines []string
	line, n := "", 0
	for _, word := range strings.Fields(text) {
		k := columns(word)
		if n > 0 && n+1+k > limit {
			lines = append(lines, line)
			line, n = "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+k
	}
	return append(lines, line)
}

// WriteJSON writes findings for machines, as one object on one line:
// {"valid", "errors", "warnings", "diagnostics": [{"severity", "summary",
// "detail", "suggestion", "remedy", "range", "block", "values", "snippet"}]}.
func WriteJSON(w io.Writer, ds Diagnostics) error {
	report := struct {
		Valid       bool        `json:"valid"`
		Errors      int         `json:"errors"`
		Warnings    int         `json:"warnings"`
		Diagnostics Diagnostics `json:"diagnostics"`
	}{Valid: !ds.HasErrors(), Diagnostics: ds}
	report.Errors, report.Warnings = ds.Count()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(report)
}

// MarshalJSON writes the findings as a list, as in [WriteJSON].
func (ds Diagnostics) MarshalJSON() ([]byte, error) {
	type finding struct {
		Severity   string   `json:"severity"`
		Summary    string   `json:"summary"`
		Detail     string   `json:"detail,omitempty"`
		Suggestion string   `json:"suggestion,omitempty"`
		Remedy     string   `json:"remedy,omitempty"`
		Range      *Range   `json:"range,omitempty"`
		Block      string   `json:"block,omitempty"`
		Values     []Value  `json:"values,omitempty"`
		Snippet    []string `json:"snippet,omitempty"`
	}
	out := []finding{}
	for _, d := range ds {
		f := finding{Severity: d.Severity.String(), Summary: d.Summary, Detail: d.Detail, Suggestion: d.Suggestion,
			Remedy: d.Remedy, Block: d.Block, Values: d.Values, Snippet: d.Snippet}
		if d.Range.File != "" {
			f.Range = &d.Range
		}
		out = append(out, f)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(out)
	return b.Bytes(), err
}
