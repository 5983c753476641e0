package prose

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const glossary = "docs/reference/glossary.md"

// rule finds wording that is not used. If the pattern has a group and that matches,
// the wording is fine.
type rule struct {
	needle  string // without it, in lower case, the pattern is not tried
	pattern *regexp.Regexp
	instead string
}

// patterns are those that a word of the glossary does not express. A space stands for any
// white space, also between lines.
var patterns = []struct{ needle, pattern, instead string }{
	{"who", `(?-i:(?:^|[.;:] )(?:[-*] )?Who) [^.?!]*[.!]`, "name the role: the caller, a reader, an operator"},
	{"who", `\b(?:for|to|by|of|from|with|than|but|only|those|tells?) who\b`, "name the role: the caller, readers, anyone who"},
	{"who", `(?:;|:|\band|\bor) who (?:is|has|wants|can|does|needs|waits|asks|reads|writes)\b`, "name the role: the caller, a reader"},
	{"who", `(?-i:(?:^|\| |: )who) (?:\w+)`, "name the role; in a table, a noun"},
	{"which", `\b(?:(one|two|three|four|any|each|some|most|none|all|many|both|either|half|part|neither) )?of which (?:the|an?|it|this|that|these|those|they|there|one|two|its|no|only|some|\w+ (?:is|are|was|were|has|have|had|may|can))\b`, "begin a sentence with the noun"},
	{"gone", `\b(?:is|are|was|were|be|been|has|have|had) gone\b`, "removed, missing, closed: what is meant"},
	{"told", `\b(?:is|are|was|were|be|been|being) told\b`, "gets, receives, is notified; or is described"},
	{"out", `\bput(?:s|ting)? out\b`, "outputs, writes"},
	{"before", `\b(?:goes|go|going) before (?:it|them|that|those|what|the|all|earlier|later|other)\b`, "takes precedence over, precedes"},
	{"anew", `\banew\b`, "start over, make again"},
	{"st", `\b(?:stands?|stood) (?:in|there|behind|before)\b`, "is in, is there"},
	{"rooms", `\bthe rooms\b`, "the packages"},
	{"also", `, also (?:after|across|without|beyond|through|under|over|if|when|while|by|from|during)\b`, "even, including"},
	{"into", `\bbelong(?:s|ing)? into\b`, "belongs in"},
	{"take", `\b(?:failure|loss|crash|kill) (?:can |may |could )?takes?\b`, "loses"},
	{"kee", `\b(?:keep|keeps|kept|keeping) to (?:the|its|their|this) (?:\w+ )?(?:contracts?|abi|rules?)\b`, "follows"},
	{"timer", `\btimers? (?:\w+ ){0,4}?(?:rings?|rang|rung)\b`, "fires"},
	{"matter", `\b(?:is|are) the matter of\b`, "depends on, is up to"},
	{"so", `\bsa(?:y|ys|id) so\b`, "reports it, allows it, sets it: what is meant"},
	{"ever", `\bfor ever\b`, "forever, without end"},
	{"out", `\bcarr(?:y|ies|ied|ying) (?:it |them )?out\b`, "execute, apply, run"},
	{"none", `\b(?:that|which) (?:is|are|was|were) none( of)?\b`, "is not valid, is not a"},
	{"no ", `\b(?:that|which|it) (?:is|are|was|were) no (longer|more|less|fewer|later|earlier|other|better|worse|larger|smaller|higher|lower|greater)?\b`, "is not a"},
	{"most ", `\bthe most (?:bytes|tokens|events|entries|characters|elements|rows) (?:that|of an?)\b`, "the largest number of, at most"},
	{"away", `\b(?:takes?|taken|taking|took) (?:it |them )?away\b`, "removes"},
	{"such as", `, such as (?:on|by|after|before|when|because|during|while|if)\b`, "for example"},
	{"b", `\b(?:has|have|had) (?:about |only )?[\d.,]+ [KMG]i?B\b( of)?`, "is, takes, uses"},
}

func newRule(needle, pattern, instead string) rule {
	return rule{needle, regexp.MustCompile(`(?i)` + strings.ReplaceAll(pattern, " ", `\s+`)), instead}
}

var (
	italic = regexp.MustCompile(`\*([^*]+)\*`)
	row    = regexp.MustCompile(`^\| \*([^*]+)\* \| (.+) \|$`)
)

