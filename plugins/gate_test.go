package plugins_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
)

func gate(config map[string]any) *world {
	return &world{channels: []string{"out"}, config: config}
}

func passes(t testing.TB, m abi.Module, config map[string]any, payload string) bool {
	t.Helper()
	return len(run(t, m, gate(config), delivery{payload: payload})) == 1
}

func TestGatePassesOnWhatMatches(t *testing.T) {
	m := builtin(t, "gate")
	w := gate(map[string]any{"match": "ERROR|WARN"})
	got := run(t, m, w, delivery{payload: "an ERROR", headers: headers}, delivery{payload: "fine"}, delivery{kind: abi.KindOutput, payload: "WARN"})
	equal(t, got, sent("out", "an ERROR", headers), sent("out", "WARN", ""))

	equal(t, run(t, m, gate(map[string]any{"match": ""}), messages(awkward...)...), all("out", awkward)...)
	w = gate(map[string]any{"match": "no such thing", "invert": true})
	equal(t, run(t, m, w, messages(awkward...)...), all("out", awkward)...)
}

func TestGateOptions(t *testing.T) {
	m := builtin(t, "gate")
	for _, c := range []struct {
		config  map[string]any
		payload string
		want    bool
	}{
		{map[string]any{"match": "error", "ignore_case": true}, "ErRoR", true},
		{map[string]any{"match": "[^A-Z]", "ignore_case": true}, "abc", false},
		{map[string]any{"match": "error", "ignore_case": false}, "ErRoR", false},
		{map[string]any{"match": "^x$", "field": "field:2"}, "a x b", true},
		{map[string]any{"match": "^x$", "field": "field:2"}, "x", false},
		{map[string]any{"match": "^x$", "field": "field:2", "invert": true}, "x", true},
		{map[string]any{"match": "^err", "field": "json:level"}, `{"msg":"x","level":"error"}`, true},
		{map[string]any{"match": "^err", "field": "json:level"}, `{"msg":"error"}`, false},
		{map[string]any{"match": ".", "field": "json:level"}, `{"level":""}`, false},
		{map[string]any{"match": "^$", "field": "json:level"}, `{"level":""}`, true},
		{map[string]any{"match": 404}, "status 404", true},
		{map[string]any{"match": `\xff\xFE`}, "a\xff\xfeb", true},
		{map[string]any{"match": "é+$"}, "caféé", true},
		{map[string]any{"match": "fé*e"}, "fe", true},
	} {
		if got := passes(t, m, c.config, c.payload); got != c.want {
			t.Errorf("%v on %q: %v", c.config, c.payload, got)
		}
	}
}

func TestGateMistakes(t *testing.T) {
	m := builtin(t, "gate")
	refuses(t, m, map[string]any{}, "config match: it is missing")
	refuses(t, m, map[string]any{"match": "x", "mach": "y"}, `there is no attribute "mach"; known are: match invert ignore_case field`)
	refuses(t, m, map[string]any{"match": "x", "invert": "yes"}, "config invert: it is true or false")
	refuses(t, m, map[string]any{"match": "x", "field": "2"}, `config field: "2" names no part`)
	for pattern, want := range map[string]string{
		"(a":                      "byte 2: the group is not closed",
		"a)":                      "byte 1: there is no group to close",
		"[a":                      "the class is not closed",
		"[]":                      "the class is not closed",
		"[z-a]":                   "the wrong way round",
		`[\d-z]`:                  "the wrong way round",
		"[é]":                     "ASCII characters only",
		"*a":                      "byte 0: there is nothing to repeat",
		"a**":                     "byte 2: there is nothing to repeat",
		"a+?":                     "there is nothing to repeat",
		"(|*)":                    "there is nothing to repeat",
		"a{2}":                    "counted repetition is not known",
		`a\`:                      "ends with a backslash",
		`\b`:                      "there is no such escape",
		`\xg0`:                    "two hexadecimal digits",
		"(?i)a":                   "groups with (? are not known",
		strings.Repeat("a", 600):  "the pattern is too long",
		strings.Repeat("[a]", 40): "too many classes",
		strings.Repeat("(", 30):   "nested too deeply",
		strings.Repeat("a|", 400): "the pattern is too long",
		"\"quoted\"[":             `"\"quoted\"["`,
	} {
		refuses(t, m, map[string]any{"match": pattern}, want)
	}
}

// gate and Go's regexp agree on the syntax that both support.
func TestGateAgreesWithGoOnPatterns(t *testing.T) {
	m := builtin(t, "gate")
	rapid.Check(t, func(rt *rapid.T) {
		pattern := patternText(rt, 3)
		text := rapid.StringMatching(`[abcAB \n]{0,12}`).Draw(rt, "text")
		fold := rapid.Bool().Draw(rt, "fold")
		reference := pattern
		if fold {
			reference = "(?i)" + pattern
		}
		want := regexp.MustCompile(reference).MatchString(text)
		if got := passes(t, m, map[string]any{"match": pattern, "ignore_case": fold}, text); got != want {
			rt.Fatalf("%q (fold %v) on %q: %v, Go says %v", pattern, fold, text, got, want)
		}
	})
}

func patternText(t *rapid.T, depth int) string {
	var alternatives []string
	for range rapid.IntRange(1, 2).Draw(t, "alternatives") {
		var b strings.Builder
		for range rapid.IntRange(0, 3).Draw(t, "atoms") {
			atom := rapid.SampledFrom([]string{"a", "b", "c", "A", ".", "^", "$", "[ab]", "[^a]", "[A-B]", `\w`, `\S`, `\x61`, `\n`, "()"}).Draw(t, "atom")
			if depth > 0 && rapid.IntRange(0, 3).Draw(t, "grouped") == 0 {
				atom = "(" + patternText(t, depth-1) + ")"
			}
			b.WriteString(atom + rapid.SampledFrom([]string{"", "", "*", "+", "?"}).Draw(t, "repeat"))
		}
		alternatives = append(alternatives, b.String())
	}
	return strings.Join(alternatives, "|")
}

// Patterns that make a backtracking matcher explode are no problem.
func TestGateIsLinear(t *testing.T) {
	m := builtin(t, "gate")
	text := strings.Repeat("a", 1<<15)
	for _, pattern := range []string{"(a*)*b", "(a|a)*b", "(a|aa)+$b", strings.Repeat("a?", 20) + strings.Repeat("a", 20) + "b"} {
		if passes(t, m, map[string]any{"match": pattern}, text) {
			t.Errorf("%s matches", pattern)
		}
	}
}

func BenchmarkGate(b *testing.B) {
	m := builtin(b, "gate")
	line := "2026-11-20 10:01:02 status installed libc6:amd64 2.36-9"
	for name, c := range map[string]struct {
		pattern string
		text    string
	}{
		"line":  {"half-(installed|configured)", line},
		"large": {"ERROR|WARN|failed to .* connect", strings.Repeat(line+" f", 1<<20/(len(line)+2))},
		"worst": {strings.Repeat("a?", 20) + strings.Repeat("a", 20) + "b", strings.Repeat("a", 1<<20)},
	} {
		b.Run(name, func(b *testing.B) {
			deliveries := make([]delivery, b.N)
			for i := range deliveries {
				deliveries[i].payload = c.text
			}
			b.SetBytes(int64(len(c.text)))
			b.ResetTimer()
			for _, r := range play(b, m, gate(map[string]any{"match": c.pattern}), false, deliveries) {
				if r.err != nil {
					b.Fatal(r.err)
				}
			}
		})
	}
}
