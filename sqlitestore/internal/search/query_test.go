package search

import (
	"context"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// wantInvalid checks that a query is refused, with a text that says why.
func wantInvalid(t *testing.T, query string, err error, why string) {
	t.Helper()
	if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v; want invalid_argument and %q", query, err, why)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"frog", `"frog"`},
		{"frog newt", `("frog" AND "newt")`},
		{"frog AND newt pond", `("frog" AND "newt" AND "pond")`},
		{"a OR b c", `("a" OR ("b" AND "c"))`},
		{"a NOT b NOT c d", `((("a" NOT "b") NOT "c") AND "d")`},
		{"(a OR b) c", `(("a" OR "b") AND "c")`},
		{`"two words" begin*`, `("two words" AND "begin` + words.star + `)`},
		{`"two wor"*`, `"two wor` + words.star},
		{"10.0.0.7 x=1", `("10 0 0 7" AND "x 1")`},
		{`"AND" or`, `("AND" AND "or")`},
		{"a^b:c*", ""},
		{"word:colon", `"word colon"`},
	} {
		got, err := parse(c.query)
		if c.want == "" {
			wantInvalid(t, c.query, err, "")
			continue
		}
		if err != nil || got.match != c.want {
			t.Errorf("%s is %s, %v; want %s", c.query, got.match, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for query, want := range map[string]string{
		"":                                 "a word to search for is missing",
		"()":                               "a word to search for is missing",
		`a "b`:                             "a quotation mark is not closed",
		"(a":                               "a parenthesis is not closed",
		"a)":                               "a parenthesis is closed, but was not opened",
		"NOT a":                            "NOT has nothing before it",
		"a OR AND b":                       "AND has nothing before it",
		"a OR":                             "a word to search for is missing",
		"--- ":                             "has no letters",
		"ab*":                              "matches too much",
		"\xff":                             "it is not text",
		strings.Repeat("a ", 33):           "too many words",
		strings.Repeat("(", 10) + "a":      "too deep",
		`a NOT "` + strings.Repeat(`"`, 2): "",
	} {
		_, err := parse(query)
		wantInvalid(t, query, err, want)
	}
}

// FuzzParse gives every query that is understood to the index, which must
// understand it, too.
func FuzzParse(f *testing.F) {
	for _, query := range []string{"a OR (b NOT c) d*", `"x y"* z`, "ab*c 日本 é", "((((a))))"} {
		f.Add(query)
	}
	ix, err := temporaryIndex(context.Background(), "start")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := ix.close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, query string) {
		q, err := parse(query)
		if err != nil {
			wantInvalid(t, query, err, "")
			return
		}
		if err := ix.find(t.Context(), q.match, Everything, func(indexed) bool { return true }); err != nil {
			t.Errorf("%q became %s: %v", query, q.match, err)
		}
		if s := q.snippet(query); len(s) > 2*(snippetBefore+snippetBehind) {
			t.Errorf("the snippet of %q is %q", query, s)
		}
	})
}

func TestSnippet(t *testing.T) {
	long := strings.Repeat("word ", 50)
	for _, c := range []struct{ query, text, want string }{
		{"frog", "one\nfrog", "one frog"},
		{"ÉLAN", long + "elan vital " + long, "…" + strings.Repeat("word ", 12) + "elan vital " + strings.TrimSpace(strings.Repeat("word ", 26)) + "…"},
		{"begin*", "at the beginning", "at the beginning"},
		{"a NOT word", long + "a", "…" + strings.Repeat("word ", 12) + "a"},
	} {
		q, err := parse(c.query)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.snippet(c.text); got != c.want {
			t.Errorf("%s in %q is shown as %q; want %q", c.query, c.text, got, c.want)
		}
	}
}
