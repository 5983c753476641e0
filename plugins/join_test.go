package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
)

func join(config map[string]any) *world {
	return &world{channels: []string{"out"}, config: config, features: true, cancels: true}
}

func by(sender, payload string) delivery { return delivery{sender: sender, payload: payload} }

func timeUp(id int) delivery {
	return delivery{kind: abi.KindTimer, detail: fmt.Sprintf(`{"kind":"timer","attempt":1,"name":"%016d"}`, id)}
}

func timerSet(id int, after string) effect { return fmt.Sprintf(`timer %016d %s ""`, id, after) }
func timerGone(id int) effect              { return fmt.Sprintf("cancel %016d", id) }

func TestJoinCounts(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"count": 2})
	equal(t, run(t, m, w, by("a", "1"), by("b", "2"), by("a", "3"), by("", "4"), by("", "5")),
		sent("out", "1\n2", ""), sent("out", "3\n4", ""))
	if w.state["open"] != "1" || w.state["group/"] != "2 1 0000000000000002\x00\x00" || w.state["part/0000000000000002/0"] != "5" {
		t.Errorf("the state is %q", w.state)
	}
	equal(t, run(t, m, w, delivery{kind: abi.KindOutput, sender: "c", payload: "6"}), sent("out", "5\n6", ""))
	if len(w.state) != 2 || w.state["open"] != "0" || w.state["next"] != "3" {
		t.Errorf("something is left of the groups: %q", w.state)
	}
	equal(t, run(t, m, join(map[string]any{"count": 1}), messages(awkward[:5]...)...), all("out", awkward[:5])...)
}

func TestJoinWaitsForSenders(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"from": []string{"a", "b", "c"}})
	equal(t, run(t, m, w, by("c", "1"), by("x", "no"), by("", "no"), by("a", "2"), by("c", "3"), by("b", "4")), sent("out", "3\n2\n4", ""))
	w = join(map[string]any{"from": []string{"a", "b", "c"}, "count": 2})
	equal(t, run(t, m, w, by("c", "1"), by("c", "1"), by("a", "2")), sent("out", "1\n2", ""))
	r := play(t, m, w, false, []delivery{by("\"x\"", "no")})[0]
	if r.err != nil || len(r.logs) != 1 || r.logs[0] != `warn: a message of "\"x\"" is ignored: from does not list this sender` {
		t.Errorf("a sender that is not listed: %v, %q", r.err, r.logs)
	}
}

func TestJoinKeys(t *testing.T) {
	m := builtin(t, "join")
	long := strings.Repeat("k", 128)
	for _, c := range []struct{ key, payload, headers, name string }{
		{"line", "a b", "", "a b"},
		{"field:2", "a b", "", "b"},
		{"field:2", "a", "", ""},
		{"json:k", `{"k":"\u0000"}`, "", "%00"},
		{"json:k", `{"k":7}`, "", "7"},
		{"json:k", `{"k":""}`, "", ""},
		{"json:k", "{", "", ""},
		{"line", "\xff%é", "", "%ff%25é"},
		{"line", "%ff%25é", "", "%25ff%2525é"},
		{"line", "", "", ""},
		{"line", long, "", long},
		{"line", strings.Repeat("\xff", 128), "", strings.Repeat("%ff", 128)},
		{"line", long + "k", "", ""},
		{"line", strings.Repeat("k", 1<<20), "", ""},
		{"header:task", "x", "task\x007\x00", "7"},
		{"header:task", "x", "task\x007\x00task\x008\x00", "8"},
		{"header:task", "x", "tasks\x007\x00", ""},
		{"header:task", "x", "task\x00\x00", ""},
	} {
		w := join(map[string]any{"count": 2, "key": c.key})
		r := play(t, m, w, false, []delivery{{sender: "a", payload: c.payload, headers: c.headers}})[0]
		if c.name == "" {
			if code := abi.CodeOf(r.err); code != abi.InvalidArgument && code != abi.TooLarge || len(r.logs) != 1 || !strings.Contains(r.logs[0], " key") {
				t.Errorf("%s of %.50q is not refused: %v, %q", c.key, c.payload, r.err, r.logs)
			}
		} else if w.state["group/"+c.name] == "" || r.err != nil {
			t.Errorf("%s of %.50q: %v, the state is %.300q", c.key, c.payload, r.err, w.state)
		}
	}
}

