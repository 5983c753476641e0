package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Text writes a report for a reader at a terminal. Texts of the subject are not made safe
// for a terminal.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, x := range r.bad() {
		word := string(x.Verdict)
		if x.Reason != "" {
			word += " (" + string(x.Reason) + ")"
		}
		if x.Expected != "" {
			word += ", as expected: " + x.Expected
		}
		fmt.Fprintf(&b, "%s: %s\n", r.title(x), word)
		if x.Expected != "" {
			continue
		}
		if x.Reason == Unreached {
			continue // what it needed is shown
		}
		fmt.Fprintf(&b, "  %s\n", x.About)
		r.rules(&b, x.Rules)
		for _, seen := range x.Seen {
			fmt.Fprintf(&b, "  seen: %s\n", strings.ReplaceAll(seen, "\n", "\n    "))
		}
		if x.Repeat != "" {
			fmt.Fprintf(&b, "  repeat: %s\n", x.Repeat)
		}
	}
	for _, s := range r.Stale {
		fmt.Fprintf(&b, "%s: expected to fail, and did not: take it out of the baseline\n", s)
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	b.WriteString(r.Summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// rules writes the words of the first rules that a check proves, and the numbers of the
// others.
func (r *Report) rules(b *strings.Builder, rules []string) {
	const most = 3
	for _, rule := range rules[:min(most, len(rules))] {
		fmt.Fprintf(b, "  %s  %s\n", rule, r.words(rule))
	}
	if len(rules) > most {
		fmt.Fprintf(b, "  and %s\n", strings.Join(rules[most:], ", "))
	}
}

func (r *Report) title(x *Result) string {
	if x.Subject != "" {
		return x.Subject + ": " + x.Check
	}
	return x.Check
}

// Summary returns the outcome in one or two lines.
func (r *Report) Summary() string {
	passed, scored := r.Score()
	word := "does not conform"
	if r.Conforms {
		word = "conforms"
	}
	name := r.Subject
	if r.Name != "" {
		name += " " + r.Name
	}
	out := fmt.Sprintf("%s %s to %s, %s: %s passed, %d failed, %d inconclusive, %d not applicable; %d of %d requirements", name, word, r.Set, r.Revision,
		checks(r.Count(Passed)), r.Count(Failed), r.Count(Inconclusive), r.Count(NotApplicable), passed, scored)
	if expected := r.expected(); expected > 0 {
		out += "; " + wereExpected(expected)
	}
	return out + "."
}

func checks(n int) string {
	if n == 1 {
		return "1 check"
	}
	return fmt.Sprintf("%d checks", n)
}

func wereExpected(n int) string {
	if n == 1 {
		return "1 failure was expected"
	}
	return fmt.Sprintf("%d failures were expected", n)
}

func (r *Report) expected() (n int) {
	for i := range r.Results {
		if r.Results[i].Expected != "" {
			n++
		}
	}
	return n
}

// JSON writes a report as a JSON object.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// JUnit writes a report in the format of JUnit, which CI services read. Expected failures
// and checks that do not apply count as skipped.
func (r *Report) JUnit(w io.Writer) error {
	type skipped struct {
		Message string `xml:"message,attr"`
	}
	type failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Skipped *skipped `xml:"skipped,omitempty"`
		Failure *failure `xml:"failure,omitempty"`
		Error   *failure `xml:"error,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: r.Set + " " + r.Revision + " " + r.Subject}
	for i := range r.Results {
		x := &r.Results[i]
		c := testcase{Class: r.Subject, Name: x.Check}
		if x.Subject != "" {
			c.Class = x.Subject
		}
		body := failure{Message: x.About, Type: string(x.Verdict), Text: printableXML(strings.Join(append(slices.Clone(x.Seen), x.Repeat), "\n"))}
		switch {
		case x.Expected != "":
			c.Skipped = &skipped{"expected failure: " + x.Expected}
			suite.Skipped++
		case x.Verdict == NotApplicable:
			c.Skipped = &skipped{strings.Join(x.Seen, "; ")}
			suite.Skipped++
		case x.Verdict == Failed:
			c.Failure = &body
			suite.Failures++
		case x.Verdict == Inconclusive:
			body.Type = string(x.Reason)
			c.Error = &body
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, s := range r.Stale {
		suite.Failures++
		suite.Cases = append(suite.Cases, testcase{Class: "baseline", Name: s, Failure: &failure{Message: "expected to fail, and did not", Type: "stale"}})
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// printableXML leaves out what XML cannot have.
func printableXML(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Badge writes what a service such as shields.io needs to draw a badge that names the set
// and its revision.
func (r *Report) Badge(w io.Writer) error {
	passed, scored := r.Score()
	message, colour := "conforms", "brightgreen"
	switch {
	case !r.Conforms:
		message, colour = fmt.Sprintf("%d of %d", passed, scored), "red"
	case r.expected() > 0:
		message, colour = fmt.Sprintf("%d of %d", passed, scored), "yellow"
	}
	return json.NewEncoder(w).Encode(struct {
		Version int    `json:"schemaVersion"`
		Label   string `json:"label"`
		Message string `json:"message"`
		Colour  string `json:"color"`
	}{1, r.Set + ", " + r.Revision, message, colour})
}
