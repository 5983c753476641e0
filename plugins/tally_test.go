package plugins_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
)

var ask = delivery{channel: "report"}

// reported returns the last report among the effects.
func reported(t testing.TB, effects []effect) (counts map[string]int, total int) {
	t.Helper()
	if len(effects) == 0 {
		t.Fatal("there is no report")
	}
	quoted := strings.TrimPrefix(effects[len(effects)-1], "send out ")
	text, err := strconv.QuotedPrefix(quoted)
	if err == nil {
		text, err = strconv.Unquote(text)
	}
	var report struct {
		Counts map[string]int
		Total  int
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &report)
	}
	if err != nil {
		t.Fatalf("%s is not a report: %v", quoted, err)
	}
	if !utf8.ValidString(text) {
		t.Errorf("the report is not UTF-8: %q", text)
	}
	return report.Counts, report.Total
}

func tally(config map[string]any) *world {
	return &world{channels: []string{"out"}, config: config}
}

func TestTallyReports(t *testing.T) {
	m := builtin(t, "tally")
	w := tally(nil)
	got := run(t, m, w, append(messages("b", "a", "b"), ask)...)
	equal(t, got, sent("out", `{"counts":{"a":1,"b":2},"total":3}`, ""))
	if w.state["count/b"] != "2" || w.state["total"] != "3" || w.state["keys"] != "2" {
		t.Errorf("the state is %v", w.state)
	}
	report := sent("out", `{"counts":{"a":1,"b":2},"total":3}`, "")
	equal(t, run(t, m, w, delivery{direct: true, payload: "please"}), report)
	equal(t, run(t, m, w, delivery{kind: abi.KindOutput, direct: true, payload: "b"}))
	w.features = true
	equal(t, run(t, m, w, delivery{kind: abi.KindRequest, direct: true}), `reply "{\"counts\":{\"a\":1,\"b\":3},\"total\":4}"`)
	equal(t, run(t, m, tally(nil), ask), sent("out", `{"counts":{},"total":0}`, ""))
}