func TestJoinSendsTheKeyHeader(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"count": 1, "key": "header:task"})
	equal(t, run(t, m, w, delivery{payload: "x", headers: "a\x00b\x00task\x00\xff7\x00"}), sent("out", "x", "task\x00\xff7\x00"))
	w = join(map[string]any{"count": 1, "key": "header:Terrarium-From"})
	equal(t, run(t, m, w, delivery{payload: "x", headers: "Terrarium-From\x007\x00"}), sent("out", "x", ""))
}

func TestJoinAsJSON(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"count": 4, "as": "json"})
	got := run(t, m, w, by("a", `say "hi"`), by("", "\xff\x00"), by("b", ""), by("é", "é\n"))
	want := `[{"sender":"a","payload":"say \"hi\""},{"sender":"","payload":{"base64":"/wA="}},{"sender":"b","payload":""},{"sender":"é","payload":"é\u000a"}]`
	equal(t, got, sent("out", want, ""))
	if !json.Valid([]byte(want)) {
		t.Error("it is not JSON")
	}
}

func TestJoinContinuesOnce(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"count": 2, "key": "field:1"})
	equal(t, run(t, m, w, by("a", "k 1"), by("b", "k 2"), by("c", "k 3"), by("d", "k 4")), sent("out", "k 1\nk 2", ""))
	r := play(t, m, w, true, []delivery{by("e", "k 5")})[0]
	if r.err != nil || len(r.logs) != 1 || r.logs[0] != `warn: the group "k" has already ended; a message for it is ignored` {
		t.Errorf("a message that is late: %v, %q", r.err, r.logs)
	}
	w.config["once"] = false // the operator changes it
	equal(t, run(t, m, w, by("a", "k 6"), by("b", "k 7"), by("c", "k 8")), sent("out", "k 6\nk 7", ""))
	w = join(map[string]any{"count": 1, "once": true})
	equal(t, run(t, m, w, messages("1", "2")...), sent("out", "1", ""))

	var many []delivery
	for n := range 1002 {
		many = append(many, by("a", fmt.Sprint(n)))
	}
	w = join(map[string]any{"count": 1, "key": "line"})
	play(t, m, w, false, many)
	if len(w.state) != 2003 {
		t.Errorf("after 1002 groups there are %d values", len(w.state))
	}
	equal(t, run(t, m, w, messages("2", "1001", "1")...), sent("out", "1", ""))
}

func TestJoinEndsInTime(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"from": []string{"a", "b", "c"}, "key": "field:1", "within": 1500})
	equal(t, run(t, m, w, by("a", "k 1"), by("a", "l 1"), timeUp(0), timeUp(0), by("b", "k 2"), by("b", "l 2"), by("c", "l 3"), timeUp(1)),
		timerSet(0, "1.5s"), timerSet(1, "1.5s"), sent("out", "k 1", ""), timerGone(0), sent("out", "l 1\nl 2\nl 3", ""), timerGone(1))
	for late, want := range map[string]string{
		"send": `info: the group "k" has waited long enough, and is sent with 1 of 3 messages; missing: a, c`,
		"drop": `warn: the group "k" has waited long enough, and is dropped with 1 of 3 messages; missing: a, c`,
	} {
		w := join(map[string]any{"from": []string{"a", "b", "c"}, "key": "field:1", "within": 1, "late": late})
		records := play(t, m, w, true, []delivery{by("b", "k 1"), timeUp(0)})
		if logs := records[1].logs; len(logs) != 1 || logs[0] != want {
			t.Errorf("late = %s logs %q", late, logs)
		}
		if sends := len(records[1].effects) - 1; sends != map[string]int{"send": 1, "drop": 0}[late] || w.state["open"] != "0" {
			t.Errorf("late = %s: %q leaves %q", late, records[1].effects, w.state)
		}
	}
	w = join(map[string]any{"count": 2, "within": 1})
	if r := play(t, m, w, false, []delivery{by("", "1"), timeUp(0)})[1]; len(r.logs) != 1 || r.logs[0] != "info: the group has waited long enough, and is sent with 1 of 2 messages" {
		t.Errorf("without a key: %q", r.logs)
	}
}

