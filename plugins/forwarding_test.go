package plugins_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/plugins"
)

const headers = "trace\x0042\x00empty\x00\x00"

func TestEveryCreatureDescribesItself(t *testing.T) {
	for _, name := range plugins.Names() {
		info := builtin(t, name).Info()
		if info.Manifest == nil || info.Manifest.Name != name || info.Manifest.Description == "" || info.Manifest.Licence == "" {
			t.Errorf("%s: the manifest is %+v", name, info.Manifest)
		}
		if name == "js" || name == "agent" {
			continue // an interpreter, with the memory and the C library that it needs
		}
		for _, i := range info.Imports {
			if i.Module != abi.ImportModule {
				t.Errorf("%s imports %s.%s", name, i.Module, i.Name)
			}
		}
		if info.MemoryMin > 2*abi.PageBytes {
			t.Errorf("%s starts with %d bytes of memory", name, info.MemoryMin)
		}
	}
}

func TestEcho(t *testing.T) {
	m := builtin(t, "echo")
	for _, p := range awkward {
		got := run(t, m, &world{channels: []string{"a", "b"}}, delivery{payload: p, headers: headers})
		equal(t, got, sent("a", p, ""), sent("b", p, ""))
	}
	if got := run(t, m, &world{}, messages("nobody listens")...); len(got) != 0 {
		t.Errorf("without a channel: %v", got)
	}
}

func TestOnlyDeliveriesAreHandled(t *testing.T) {
	for _, name := range plugins.Names() {
		w := &world{channels: []string{"out"}, config: map[string]any{}}
		switch name {
		case "gate":
			w.config["match"] = ""
		case "operator", "envoy":
			w.features = true
		case "foreman", "agent":
			continue // lives on timers, results and changes of its graph
		case "split", "select":
			w.config["to"] = []string{"out"}
		case "join":
			w.config["count"] = 1
		case "js":
			w.config["script"] = "export default { message(turn) { turn.sendAll(turn.payload) } }"
		}
		for _, kind := range []abi.Kind{abi.KindStart, abi.KindTimer, abi.KindResult, abi.KindGraphChanged, 99, -1} {
			if got := run(t, builtin(t, name), w, delivery{kind: kind, payload: "x"}); len(got) != 0 {
				t.Errorf("%s answers the kind %d: %v", name, kind, got)
			}
		}
	}
}

func TestRelay(t *testing.T) {
	m := builtin(t, "relay")
	for _, p := range awkward[:5] {
		w := &world{channels: []string{"a", "b"}}
		equal(t, run(t, m, w, delivery{payload: p, headers: headers}), sent("a", p, headers), sent("b", p, headers))
	}
	equal(t, run(t, m, &world{channels: []string{"a"}}, messages(awkward...)...), all("a", awkward)...)
	equal(t, run(t, m, &world{channels: []string{"a"}}, delivery{kind: abi.KindOutput, payload: "o"}), sent("a", "o", ""))
	refuses(t, m, map[string]any{"to": "x"}, `config: there is no attribute "to"`)
}

func all(alias string, payloads []string) []effect {
	var effects []effect
	for _, p := range payloads {
		effects = append(effects, sent(alias, p, ""))
	}
	return effects
}

// The memory of a turn is reused by the next.
func TestMemoryPlateaus(t *testing.T) {
	for _, name := range plugins.Names() {
		w := &world{channels: []string{"out"}, config: map[string]any{}}
		switch name {
		case "gate":
			w.config["match"] = "x+y"
			w.config["field"] = "json:a"
		case "operator", "envoy", "foreman":
			w.features = true
		case "split":
			w.config["to"] = []string{"out"}
			w.config["by"] = "field:3"
		case "join":
			w.config["count"] = 1
			w.config["as"] = "json"
		case "select":
			w.config["to"] = []string{"out", "x"}
			w.config["mode"] = "named"
			w.config["by"] = "json:a"
			w.config["otherwise"] = "out"
		case "tally":
			w.config["key"] = "json:a"
		case "agent":
			w.config["task"], w.config["llm"] = "listen", "main"
		case "js":
			w.config["script"] = "export default { message(turn) { turn.sendAll(JSON.stringify(turn.json())) } }"
		}
		payload := `{"a":"` + strings.Repeat(`\u0041`, 1000) + `"}`
		records := play(t, builtin(t, name), w, false, messages(strings.Split(strings.Repeat(payload+"\n", 300), "\n")...))
		if first, last := records[0].memory, records[len(records)-1].memory; last > first { // less after a failed turn, whose instance is new
			t.Errorf("%s: memory grew from %d to %d bytes", name, first, last)
		}
	}
}