func TestTallyKeys(t *testing.T) {
	m := builtin(t, "tally")
	long := strings.Repeat("é", 100)
	for _, c := range []struct {
		key, payload, want string
	}{
		{"", "a b", "a b"},
		{"line", "a b", "a b"},
		{"", "", "(none)"},
		{"", "\xffa\x00b\xc3", "\uFFFDa\uFFFDb\uFFFD"},
		{"", "\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
		{"", "\"\\\n\x01\x7f", "\"\\\n\x01\x7f"},
		{"", long, strings.Repeat("é", 64)},
		{"", strings.Repeat("x", 1<<20), strings.Repeat("x", 128)},
		{"field:1", "  one two", "one"},
		{"field:2", "one\t \rtwo\n", "two"},
		{"field:3", "one two", "(none)"},
		{"field:99999999999999999999", "one", "refused"},
		{"json:level", `{"level":"warn","n":1}`, "warn"},
		{"json:level", ` { "a" : {"level":1}, "level" : 7 } `, "7"},
		{"json:level", `{"level":"a","level":"b"}`, "b"},
		{"json:level", `{"l\u0065vel":"x\ud83d\ude00\n\ud800"}`, "x😀\n\uFFFD"},
		{"json:level", `{"level":"\ud83d\ud83d\ude00\udE00"}`, "\uFFFD😀\uFFFD"},
		{"json:level", `{"level":[1, 2]}`, "[1, 2]"},
		{"json:level", `{"level":null}`, "(none)"},
		{"json:level", `{"level":""}`, "(none)"},
		{"json:level", `{"n":1}`, "(none)"},
		{"json:level", `{"level":"x"} trailing`, "(none)"},
		{"json:level", `{"level":"x"`, "(none)"},
		{"json:level", `["level"]`, "(none)"},
		{"json:level", `{"level":01}`, "(none)"},
		{"json:level", "{\"level\":\"\xff\"}", "\uFFFD"},
		{"json:level", `{"level":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "(none)"},
		{"json:level", strings.Repeat("[", 1<<20), "(none)"},
		{"json:é", `{"é":true}`, "true"},
	} {
		config := map[string]any{"key": c.key}
		if c.want == "refused" {
			refuses(t, m, config, "config key")
			continue
		}
		counts, total := reported(t, run(t, m, tally(config), delivery{payload: c.payload}, ask))
		if counts[c.want] != 1 || total != 1 || len(counts) != 1 {
			t.Errorf("%s of %.50q: %.200v, want %q", c.key, c.payload, counts, c.want)
		}
	}
}

func TestTallyReportsOnItsOwn(t *testing.T) {
	m := builtin(t, "tally")
	w := tally(map[string]any{"every": 2, "report_on": "ask", "key": "field:1"})
	got := run(t, m, w, messages("a", "a", "b", "a")...)
	equal(t, got, sent("out", `{"counts":{"a":2},"total":2}`, ""), sent("out", `{"counts":{"a":3,"b":1},"total":4}`, ""))
	equal(t, run(t, m, w, delivery{channel: "report", payload: "x"}))
	equal(t, run(t, m, w, delivery{channel: "ask", payload: "x"}), sent("out", `{"counts":{"a":3,"b":1,"x":1},"total":5}`, ""))
}

func TestTallyBoundsItsKeys(t *testing.T) {
	m := builtin(t, "tally")
	w := tally(map[string]any{"max_keys": 2})
	got := run(t, m, w, append(messages("a", "b", "c", "a", "d", ""), ask)...)
	equal(t, got, sent("out", `{"counts":{"(none)":1,"(other)":2,"a":2,"b":1},"total":6}`, ""))

	var many []delivery
	for n := range 1100 {
		many = append(many, delivery{payload: strings.Repeat("\x01", 120) + fmt.Sprint(n)})
	}
	counts, total := reported(t, run(t, m, tally(nil), append(many, ask)...))
	if len(counts) != 1001 || counts["(other)"] != 100 || total != 1100 {
		t.Errorf("%d keys, %d others, %d in all", len(counts), counts["(other)"], total)
	}
}

func TestTallyMistakes(t *testing.T) {
	m := builtin(t, "tally")
	refuses(t, m, map[string]any{"key": "field:0"}, `config key: "field:0" names no part of a message; use`)
	refuses(t, m, map[string]any{"key": "field:x"}, "config key")
	refuses(t, m, map[string]any{"key": "json:"}, "config key")
	refuses(t, m, map[string]any{"key": "JSON:a"}, "config key")
	refuses(t, m, map[string]any{"every": -1}, "config every: it is a whole number from 0 to")
	refuses(t, m, map[string]any{"every": 1.5}, "config every")
	refuses(t, m, map[string]any{"max_keys": 100001}, "config max_keys: it is a whole number from 0 to 100000")
	refuses(t, m, map[string]any{"report-on": "x"}, `there is no attribute "report-on"; known are: key report_on every max_keys`)
}

// tally finds in any JSON what Go's decoder finds.
func TestTallyAgreesWithGoOnJSON(t *testing.T) {
	m := builtin(t, "tally")
	rapid.Check(t, func(rt *rapid.T) {
		payload := jsonText(rt, 3)
		if at := rapid.IntRange(-3*len(payload), len(payload)-1).Draw(rt, "damaged at"); at >= 0 {
			payload = payload[:at] + rapid.SampledFrom([]string{"", ",", "}", "\"", "\\", "0", " "}).Draw(rt, "damage") + payload[at+1:]
		}
		want := "(none)"
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(payload), &object) == nil {
			var text string
			raw, ok := object["k"]
			switch {
			case !ok || string(raw) == "null":
			case json.Unmarshal(raw, &text) != nil:
				want = string([]rune(string(raw))) // invalid UTF-8 is replaced, byte by byte
			case text != "":
				want = strings.ReplaceAll(text, "\x00", "\uFFFD")
			}
		}
		if len(want) > 128 {
			rt.Skip("cut")
		}
		counts, _ := reported(t, run(t, m, tally(map[string]any{"key": "json:k"}), delivery{payload: payload}, ask))
		if counts[want] != 1 {
			rt.Fatalf("%q: %v, want %q", payload, counts, want)
		}
	})
}

func jsonText(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 3 {
		kind = 0
	}
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space")
	switch {
	case kind <= 1 && depth > 0:
		var parts []string
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			value := space + jsonText(t, depth-1) + space
			if kind == 0 {
				name := rapid.SampledFrom([]string{`"k"`, `"\u006b"`, `"kk"`, `""`}).Draw(t, "name")
				value = space + name + space + ":" + value
			}
			parts = append(parts, value)
		}
		if kind == 0 {
			return "{" + space + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + space + "]"
	case kind <= 3:
		var b strings.Builder
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			b.WriteString(rapid.SampledFrom([]string{"a", "é", `\n`, `\/`, `\"`, `\\`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\udE00`, `\u0000`, "😀"}).Draw(t, "piece"))
		}
		return `"` + b.String() + `"`
	case kind == 4:
		return rapid.SampledFrom([]string{"0", "-1", "1.5", "1e9", "-0.1E-2", "12"}).Draw(t, "number")
	default:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	}
}