func TestJoinBoundsItsState(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"count": 2, "key": "field:1", "max_groups": 2, "within": 1000})
	equal(t, run(t, m, w, by("a", "k 1"), by("a", "l 1"), by("a", "m 1"), by("b", "k 2"), by("b", "m 2")),
		timerSet(0, "1s"), timerSet(1, "1s"), sent("out", "k 1", ""), timerGone(0), timerSet(2, "1s"), sent("out", "m 1\nm 2", ""), timerGone(2))

	var flood []delivery
	for n := range 600 {
		flood = append(flood, by("a", fmt.Sprint(n)))
	}
	w = join(map[string]any{"count": 2, "key": "line", "max_groups": 3, "late": "drop"})
	records := play(t, m, w, false, flood)
	if log := records[599].logs; len(log) != 1 || log[0] != `warn: the group "596" is the oldest of more than max_groups groups, and is dropped with 1 of 2 messages` {
		t.Errorf("the log says %q", log)
	}
	w.config["once"] = false
	if open := slices.DeleteFunc(slices.Collect(maps.Keys(w.state)), func(k string) bool { return !strings.HasPrefix(k, "open/") }); len(open) != 3 || w.state["open"] != "3" {
		t.Errorf("groups that wait: %v", open)
	}

	w = join(map[string]any{"count": 3, "max_bytes": 10})
	records = play(t, m, w, false, []delivery{by("a", "12345"), by("b", "12345"), by("b", "123"), by("a", "1234567"), by("a", ""), by("c", "1234")})
	for n, r := range records {
		if refused := n == 1 || n == 3; refused != (abi.CodeOf(r.err) == abi.TooLarge) || refused != (len(r.logs) == 1 && strings.Contains(r.logs[0], "max_bytes")) {
			t.Errorf("message %d: %v, %q", n, r.err, r.logs)
		}
	}
	equal(t, records[5].effects, sent("out", "\n123\n1234", ""))
	w = join(map[string]any{"count": 2, "max_bytes": 1000000, "max_groups": 8, "as": "json"})
	if r := play(t, m, w, false, []delivery{by("a", strings.Repeat("\x01", 200_000)), by("b", strings.Repeat("x", 1<<20))}); abi.CodeOf(r[0].err) != abi.TooLarge || abi.CodeOf(r[1].err) != abi.TooLarge {
		t.Errorf("messages that are large as JSON: %v, %v", r[0].err, r[1].err)
	}
}

// All groups that max_groups and max_bytes allow fit the state, and can be sent.
func TestJoinFillsItsState(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"count": 2, "key": "json:k", "max_groups": 8, "max_bytes": 1000000, "as": "json"})
	fill := strings.Repeat("x", 900_000)
	var size int
	for n := range 10 {
		r := play(t, m, w, true, []delivery{by("a", fmt.Sprintf(`{"k":%d,"x":%q}`, n, fill))})[0]
		if r.err != nil || (n >= 8) != (len(r.effects) == 1) {
			t.Fatalf("group %d: %v, %d effects", n, r.err, len(r.effects))
		}
	}
	for key, value := range w.state {
		size += len(key) + len(value) + 32
	}
	if int64(size) > abi.DefaultLimits.State || size < 7_000_000 {
		t.Errorf("the state has %d bytes", size)
	}
}

