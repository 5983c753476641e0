package recipes

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A line that is too wide is cut to the available width, and shows the underlined part,
// or at least its beginning.
func TestExcerpt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOfN(rapid.SampledFrom([]rune("abc {}=界e\u0301🙂\t")), 0, 200).Draw(t, "line")
		a := rapid.IntRange(0, len(runes)).Draw(t, "from")
		b := rapid.IntRange(a, len(runes)).Draw(t, "to")
		line, from, to := string(runes), len(string(runes[:a])), len(string(runes[:b]))
		checkExcerpt(t, line, from, to, rapid.IntRange(minRoom, 120).Draw(t, "room"))
	})
}

// Cases that are seldom drawn: marks before the first letter, and a wide letter at the
// cut.
func TestExcerptBetweenColumns(t *testing.T) {
	checkExcerpt(t, "\u0301aaaaaaaaaaaaaaa界界🙂", 0, 2, minRoom)
	checkExcerpt(t, "a界aaaaaaaaaaaaa界🙂a", 17, 24, minRoom)
}

func checkExcerpt(t interface{ Errorf(string, ...any) }, line string, from, to, room int) {
	text, f, u := excerpt(line, from, to, room)
	if columns(text) > room {
		t.Errorf("it has %d columns: %q", columns(text), text)
	}
	if columns(line) <= room && text != line {
		t.Errorf("it is cut though there is room: %q", text)
	}
	if !strings.Contains(line, strings.Trim(text, ellipsis)) {
		t.Errorf("it is not a part of the line: %q", text)
	}
	part := line[from:to]
	if !strings.HasPrefix(part, strings.TrimSuffix(text[f:u], ellipsis)) {
		t.Errorf("underlined is %q and not %q", text[f:u], part)
	}
	if columns(part) <= room/2 && text[f:u] != part {
		t.Errorf("%q is not underlined whole, but %q", part, text[f:u])
	}
}

// Cut lines, with the part at the beginning, in the middle and at the end.
func TestLongLinesAreCut(t *testing.T) {
	for _, c := range []struct{ line, part, want string }{
		{`a = [` + strings.Repeat(`"x", `, 30) + `]`, `a`, "  7 | a = [\"x\", \"x\", \"x\", \"x\", \"x\", \"x\"…\n    | ^\n"},
		{`a = [` + strings.Repeat(`"x", `, 30) + `y, ` + strings.Repeat(`"z", `, 30) + `]`, `y`, "  7 | …\", \"x\", y, \"z\", \"z\", \"z\", \"z\", \"…\n    |          ^\n"},
		{`a = [` + strings.Repeat(`"x", `, 30) + `y]`, `y]`, "  7 | … \"x\", \"x\", \"x\", \"x\", \"x\", \"x\", y]\n    |                                 ^^\n"},
		{`a = "` + strings.Repeat(`界`, 60) + `"`, `"` + strings.Repeat(`界`, 60) + `"`, "  7 | a = \"界界界界界界界界界界界界界界…\n    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"},
	} {
		at := strings.Index(c.line, c.part)
		r := Range{Start: Pos{Line: 7, Column: len([]rune(c.line[:at])) + 1}, End: Pos{Line: 7, Column: len([]rune(c.line[:at+len(c.part)])) + 1}}
		p := painter{width: 40}
		p.snippet(Diagnostic{Range: r, Snippet: []string{c.line}}, red)
		if got := p.b.String(); got != c.want {
			t.Errorf("got\n%swant\n%s", got, c.want)
		}
	}
}
