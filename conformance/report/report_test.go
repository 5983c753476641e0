package report_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/requirements"
)

var set = &requirements.Set{Name: "terrarium ABI 1", Revision: "2026-11", Requirements: []requirements.Requirement{
	{Rule: "ABI-A1", Words: "A host MUST <do> this.", Host: []string{"a/one", "a/two"}},
	{Rule: "ABI-A2", Words: "A host MUST do that.", Host: []string{"a/three"}},
	{Rule: "ABI-A3", Words: "Nothing shows this.", NotScored: "it cannot be seen"},
	{Rule: "ABI-A4", Words: "A creature MUST do that.", Creature: []string{"creature/x"}},
}}

func sample() *report.Report {
	return &report.Report{Subject: "host", Name: "x 1", Results: []report.Result{
		{Check: "a/one", About: "One.", Rules: []string{"ABI-A1"}, Verdict: report.Passed},
		{Check: "a/two", About: "Two.", Rules: []string{"ABI-A1"}, Verdict: report.Failed, Seen: []string{"<b>\x00 instead of \"2\""}, Repeat: "terrarium conformance host --check a/two"},
		{Check: "a/three", About: "Three.", Rules: []string{"ABI-A2"}, Verdict: report.Inconclusive, Reason: report.AdapterSilent, Seen: []string{"no answer"}},
		{Check: "a/four", About: "Four.", Rules: []string{"ABI-A2"}, Verdict: report.NotApplicable, Reason: report.LacksFeature},
	}}
}

func baseline(t *testing.T, text string) *report.Baseline {
	t.Helper()
	b, err := report.ParseBaseline("b.yaml", []byte(text), func(check string) bool { return strings.HasPrefix(check, "a/") })
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func always(string) bool { return true }

func TestSettle(t *testing.T) {
	both := "expected_failures:\n  - {check: a/two, reason: not yet}\n  - {check: a/three, reason: never}\n"
	for name, c := range map[string]struct {
		baseline string
		conforms bool
		stale    int
	}{
		"without a baseline":   {"expected_failures: []\n", false, 0},
		"one is expected":      {"expected_failures:\n  - {check: a/two, reason: not yet}\n", false, 0},
		"both are expected":    {both, true, 0},
		"a stale one":          {both + "  - {check: a/one, reason: old}\n", false, 1},
		"one that did not run": {both + "  - {check: a/gone, reason: old}\n", false, 1},
	} {
		r := sample()
		r.Settle(set, baseline(t, c.baseline), always)
		if r.Conforms != c.conforms || len(r.Stale) != c.stale {
			t.Errorf("%s: conforms is %v with the stale entries %q", name, r.Conforms, r.Stale)
		}
	}
	r := sample()
	r.Settle(set, baseline(t, both+"  - {check: a/gone, reason: old}\n"), func(string) bool { return false })
	if !r.Conforms {
		t.Errorf("a check that was left out is stale: %q", r.Stale)
	}
	var got []string
	for _, o := range r.Requirements {
		got = append(got, o.Rule+" "+string(o.Verdict))
	}
	if want := "ABI-A1 failed, ABI-A2 inconclusive, ABI-A3 not_scored"; strings.Join(got, ", ") != want {
		t.Errorf("requirements are %q, want %s", got, want)
	}
	if passed, scored := r.Score(); passed != 0 || scored != 2 {
		t.Errorf("the score is %d of %d", passed, scored)
	}
}

func TestBaselineMistakes(t *testing.T) {
	_, err := report.ParseBaseline("b.yaml", []byte("expected_failures:\n  - {check: a/one}\n  - {check: b/no, reason: x}\n  - {check: [], reason: x}\n"), func(check string) bool { return check == "a/one" })
	for _, want := range []string{"b.yaml:2: ", "b.yaml:3: ", "b.yaml:4: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no mistake at %s: %v", want, err)
		}
	}
	for text, want := range map[string]string{
		"expected_failures:\n  - {check: a/one, subjct: a.wasm, reason: x}\n": `b.yaml:2: "subjct" is not a member`,
		"expected_failures: []\n---\nexpected_failures: []\n":                 "second document",
		"": "the file is empty",
	} {
		if _, err := report.ParseBaseline("b.yaml", []byte(text), func(string) bool { return true }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := report.ParseBaseline("b.yaml", []byte("expected: []"), func(string) bool { return true }); err == nil {
		t.Error("an unknown field is accepted")
	}
}

// junitShape checks that a document has only what readers of JUnit's format know, and all
// that they need.
func junitShape(t *testing.T, text string) {
	t.Helper()
	shape := map[string]struct{ within, needs string }{
		"testsuite": {"", "name tests failures errors skipped"},
		"testcase":  {"testsuite", "classname name"},
		"skipped":   {"testcase", "message"},
		"failure":   {"testcase", "message type"},
		"error":     {"testcase", "message type"},
	}
	dec := xml.NewDecoder(strings.NewReader(text))
	path := []string{""}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			want, known := shape[x.Name.Local]
			if !known || want.within != path[len(path)-1] {
				t.Errorf("%s is within %v", x.Name.Local, path)
			}
			var attributes []string
			for _, a := range x.Attr {
				attributes = append(attributes, a.Name.Local)
			}
			slices.Sort(attributes)
			needs := strings.Fields(want.needs)
			if slices.Sort(needs); !slices.Equal(attributes, needs) {
				t.Errorf("%s has %q", x.Name.Local, attributes)
			}
			path = append(path, x.Name.Local)
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
}

func TestFormats(t *testing.T) {
	r := sample()
	r.Settle(set, baseline(t, "expected_failures:\n  - {check: a/three, reason: never}\n"), always)
	write := func(f func(*strings.Builder) error) string {
		t.Helper()
		var b strings.Builder
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := write(func(b *strings.Builder) error { return r.Text(b) })
	for _, want := range []string{"a/two: failed", "ABI-A1  A host MUST <do> this.", "seen: <b>", "repeat: terrarium conformance host --check a/two", "a/three: inconclusive (adapter_silent), as expected: never", "host x 1 does not conform to terrarium ABI 1, 2026-11"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	var back report.Report
	if err := json.Unmarshal([]byte(write(func(b *strings.Builder) error { return r.JSON(b) })), &back); err != nil || len(back.Results) != 4 || back.Results[1].Repeat == "" {
		t.Errorf("%v: %+v", err, back)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	junit := write(func(b *strings.Builder) error { return r.JUnit(b) })
	if err := xml.Unmarshal([]byte(junit), &suite); err != nil || suite.Tests != 4 || suite.Failures != 1 || suite.Errors != 0 || suite.Skipped != 2 {
		t.Errorf("%v: %+v\n%s", err, suite, junit)
	}
	junitShape(t, junit)
	page := write(func(b *strings.Builder) error { return r.HTML(b) })
	if !strings.Contains(page, "A host MUST &lt;do&gt; this.") || strings.Contains(page, "<b>") || !strings.Contains(page, `id="ABI-A3"`) {
		t.Errorf("the page is\n%s", page)
	}
	badge := write(func(b *strings.Builder) error { return r.Badge(b) })
	if want := `{"schemaVersion":1,"label":"terrarium ABI 1, 2026-11","message":"0 of 2","color":"red"}` + "\n"; badge != want {
		t.Errorf("the badge is %s", badge)
	}
}