func TestJoinLeavesOutWhatTheHostRefuses(t *testing.T) {
	m := builtin(t, "join")
	w := join(map[string]any{"count": 2, "max_bytes": 1000000, "max_groups": 8})
	records := play(t, m, w, false, []delivery{by("a", strings.Repeat("x", 900_000)), by("b", "y")})
	if len(records[1].effects) != 1 {
		t.Fatalf("%v", records[1].err)
	}
	play(t, m, w, false, []delivery{by("a", "x")})
	w.state["part/0000000000000001/0"] = strings.Repeat("x", 1<<20) // as if the limit were lower
	r := play(t, m, w, false, []delivery{by("b", "y")})[0]
	if r.err != nil || len(r.effects) != 0 || len(r.logs) != 1 || !strings.Contains(r.logs[0], "too large for one message and is dropped; lower max_bytes") || w.state["open"] != "0" {
		t.Errorf("%v, %q, %.200q", r.err, r.logs, w.state)
	}
}

func TestJoinMistakes(t *testing.T) {
	m := builtin(t, "join")
	names := make([]string, 257)
	for n := range names {
		names[n] = fmt.Sprint(n)
	}
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{}, "config count: give the number of messages of a group, from 1 to 256, or list their senders in from"},
		{map[string]any{"count": 0}, "config count: give the number"},
		{map[string]any{"count": 257}, "config count: it is a whole number from 0 to 256"},
		{map[string]any{"count": "two"}, "config count: it is a whole number"},
		{map[string]any{"count": []int{2}}, "config count: it is a whole number"},
		{map[string]any{"count": 3, "from": []string{"a", "b"}}, "config count: it is greater than the number of senders in from"},
		{map[string]any{"from": "a"}, "config from: it must be a list of names"},
		{map[string]any{"from": []string{}}, "config from: it is empty"},
		{map[string]any{"from": []any{"a", nil}}, "config from: every element must be a string, the name of a creature"},
		{map[string]any{"from": []string{"a", ""}}, "config from: every element"},
		{map[string]any{"from": []string{"a", "a"}}, "config from: it must contain each name only once"},
		{map[string]any{"from": names}, "config from: more than 256 names"},
		{map[string]any{"count": 1, "key": "task"}, `config key: "task" names no part of a message`},
		{map[string]any{"count": 1, "key": "header:"}, "config key: name the header"},
		{map[string]any{"count": 1, "key": 5}, "config key"},
		{map[string]any{"count": 1, "within": -1}, "config within: it is a whole number from 0 to 31536000000"},
		{map[string]any{"count": 1, "late": "never"}, `config late: it must be "send" or "drop"`},
		{map[string]any{"count": 1, "as": "xml"}, `config as: it must be "lines" or "json"`},
		{map[string]any{"count": 1, "once": "yes"}, "config once: it is true or false"},
		{map[string]any{"count": 1, "max_groups": 0}, "config max_groups: it must be at least 1"},
		{map[string]any{"count": 1, "max_groups": 257}, "config max_groups: it is a whole number from 0 to 256"},
		{map[string]any{"count": 1, "max_bytes": 0}, "config max_bytes: it must be at least 1"},
		{map[string]any{"count": 1, "max_bytes": 262145}, "config max_bytes: max_groups times max_bytes is above 8388608"},
		{map[string]any{"count": 1, "within": 5}, "config within: this host has no timers"},
		{map[string]any{"counts": 1}, `there is no attribute "counts"; known are: key count from within late as once max_groups max_bytes`},
	} {
		refuses(t, m, c.config, c.want)
	}
}

// joinModel is join with field:1 as the key and the count 2 or 3, in Go.
type joinModel struct {
	need, groups, next int
	once               bool
	open               []*joinGroup
	past               map[string]bool
	out                []effect
}

