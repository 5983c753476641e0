package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// attributedKinds are the kinds of events that say which operation made a change.
var attributedKinds = []journal.EventKind{
	journal.EventCreatureStarted, journal.EventCreatureStopped, journal.EventModuleReplaced, journal.EventParentLinkChanged,
	journal.EventTopologyChanged, journal.EventWireAdded, journal.EventWireRemoved,
	journal.EventRecipeStopped, journal.EventRecipeContinued,
}

// attributed is an event that describes a change of the graph.
type attributed struct {
	kind journal.EventKind
	journal.Attribution
}

// changesAfter returns all events of these kinds in a session directory after a cursor,
// and the cursor after them.
func changesAfter(t *testing.T, tr *terrarium.Terrarium, after journal.EventCursor) ([]attributed, journal.EventCursor) {
	t.Helper()
	// A message from outside is sent last, so that there is an event to wait for.
	last, err := tr.FindChannel("", "end")
	if err != nil {
		t.Fatal(err)
	}
	sent, err := tr.Send(t.Context(), last, terrarium.Outgoing{Payload: []byte("end")})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := tr.SubscribeAfter(t.Context(), terrarium.Filter{}, after, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var list []attributed
	for {
		ob, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ob.Event.Channel == last && ob.Event.Seq == sent.Seq {
			return list, sub.Cursor()
		}
		if slices.Contains(attributedKinds, ob.Event.Kind) {
			a := attributed{kind: ob.Event.Kind}
			if err := json.Unmarshal(ob.Event.Payload, &a.Attribution); err != nil {
				t.Fatalf("%s: %v", ob.Event.Payload, err)
			}
			list = append(list, a)
		}
	}
}

// The events of every change of the graph say which operation made it, and who called it.
// They are in the log, and the same after a restart.
func TestChangesAreAttributed(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "pond.hcl")
	const pond = "terrarium { name = \"pond\" }\ncreature \"duck\" { module = \"builtin:echo\" }\n"
	write := func(text string) {
		if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pond)
	o := terrarium.Options{Dir: filepath.Join(dir, "S")}
	tr, err := terrarium.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	office(t, tr)
	do(t, tr, "add_creature", `{"name": "sink", "module": "builtin:echo"}`)
	do(t, tr, "add_channel", `{"graph": "sink", "name": "end"}`)
	all, cursor := changesAfter(t, tr, journal.FromStart)
	for i, a := range all {
		if a.Call != "apply" && a.Call != "add_creature" && a.Call != "add_channel" || a.By != "" || a.Via != "" || a.Creature != "" {
			t.Errorf("change %d: %+v", i, a)
		}
	}
	boss, err := tr.FindCreature("", "boss")
	if err != nil {
		t.Fatal(err)
	}

	ann := Rights{Scope: Admin, Name: "ann", Via: "token"}
	as := func(r Rights, call, args string) func() error {
		return func() error {
			_, err := DoAs(t.Context(), tr, r, call, json.RawMessage(args))
			return err
		}
	}
	byAnn := func(call string) journal.Attribution {
		return journal.Attribution{Call: call, By: "ann", Via: "token"}
	}
	const (
		started = journal.EventCreatureStarted
		stopped = journal.EventCreatureStopped
		changed = journal.EventTopologyChanged
	)
	for _, c := range []struct {
		name  string
		do    func() error
		want  journal.Attribution
		kinds []journal.EventKind // all of them, without repetitions, sorted
	}{
		{"add", as(ann, "add_creature", `{"name": "a", "module": "builtin:echo"}`), byAnn("add_creature"), []journal.EventKind{started, changed}},
		{"add in a batch", as(ann, "batch", `{"ops": [{"op": "add_creature", "name": "b", "module": "builtin:echo", "join": "a"}]}`), byAnn("batch"), []journal.EventKind{started, changed}},
		{"add without a name", as(Rights{Scope: Admin, Via: "socket"}, "add_creature", `{"name": "c", "module": "builtin:echo"}`), journal.Attribution{Call: "add_creature", Via: "socket"}, []journal.EventKind{started, changed}},
		{"merge", as(ann, "connect", `{"from": "b", "to": "c", "channel": "news"}`), byAnn("connect"), []journal.EventKind{changed}},
		{"wire", as(ann, "wire", `{"from": "b", "to": "c"}`), byAnn("wire"), []journal.EventKind{journal.EventWireAdded}},
		{"replace", as(ann, "replace_module", `{"creature": "a", "module": "builtin:relay"}`), byAnn("replace_module"), []journal.EventKind{journal.EventModuleReplaced}},
		{"stop", as(ann, "stop_creature", `{"creature": "a"}`), byAnn("stop_creature"), []journal.EventKind{stopped, changed}},
		{"start", as(ann, "start_creature", `{"creature": "a"}`), byAnn("start_creature"), []journal.EventKind{started, changed}},
		{"split, with a wire", as(ann, "disconnect", `{"from": "b", "to": "c", "channel": "news"}`), byAnn("disconnect"), []journal.EventKind{changed, journal.EventWireRemoved}},
		{"remove", as(ann, "remove_creature", `{"creature": "c"}`), byAnn("remove_creature"), []journal.EventKind{stopped}},
		{"apply", as(ann, "apply", `{"recipe": "`+recipe+`"}`), byAnn("apply"), []journal.EventKind{started}},
		{"apply a recipe that stops", func() error {
			write(pond + "stop_when \"still\" { match = event.turns >= 0 }\n")
			return as(ann, "apply", `{"recipe": "`+recipe+`"}`)()
		}, byAnn("apply"), []journal.EventKind{journal.EventRecipeStopped}},
		{"apply it without its condition", func() error {
			write(pond)
			return as(ann, "apply", `{"recipe": "`+recipe+`"}`)()
		}, byAnn("apply"), []journal.EventKind{journal.EventRecipeContinued}},
		{"apply an edited recipe in the process", func() error {
			write(strings.Replace(pond, "duck", "swan", 1))
			_, err := tr.Apply(t.Context(), recipe, terrarium.RecipeOptions{})
			return err
		}, journal.Attribution{Call: "apply"}, []journal.EventKind{started, stopped}},
		{"a tool of a creature", as(ann, "tool", `{"caller": "boss", "name": "group_add_node", "args": {"species": "scribe", "name": "eve"}}`), journal.Attribution{Call: "tool", Creature: boss}, []journal.EventKind{started, changed}},
		{"a connection", func() error {
			var out bytes.Buffer
			return Serve(t.Context(), tr, strings.NewReader(`{"op": "stop_creature", "creature": "eve"}`+"\n"), &out)
		}, journal.Attribution{Call: "stop_creature", Via: "exec"}, []journal.EventKind{stopped, changed}},
		{"a refused change", func() error {
			if err := as(ann, "connect", `{"from": "a", "to": "absent", "channel": "x"}`)(); err == nil {
				t.Error("it was not refused")
			}
			return nil
		}, journal.Attribution{}, nil},
	} {
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var list []attributed
		list, cursor = changesAfter(t, tr, cursor)
		var kinds []journal.EventKind
		for _, a := range list {
			kinds = append(kinds, a.kind)
			if a.Attribution != c.want {
				t.Errorf("%s: %v has %+v, want %+v", c.name, a.kind, a.Attribution, c.want)
			}
		}
		slices.Sort(kinds)
		slices.Sort(c.kinds)
		if kinds = slices.Compact(kinds); !slices.Equal(kinds, c.kinds) {
			t.Errorf("%s: the events are %v, want %v", c.name, kinds, c.kinds)
		}
		all = append(all, list...)
	}

	if err := tr.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	tr = open(t, o)
	if _, _, err := tr.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	sorted := func(list []attributed) []attributed {
		return slices.SortedFunc(slices.Values(list), func(a, b attributed) int { return strings.Compare(string(journal.JSON(a)), string(journal.JSON(b))) })
	}
	if again, _ := changesAfter(t, tr, journal.FromStart); !slices.Equal(sorted(again), sorted(all)) {
		t.Errorf("after a restart there are %d changes, before %d", len(again), len(all))
	}
}
