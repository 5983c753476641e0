package plugins_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

func TestSelectInTurn(t *testing.T) {
	m := builtin(t, "select")
	w := &world{channels: []string{"a", "b"}, config: map[string]any{"to": []string{"a", "b"}, "creatures": []string{"scribe"}}}
	equal(t, run(t, m, w, delivery{payload: "1", headers: headers}, delivery{payload: "2"}, delivery{payload: "3", headers: headers}, delivery{kind: abi.KindOutput, payload: "4"}),
		sent("a", "1", headers), sent("b", "2", ""), `send_to "scribe" "3"`, sent("a", "4", ""))
	if w.state["next"] != "1" {
		t.Errorf("the position is %q", w.state["next"])
	}
	w.state["next"] = "18446744073709551615" // not by this creature
	equal(t, run(t, m, w, messages("5")...), sent("a", "5", ""))
}

func TestSelectPassesEverythingUnharmed(t *testing.T) {
	m := builtin(t, "select")
	for _, more := range []map[string]any{{}, {"mode": "weighted", "weights": map[string]any{}}, {"mode": "named", "otherwise": "a"}} {
		config := map[string]any{"to": []string{"a"}}
		for name, value := range more {
			config[name] = value
		}
		equal(t, run(t, m, &world{channels: []string{"a"}, config: config}, messages(awkward...)...), all("a", awkward)...)
	}
}

func TestSelectByName(t *testing.T) {
	m := builtin(t, "select")
	names := []string{"writer", "critic", "writer-2", "Zoë", "a.b"}
	for _, c := range []struct{ by, payload, headers, want string }{
		{"", "writer: begin", "", "writer"},
		{"", "@critic, what do you think?", "", "critic"},
		{"", " \t\n@writer", "", "writer"},
		{"", "writer-2 begin", "", "writer-2"},
		{"", "writer-3 begin", "", ""},
		{"", "writers begin", "", ""},
		{"", "writeré", "", ""},
		{"", "writer\xff", "", ""},
		{"", "writer\x00", "", "writer"},
		{"", "writer_", "", ""},
		{"", "Writer: begin", "", ""},
		{"", "Zoë!", "", "Zoë"},
		{"", "a.b.c", "", "a.b"},
		{"", "@@writer", "", ""},
		{"", "", "", ""},
		{"", "@", "", ""},
		{"", "\xff\xfe", "", ""},
		{"", strings.Repeat(" ", 1<<20-10) + "critic", "", "critic"},
		{"line", "critic", "", "critic"},
		{"line", "critic ", "", ""},
		{"field:2", "to critic now", "", "critic"},
		{"json:to", `{"to":"wri\u0074er"}`, "", "writer"},
		{"json:to", `{"to":["writer"]}`, "", ""},
		{"json:to", `{"to":"writer"`, "", ""},
		{"header:to", "x", "to\x00critic\x00", "critic"},
		{"header:to", "x", "to\x00critic\x00to\x00writer\x00", "writer"},
		{"header:to", "writer", "To\x00critic\x00", ""},
		{"header:to", "writer", "to\x00\x00", ""},
	} {
		config := map[string]any{"mode": "named", "to": names[:3], "creatures": names[3:], "otherwise": "rest"}
		if c.by != "" {
			config["by"] = c.by
		}
		want := sent(c.want, c.payload, c.headers)
		switch c.want {
		case "":
			want = sent("rest", c.payload, c.headers)
		case "Zoë", "a.b":
			want = fmt.Sprintf("send_to %q %q", c.want, c.payload)
		}
		w := &world{channels: []string{"writer", "critic", "writer-2", "rest"}, config: config}
		d := delivery{payload: c.payload, headers: c.headers}
		equal(t, run(t, m, w, d), want)
		if c.want != "" {
			continue
		}
		delete(config, "otherwise")
		r := play(t, m, w, false, []delivery{d})[0]
		if abi.CodeOf(r.err) != abi.Failed || len(r.logs) != 1 || !strings.Contains(r.logs[0], "the targets are: writer, critic, writer-2, Zoë, a.b") || len(r.logs[0]) > 1200 {
			t.Errorf("%s of %.40q is not refused clearly: %v, %.300q", c.by, c.payload, r.err, r.logs)
		}
	}
	w := &world{channels: []string{"a", "b"}, config: map[string]any{"mode": "named", "to": []string{"a", "b"}, "otherwise": "b"}}
	equal(t, run(t, m, w, messages("c: x", "a")...), sent("b", "c: x", ""), sent("a", "a", ""))
}