type joinGroup struct {
	id                int
	key               string
	senders, payloads []string
}

func (j *joinModel) end(g *joinGroup) {
	j.out = append(j.out, sent("out", strings.Join(g.payloads, "\n"), ""), timerGone(g.id))
	j.open = slices.DeleteFunc(j.open, func(o *joinGroup) bool { return o == g })
	j.past[g.key] = true
}

func (j *joinModel) take(d delivery) {
	if d.kind == abi.KindTimer {
		for _, g := range j.open {
			if d.detail == timeUp(g.id).detail {
				j.end(g)
				return
			}
		}
		return
	}
	key := strings.Fields(d.payload)[0]
	if j.once && j.past[key] {
		return
	}
	at := slices.IndexFunc(j.open, func(g *joinGroup) bool { return g.key == key })
	if at < 0 {
		if len(j.open) == j.groups {
			j.end(j.open[0])
		}
		j.open = append(j.open, &joinGroup{id: j.next, key: key})
		j.out = append(j.out, timerSet(j.next, "1s"))
		j.next++
		at = len(j.open) - 1
	}
	g := j.open[at]
	if n := slices.Index(g.senders, d.sender); n >= 0 && d.sender != "" {
		g.payloads[n] = d.payload
	} else {
		g.senders, g.payloads = append(g.senders, d.sender), append(g.payloads, d.payload)
	}
	if len(g.senders) == j.need {
		j.end(g)
	}
}

// join, warm and with fresh instances, does what the model does.
func TestJoinAgreesWithAModel(t *testing.T) {
	m := builtin(t, "join")
	rapid.Check(t, func(rt *rapid.T) {
		model := joinModel{need: rapid.IntRange(1, 3).Draw(rt, "count"), groups: rapid.IntRange(1, 3).Draw(rt, "groups"), once: rapid.Bool().Draw(rt, "once"), past: map[string]bool{}}
		var deliveries []delivery
		for n := range rapid.IntRange(1, 25).Draw(rt, "deliveries") {
			d := timeUp(rapid.IntRange(0, 8).Draw(rt, "id"))
			if rapid.IntRange(0, 5).Draw(rt, "kind") > 0 {
				key := rapid.SampledFrom([]string{"k", "l", "%", "%25", "\xff", "\x00", "é"}).Draw(rt, "key")
				d = by(rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "sender"), fmt.Sprintf("%s %d", key, n))
			}
			deliveries = append(deliveries, d)
			model.take(d)
		}
		w := join(map[string]any{"count": model.need, "max_groups": model.groups, "once": model.once, "key": "field:1", "within": 1000})
		if got := run(t, m, w, deliveries...); !slices.Equal(got, model.out) {
			rt.Fatalf("got\n%s\nwant\n%s", show(got), show(model.out))
		}
		if w.state["open"] != fmt.Sprint(len(model.open)) && w.state["open"] != "" {
			rt.Fatalf("%s groups are open, not %d", w.state["open"], len(model.open))
		}
	})
}

func BenchmarkJoin(b *testing.B) {
	m := builtin(b, "join")
	for name, config := range map[string]map[string]any{
		"pairs": {"count": 2}, "keys": {"count": 2, "key": "field:2", "once": false}, "hundred": {"count": 100, "as": "json"},
	} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			w := join(config)
			i, err := m.Instantiate(ctx, &limits, w.turn(delivery{}, true))
			if err != nil {
				b.Fatal(err)
			}
			defer i.Close(ctx)
			for n := 0; b.Loop(); n++ {
				d := delivery{kind: abi.KindMessage, channel: "in", payload: fmt.Sprintf("answer %d to a question", n/2)}
				turn := w.turn(d, false)
				if err := i.Handle(ctx, turn, d.kind, len(d.payload)); err != nil {
					b.Fatal(err)
				}
				w.state = turn.state
			}
		})
	}
}
