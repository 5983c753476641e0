package plugins_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/plugins/native"
)

// Needs no toolchain: make natives-check also compares the code.
func TestTranslationsAreCurrent(t *testing.T) {
	h := engine(t, "translation").(*host.Host)
	defer func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for _, code := range native.All() {
		module, err := plugins.Get(code.Name)
		if err != nil {
			t.Fatal(err)
		}
		now, err := h.Translatable(t.Context(), module)
		if err != nil {
			t.Fatal(err)
		}
		if now.SHA256 != code.SHA256 || now.Floats != code.Floats {
			t.Errorf("the translation of %s is not that of the present module and meter; run make natives", code.Name)
		}
		m, err := h.Compile(t.Context(), module)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Info().Engine; got != abi.EngineTranslation {
			t.Errorf("%s runs in the engine %s", code.Name, got)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestEnginesAreTheSame gives random deliveries to every creature with a translation, with
// random configurations and limits, in all engines.
func TestEnginesAreTheSame(t *testing.T) {
	for _, code := range native.All() {
		t.Run(code.Name, func(t *testing.T) {
			module, err := plugins.Get(code.Name)
			if err != nil {
				t.Fatal(err)
			}
			m := compileIn(t, allEngines(t), module)
			random := rand.New(rand.NewPCG(seeded.For(t.Name()), 0))
			ended := map[abi.Code]int{}
			for range 150 {
				playRandomly(t, m, random, code.Name, ended)
			}
			if ended[abi.OK] < 50 || ended[abi.OutOfFuel] < 5 {
				t.Errorf("the turns end too much alike: %v", ended)
			}
		})
	}
}

// playRandomly makes an instance and some deliveries until one fails, and counts how they
// end.
func playRandomly(t *testing.T, m abi.Module, random *rand.Rand, creature string, ended map[abi.Code]int) {
	t.Helper()
	w := randomWorld(random, creature)
	limits := &abi.Limits{
		Deadline: time.Minute, Fuel: pick[int64](random, 0, 0, 0, 1+random.Int64N(3_000), random.Int64N(50_000)),
		Memory: pick[int64](random, 0, 0, 2*abi.PageBytes, 4*abi.PageBytes), Stack: pick[int64](random, 0, 0, 0, 500+random.Int64N(2_000)),
		Calls: pick[int64](random, 0, 0, 0, 1+random.Int64N(20)),
	}
	i, err := m.Instantiate(t.Context(), limits, w.turn(delivery{}, true))
	if ended[abi.CodeOf(err)]++; err != nil {
		return
	}
	defer i.Close(context.Background())
	for range 1 + random.IntN(8) {
		d := randomDelivery(random)
		turn := w.turn(d, false)
		err := i.Handle(t.Context(), turn, d.kind, len(d.payload))
		if ended[abi.CodeOf(err)]++; err != nil {
			return
		}
		w.state = turn.state
	}
	if err := i.Stop(t.Context(), w.turn(delivery{}, true)); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// attributes are values of attributes, some of them invalid.
var attributes = map[string]map[string][]any{
	"gate": {"match": {"a", "ERROR|WARN", "(x*)*y", "^[a-z]+$", `.{2,5}`, "("}, "ignore_case": {true, false}, "invert": {true, false},
		"field": {"line", "field:1", "field:3", "json:level", "json:"}},
	"join": {"count": {1, 2, 3, 0}, "from": {[]string{"a", "b"}, []string{"a", "b", ""}}, "key": {"", "line", "field:1", "header:trace", "json:a"},
		"within": {0, 1000, -1}, "late": {"send", "drop"}, "as": {"lines", "json"}, "once": {true, false}, "max_groups": {1, 2, 200}, "max_bytes": {10, 1000, 40_000}},
	"select": {"to": {[]string{"out"}, []string{"c1", "c2", "out"}, []string{}}, "creatures": {[]string{"worker", "x"}, []string{"out"}},
		"mode": {"round_robin", "named", "weighted"}, "by": {"start", "header:a", "json:level"}, "weights": {map[string]int{"out": 3}}, "otherwise": {"out", "c3"}},
	"tally": {"key": {"line", "field:2", "json:a", "field:0"}, "every": {1, 2, 7, -1}, "max_keys": {1, 3, 1000}, "report_on": {"ask", "in"}},
	"split": {"to": {[]string{"out"}, []string{"c1", "c2", "out"}, []string{"c1", "nowhere"}, []string{}}, "by": {"round_robin", "line", "field:2", "json:a", "field:"}},
	"foreman": {"species": {"worker"}, "channel": {"crew"}, "answers_to": {"creature.boss"}, "per_worker": {1, 4, 0}, "linger_ms": {0, 100},
		"attempts": {1, 2}},
	"operator": {"atomic": {true, false}, "stop_on_error": {true, false, 1}},
	"relay":    {"unknown": {1}},
}

// randomWorld gives a creature attributes of its own and tools that answer in any way.
func randomWorld(random *rand.Rand, creature string) *world {
	w := &world{channels: []string{"out"}, config: map[string]any{}, features: random.IntN(4) > 0}
	for range random.IntN(4) {
		w.channels = append(w.channels, fmt.Sprint("c", random.IntN(5)))
	}
	own := attributes[creature]
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if random.IntN(8) > 0 == (name == "match" || name == "to" || name == "count") {
			w.config[name] = pick(random, own[name]...)
		}
	}
	w.tool = func(t *turn, name, args string) (string, abi.Code) {
		if len(args)%5 == 0 {
			return "", t.fail(abi.Conflict, "%s is refused", name)
		}
		return pick(random, `{"creature":"c7","ok":true}`, `{"creatures":[{"id":"c1","name":"worker-1"},{"id":"c2"}]}`, `{"results":[]}`, "", "[", "null"), abi.OK
	}
	w.gone = func(name string) bool { return len(name)%3 == 0 }
	return w
}

func randomDelivery(random *rand.Rand) delivery {
	text := func() string {
		b := make([]byte, random.IntN(1+pick(random, 10, 100, 5_000)))
		for n := range b {
			b[n] = pick(random, []byte(" \n{}[]\":,\\\x00\xff0123456789abcxyzé")...)
		}
		return string(b)
	}
	payload := pick(random, text, func() string {
		return pick(random, "a b c", "an ERROR 12345", `{"level":"error","a":"x`+text()+`"}`, `{"task":"factor","n":360360}`, "factor 360360", "sum 1 2 3", "report",
			`{"tool":"create_creature","arguments":{"name":"w"}}`, `[{"tool":"list","arguments":{}}]`, `{"done":true,"id":1}`, strings.Repeat("word ", random.IntN(2_000)))
	})()
	kinds := []abi.Kind{abi.KindMessage, abi.KindMessage, abi.KindMessage, abi.KindMessage}
	for _, k := range abi.Kinds {
		kinds = append(kinds, k.Kind)
	}
	return delivery{
		kind: pick(random, kinds...), channel: pick(random, "in", "out", "ask", "tasks"), sender: pick(random, "", "a", "b", "c"), direct: random.IntN(4) == 0, payload: payload,
		headers: pick(random, "", headers, "a\x00b\x00"), detail: pick(random, "", "", "{}", `{"kind":"reply","tag":1,"code":"ok"}`, `{"kind":"reply","tag":7,"code":"not_found"}`, `{"kind":"timer","name":"0000000000000000"}`),
	}
}

// TestFuelEndsAtTheSamePlace limits the fuel to every value that a turn can fail with, as
// far as it is less than the first slice, and compares the whole error.
func TestFuelEndsAtTheSamePlace(t *testing.T) {
	const slice = 4_000
	for _, code := range native.All() {
		t.Run(code.Name, func(t *testing.T) {
			module, err := plugins.Get(code.Name)
			if err != nil {
				t.Fatal(err)
			}
			h := allEngines(t)
			h.Strict = true
			m := compileIn(t, h, module)
			w := &world{channels: []string{"out", "helper"}, features: true, config: map[string]any{"match": "b"}}
			w.tool = func(*turn, string, string) (string, abi.Code) { return `{"creature":"c7"}`, abi.OK }
			d := delivery{kind: abi.KindMessage, channel: "in", payload: "a b c"}
			short := 0
			for fuel := int64(1); fuel < slice; fuel += 7 {
				i, err := m.Instantiate(t.Context(), &abi.Limits{Fuel: fuel, Deadline: time.Minute}, w.turn(delivery{}, true))
				if err == nil {
					err = i.Handle(t.Context(), w.turn(d, false), d.kind, len(d.payload))
					if err := i.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if abi.CodeOf(err) != abi.OutOfFuel {
					break
				}
				short++
			}
			if short < 5 {
				t.Errorf("only %d limits are too low", short)
			}
		})
	}
}
