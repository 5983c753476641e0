package policy

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dop251/goja"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

// ctx.graph shows the current graph after all changes, and a filter finds the same
// members as a plain search.
func TestGraphsAreShownAsTheyAre(t *testing.T) {
	s := set(t, Policy{Name: "p0", On: journal.JudgeTool, Source: `(e, c) => {
		const ask = e.arguments;
		const list = ask.channels ? c.graph.channels(ask.filter) : ask.filter ? c.graph.creatures(ask.filter) : c.graph.creatures();
		return warn([c.graph.id, list.length, JSON.stringify(list.map((m) => m.id))].join(" "));
	}`})
	rapid.Check(t, func(t *rapid.T) {
		graphs := []*deploy.GraphView{{ID: "g0"}, {ID: "g1"}}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			n := rapid.IntRange(0, 1).Draw(t, "graph")
			if rapid.Bool().Draw(t, "changes") {
				graphs[n] = &deploy.GraphView{ID: graphs[n].ID, Creatures: drawCreatures(t), Channels: []deploy.ChannelView{{ID: "k1", Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "channel")}}}
			}
			var ask struct {
				Channels bool           `json:"channels"`
				Filter   map[string]any `json:"filter,omitempty"`
			}
			if ask.Channels = rapid.Bool().Draw(t, "channels"); ask.Channels {
				ask.Filter = map[string]any{"name": "a"}
			} else {
				ask.Filter = drawFilter(t)
			}
			e := happening(journal.JudgeTool, nil)
			e.View = func() *deploy.GraphView { return graphs[n] }
			e.Arguments, _ = json.Marshal(ask)
			d := s.Judge(t.Context(), e)
			if len(d.Warnings) != 1 {
				t.Fatal(describeDecision(d))
			}
			if got, want := d.Warnings[0].Reason, searched(graphs[n], ask.Channels, ask.Filter); got != want {
				t.Fatalf("%s: got %s, want %s", e.Arguments, got, want)
			}
		}
	})
}

func drawCreatures(t *rapid.T) (out []deploy.CreatureView) {
	for k := range rapid.IntRange(0, 5).Draw(t, "creatures") {
		out = append(out, deploy.CreatureView{
			ID: journal.CreatureID(fmt.Sprint("c", k)), Name: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "name"),
			Species: rapid.SampledFrom([]string{"", "scribe"}).Draw(t, "species"), Privileged: rapid.Bool().Draw(t, "privileged"),
		})
	}
	return out
}

func drawFilter(t *rapid.T) map[string]any {
	filter := map[string]any{}
	for key, values := range map[string][]any{"name": {"ann", "bob", "", 1}, "species": {"", "scribe", nil, true}, "privileged": {true, false, "true"}} {
		if rapid.Bool().Draw(t, key) {
			filter[key] = rapid.SampledFrom(values).Draw(t, key+" is")
		}
	}
	return filter
}

// searched does the plain search.
func searched(view *deploy.GraphView, channels bool, filter map[string]any) string {
	ids := []string{}
	find := func(list any) {
		var members []map[string]any
		text, _ := json.Marshal(list)
		_ = json.Unmarshal(text, &members)
		for _, m := range members {
			fits := true
			for key, value := range filter {
				fits = fits && m[key] == value
			}
			if fits {
				ids = append(ids, m["id"].(string))
			}
		}
	}
	if channels {
		find(view.Channels)
	} else {
		find(view.Creatures)
	}
	text, _ := json.Marshal(ids)
	return fmt.Sprintf("%s %d %s", view.ID, len(ids), text)
}

// callWith returns a call with a filter of one field.
func callWith(i *isolate, key, value string) goja.FunctionCall {
	filter := i.vm.NewObject()
	_ = filter.Set(key, value)
	return goja.FunctionCall{Arguments: []goja.Value{filter}}
}

// The memory of a runtime for graphs is bounded.
func TestLittleIsKeptOfGraphs(t *testing.T) {
	i, err := newIsolate(0)
	if err != nil {
		t.Fatal(err)
	}
	i.sight.shown(graphOf(maxKept + 1))
	i.dropEvent()
	if n := len(i.sight.creatures.all); n != 0 {
		t.Errorf("it keeps %d creatures", n)
	}
	i.sight.shown(graphOf(10))
	for k := range 3 * maxSelections {
		i.sight.creatures.find(callWith(i, "name", fmt.Sprint("creature-", k)))
	}
	if n := len(i.sight.creatures.found); n > maxSelections {
		t.Errorf("it keeps %d selections", n)
	}
	for k := range 10 {
		v := graphOf(10)
		for n := range v.Creatures {
			v.Creatures[n].ID = journal.CreatureID(fmt.Sprint(k, "-", n))
		}
		i.sight.shown(v)
		for n := range v.Creatures {
			i.sight.creatures.value(&v.Creatures[n])
		}
	}
	if n := len(i.sight.creatures.made); n > 40 {
		t.Errorf("it keeps %d creatures that are mostly gone", n)
	}
}