func TestSplitInTurn(t *testing.T) {
	m := builtin(t, "split")
	w := &world{channels: []string{"a", "b", "c"}, config: map[string]any{"to": []string{"a", "b", "c"}}}
	got := run(t, m, w, messages("1", "2", "3", "4")...)
	equal(t, got, sent("a", "1", ""), sent("b", "2", ""), sent("c", "3", ""), sent("a", "4", ""))
	if w.state["next"] != "1" {
		t.Errorf("the position is %q", w.state["next"])
	}
	w.state["next"] = "3" // of a list that was longer
	w.config["to"] = []string{"a", "b"}
	equal(t, run(t, m, w, delivery{payload: "5", headers: headers}), sent("b", "5", headers))
	w.state["next"] = "not a number"
	equal(t, run(t, m, w, messages("6")...), sent("a", "6", ""))
}

func TestSplitPassesEverythingUnharmed(t *testing.T) {
	for _, by := range []string{"round_robin", "line", "", "field:1", "json:k"} {
		w := &world{channels: []string{"a"}, config: map[string]any{"to": []string{"a"}, "by": by}}
		equal(t, run(t, builtin(t, "split"), w, messages(awkward...)...), all("a", awkward)...)
	}
}

func TestSplitByKey(t *testing.T) {
	m := builtin(t, "split")
	to := []string{"a", "b", "c", "d"}
	w := &world{channels: to, config: map[string]any{"to": to, "by": "json:user"}}
	went := map[string]string{}
	used := map[string]int{}
	for n := range 400 {
		user := fmt.Sprintf("user%d", n%40)
		got := run(t, m, w, messages(fmt.Sprintf(`{"n":%d,"user":%q}`, n, user))...)
		alias := strings.Fields(got[0])[1]
		if before, ok := went[user]; ok && before != alias {
			t.Fatalf("%s went to %s and to %s", user, before, alias)
		}
		went[user] = alias
		used[alias]++
	}
	for _, alias := range to {
		if used[alias] < 30 {
			t.Errorf("%s got %d of 400 messages", alias, used[alias])
		}
	}
	first := run(t, m, w, messages("not JSON", `{"user":null}`, `{}`, "")...)
	for _, e := range first[1:] {
		if strings.Fields(e)[1] != strings.Fields(first[0])[1] {
			t.Errorf("messages without a key go different ways: %v", first)
		}
	}
}

func TestSplitMistakes(t *testing.T) {
	m := builtin(t, "split")
	refuses(t, m, map[string]any{}, "config to: it is missing")
	refuses(t, m, map[string]any{"to": "a"}, "config to: it is a list")
	refuses(t, m, map[string]any{"to": map[string]any{"a": 1}}, "config to: it is a list")
	refuses(t, m, map[string]any{"to": []string{}}, "config to: it is empty")
	refuses(t, m, map[string]any{"to": []any{"a", 1}}, "config to: every element")
	refuses(t, m, map[string]any{"to": []any{""}}, "config to: every element")
	refuses(t, m, map[string]any{"to": make([]int, 300)}, "config to: every element")
	refuses(t, m, map[string]any{"to": strings.Split(strings.Repeat("a,", 300)+"a", ",")}, "more than 256")
	refuses(t, m, map[string]any{"to": []string{"a"}, "by": "hash"}, `config by: "hash" names no part`)
	refuses(t, m, map[string]any{"to": []string{"a"}, "key": "line"}, `there is no attribute "key"; known are: to by`)

	w := &world{channels: []string{"a"}, config: map[string]any{"to": []string{"a", "gone"}}}
	records := play(t, m, w, false, messages("1", "2"))
	if records[0].err != nil || abi.CodeOf(records[1].err) != abi.NotConnected {
		t.Errorf("an alias that is not bound: %v, %v", records[0].err, records[1].err)
	}
	if w.state["next"] != "1" {
		t.Errorf("a failed turn moved on to %q", w.state["next"])
	}
}