func TestSelectByWeight(t *testing.T) {
	m := builtin(t, "select")
	source := rand.New(rand.NewPCG(1, 2))
	var next uint64
	w := &world{channels: []string{"a", "b", "c"}, config: map[string]any{"mode": "weighted", "to": []string{"a", "b", "c"}, "creatures": []string{"d"}, "weights": map[string]int{"a": 5, "b": 0, "d": 2}}}
	w.random = func(p []byte) { binary.LittleEndian.PutUint64(p, next) }
	for n, want := range []string{"send a", "send a", "send a", "send a", "send a", "send c", "send_to \"d\"", "send_to \"d\"", "send a"} {
		next = uint64(n)
		if got := run(t, m, w, messages("x")...); len(got) != 1 || !strings.HasPrefix(got[0], want+" ") {
			t.Errorf("the random number %d: %v, want %s", n, got, want)
		}
	}
	w.random = func(p []byte) { binary.LittleEndian.PutUint64(p, source.Uint64()) }
	went := map[string]int{}
	for _, r := range play(t, m, w, false, messages(make([]string, 4000)...)) {
		went[strings.Fields(r.effects[0])[1]]++
	}
	if went["a"] < 2300 || went["a"] > 2700 || went["b"] != 0 || went["c"] < 400 || went["c"] > 600 || went[`"d"`] < 850 || went[`"d"`] > 1150 {
		t.Errorf("of 4000 messages with the weights 5, 0, 1 and 2: %v", went)
	}
}

func TestSelectMistakes(t *testing.T) {
	m := builtin(t, "select")
	a := []string{"a"}
	many := strings.Split(strings.TrimSuffix(strings.Repeat("x,", 257), ","), ",")
	for n := range many {
		many[n] = fmt.Sprint(n)
	}
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{}, "config to: there is no target; list send aliases"},
		{map[string]any{"to": []string{}}, "config to: there is no target"},
		{map[string]any{"to": "a"}, "config to: it must be a list"},
		{map[string]any{"to": []any{"a", 1}}, "config to: every element must be a string, a name"},
		{map[string]any{"to": []any{""}}, "config to: every element"},
		{map[string]any{"creatures": map[string]any{"a": 1}}, "config creatures: it must be a list"},
		{map[string]any{"to": a, "creatures": a}, "config creatures: each name"},
		{map[string]any{"to": many}, "config to: to and creatures have more than 256 names"},
		{map[string]any{"to": a, "mode": "random"}, `config mode: it must be "round_robin", "named" or "weighted"`},
		{map[string]any{"to": a, "mode": 1}, "config mode"},
		{map[string]any{"to": a, "by": "line"}, `config by: it needs mode = "named"`},
		{map[string]any{"to": a, "mode": "named", "by": "end"}, `config by: "end" names no part of a message`},
		{map[string]any{"to": a, "mode": "named", "by": "header:"}, "config by: name the header"},
		{map[string]any{"to": a, "mode": "named", "weights": map[string]any{}}, `config weights: it needs mode = "weighted"`},
		{map[string]any{"to": a, "mode": "weighted"}, "config weights: it is missing"},
		{map[string]any{"to": a, "mode": "weighted", "weights": []int{1}}, "config weights: it must be an object"},
		{map[string]any{"to": a, "mode": "weighted", "weights": map[string]any{"b": 1}}, "config weights: every name must be in"},
		{map[string]any{"to": a, "mode": "weighted", "weights": map[string]any{"a": -1}}, "config weights: every weight"},
		{map[string]any{"to": a, "mode": "weighted", "weights": map[string]any{"a": "1"}}, "config weights: every weight"},
		{map[string]any{"to": a, "mode": "weighted", "weights": map[string]any{"a": 1000001}}, "config weights: every weight"},
		{map[string]any{"to": a, "mode": "weighted", "weights": map[string]any{"a": 0}}, "config weights: at least one weight"},
		{map[string]any{"to": a, "otherwise": "a"}, `config otherwise: it needs mode = "named"`},
		{map[string]any{"to": a, "mode": "named", "otherwise": ""}, "config otherwise: it is empty"},
		{map[string]any{"to": a, "other": "a"}, `there is no attribute "other"; known are: to creatures mode by weights otherwise`},
	} {
		refuses(t, m, c.config, c.want)
	}
	w := &world{channels: []string{"a"}, config: map[string]any{"to": []string{"a", "gone"}}}
	records := play(t, m, w, false, messages("1", "2"))
	if records[0].err != nil || abi.CodeOf(records[1].err) != abi.NotConnected || w.state["next"] != "1" {
		t.Errorf("an alias that is not bound: %v, %v, position %s", records[0].err, records[1].err, w.state["next"])
	}
}