// rules are the patterns, and the words that the glossary says not to use.
func rules(path string) ([]rule, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []rule
	for _, p := range patterns {
		out = append(out, newRule(p.needle, p.pattern, p.instead))
	}
	word := func(text, instead string) {
		needle, _, _ := strings.Cut(strings.ToLower(text), " ")
		out = append(out, newRule(needle, `\b`+regexp.QuoteMeta(text)+`\b`, instead))
	}
	term := ""
	for _, line := range strings.Split(string(text), "\n") {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			term = strings.ToLower(heading)
		}
		if m := row.FindStringSubmatch(line); m != nil {
			word(m[1], m[2])
		}
		if not, ok := strings.CutPrefix(line, "Not: "); ok {
			for _, m := range italic.FindAllStringSubmatch(not, -1) {
				word(m[1], term)
			}
		}
	}
	if len(out) < len(patterns)+20 {
		return nil, fmt.Errorf("%s has only %d words that are not used", path, len(out)-len(patterns))
	}
	return out, nil
}

// finding is wording that is not used, and where it is.
type finding struct {
	file    string
	line    int
	text    string
	instead string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: write instead: %s", f.file, f.line, f.text, f.instead)
}

// check reads paragraphs of a file. Of wordings that overlap only the first is reported.
func check(file string, list []paragraph, rules []rule) (out []finding) {
	for _, p := range list {
		if file == glossary && (strings.HasPrefix(p.text, "Not: ") || row.MatchString(p.text)) {
			continue
		}
		small, taken := strings.ToLower(p.text), make([]bool, len(p.text))
		for _, r := range rules {
			if !strings.Contains(small, r.needle) {
				continue
			}
			for _, m := range r.pattern.FindAllStringSubmatchIndex(p.text, -1) {
				if len(m) > 2 && m[2] >= 0 || slices.Contains(taken[m[0]:m[1]], true) {
					continue
				}
				for i := m[0]; i < m[1]; i++ {
					taken[i] = true
				}
				match := p.text[m[0]:m[1]]
				start := m[1] - len(strings.TrimLeft(match, "-*.;:| \n"))
				text := strings.Join(strings.Fields(p.text[start:m[1]]), " ")
				if len(text) > 60 {
					text = strings.ToValidUTF8(text[:60], "") + "…"
				}
				out = append(out, finding{file, p.line + strings.Count(p.text[:start], "\n"), text, r.instead})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b finding) int { return a.line - b.line })
	return out
}

// TestRules shows what the rules find, and what they leave alone.
func TestRules(t *testing.T) {
	list, err := rules(root + "/" + glossary)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"Who falls behind gets an event.":                                                   "1: Who falls behind gets an event.",
		"All is kept. Who\nwants less sets a bound.":                                        "1: Who wants less sets a bound.",
		"This is for who\nreads.":                                                           "1: for who",
		"one\ntwo who, and\nmend it":                                                        "3: mend",
		"a list, of which the first is\nread":                                               "1: of which the",
		"the file\nis\ngone, and Nobody reads it":                                           "2: is gone, 3: Nobody",
		"- one\n\n- `nobody` and <nobody@example.com>":                                      "3: nobody",
		"history is given up":                                                               "1: history is given up",
		"| a | whoever |\n| b | heir |":                                                     "1: whoever, 2: heir",
		"```sh\nmend\n```\n\nheed":                                                          "5: heed",
		"tell it of which type it is":                                                       "",
		"| `x` | who it is about |\n| who | |":                                              "1: who it",
		"Who may call it?":                                                                  "",
		"a caller who waits, two of which are read":                                         "",
		"mending is refused but recommend, amends and heirloom are words":                   "1: mending",
		"[mends](mend.md), `heir`, https://host/heir":                                       "1: mends",
		"it is read once, also\nafter a restart, and also by others":                        "1: , also after",
		"a power failure can take what belongs into the log":                                "1: belongs into, 1: failure can take",
		"a module keeps to the creature ABI, a timer set here rings":                        "1: keeps to the creature ABI, 1: timer set here rings",
		"links are the matter of the system; keep to the left, it takes":                    "1: are the matter of",
		"the log says\nso, builds it anew and carries it out for ever":                      "1: says so, 2: anew, 2: for ever, 2: carries it out",
		"a schema that is none is ignored, and one that is none of these":                   "1: that is none",
		"which is no longer a name, which is no name; it is no more":                        "1: which is no",
		"a program has about 35 MB, a process has 64 MiB of memory, or has at most 4 MB":    "1: has about 35 MB",
		"the most bytes that it may have, most bytes that are read, the most tokens of all": "1: the most bytes that",
		"take it away, it is taken\naway; a takeaway":                                       "1: take it away, 1: taken away",
		"it fails, such as on a full disk; names such as on and off":                        "1: , such as on",
		"the request is carried out; say something":                                         "1: carried out",
	} {
		var got []string
		for _, f := range check("x.md", paragraphs(text, 1), list) {
			got = append(got, fmt.Sprintf("%d: %s", f.line, f.text))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
	got := check(glossary, paragraphs("Not: *kin*.\n\n| *kin* | x |\n\nkin", 1), list)
	if len(got) != 1 || got[0].String() != glossary+`:5: "kin": write instead: lineage` {
		t.Errorf("of the glossary: %v", got)
	}
}

// TestGo shows what of a Go file is read.
func TestGo(t *testing.T) {
	const source = `// Package x is not for who
// reads it.
package x // kin

import _ "nobody at/home"

//go:embed whoever

/* heed
   it */
const a = "one " + "somebody waits, nobody"

// Code:
//
//	mend(x)
type b struct {
	c int "xml:\"anybody else\""
}
`
	list, err := rules(root + "/" + glossary)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"x.go":      "1: for who, 3: kin, 9: heed, 11: somebody, 11: nobody",
		"x_test.go": "1: for who, 3: kin, 9: heed",
		"y.go":      "",
	} {
		path := filepath.Join(t.TempDir(), name)
		text := source
		if name == "y.go" {
			text = "// Code generated by x. DO NOT EDIT.\n" + source
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		paragraphs, err := golang(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range check(name, paragraphs, list) {
			got = append(got, fmt.Sprintf("%d: %s", f.line, f.text))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: found %q, want %q", name, got, want)
		}
	}
}

// TestGlossary holds that each term is defined, leads to a page, and says what not to
// call it.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile(root + "/" + glossary)
	if err != nil {
		t.Fatal(err)
	}
	terms := strings.Split(string(text), "\n### ")[1:]
	if len(terms) < 40 {
		t.Fatalf("only %d terms are defined", len(terms))
	}
	for _, term := range terms {
		term, _, _ = strings.Cut(term, "\n## ")
		name, rest, _ := strings.Cut(term, "\n")
		if !strings.Contains(rest, "](") || !strings.Contains(rest, "\nNot: ") {
			t.Errorf("%s: %q leads to no page, or has no line that begins with Not:", glossary, name)
		}
	}
}

// TestCompare shows when the baseline is violated, and that it only falls.
func TestCompare(t *testing.T) {
	of := func(unit string, n int) (out []finding) {
		for i := range n {
			out = append(out, finding{unit + "/x.go", i + 1, "kin", "ancestors"})
		}
		return out
	}
	found := map[string][]finding{"more": of("more", 3), "same": of("same", 30), "new": of("new", 1), "less": of("less", 5), "near": of("near", 29)}
	problems, lowered := compare(found, []string{"# about it", "   2 more", "  30 same", "   6 less", "  30 near", "   1 none", "x y"})
	want := []string{
		"less has 5, below the 6 of its baseline: " + lower, "none has 0, below the 1 of its baseline: " + lower, `"x y" is not a count and a page or package`,
		"more has 3, above the 2 of its baseline; all of them follow", `more/x.go:1: "kin": write instead: ancestors`,
		`more/x.go:2: "kin": write instead: ancestors`, `more/x.go:3: "kin": write instead: ancestors`, `new/x.go:1: "kin": write instead: ancestors`,
	}
	if !slices.Equal(problems, want) {
		t.Errorf("the problems are %q", problems)
	}
	if want := []string{"# about it", "   2 more", "  30 same", "   5 less", "  29 near", "x y"}; !slices.Equal(lowered, want) {
		t.Errorf("the lowered baseline is %q", lowered)
	}
}
