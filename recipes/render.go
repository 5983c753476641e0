package recipes

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WriteText writes findings for people: place, block, snippet with carets, explanation,
// values and remedy. Prose is wrapped at width columns, or not at all if width is 0. With
// colour it uses terminal escape sequences.
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

// printable replaces characters that could move a terminal's cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) || combines(r) {
			return r
		}
		return '\ufffd'
	}, s)
}

// paragraph writes indented text. Further lines are aligned with the first letter after
// mark.
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

// wrap breaks text at spaces; without a positive limit it does not. Further lines are indented
// like the first one, and those of an item of a list like its text.
func wrap(text string, limit int) []string {
	text = strings.TrimRight(text, " ")
	if limit <= 0 || utf8.RuneCountInString(text) <= limit {
		return []string{text}
	}
	unindented := strings.TrimLeft(text, " ")
	line := text[:len(text)-len(unindented)]
	indent := line
	if strings.HasPrefix(unindented, "- ") {
		indent += "  "
	}
	var lines []string
	n, first := len(line), true
	for _, word := range strings.Fields(text) {
		k := columns(word)
		if !first && n+1+k > limit {
			lines = append(lines, line)
			line, n, first = indent, len(indent), true
		}
		if !first {
			line, n = line+" ", n+1
		}
		line, n, first = line+word, n+k, false
	}
	return append(lines, line)
}

// WriteJSON writes findings for programs, as one object on one line: {"valid", "errors",
// "warnings", "diagnostics": [{"severity", "summary", "detail", "suggestion", "remedy",
// "range", "block", "values", "snippet"}]}.
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
