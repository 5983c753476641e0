package draft_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

type always struct{}

func (always) Holds(context.Context, *deploy.OutputEvent) (bool, error) { return true, nil }

func TestWiresThatAreRefused(t *testing.T) {
	w := team(t)
	w.Applied["team"].Predicates = map[string]deploy.Predicate{"big": always{}, "bad": always{}}
	changed(t, w, func(d *draft.Draft) { add(t, d, "", topology.AddCreature{ID: "alone", Name: "alone"}) })
	rooted(t, w, "lead")
	for what, c := range map[string]struct {
		wire journal.OutputWire
		want abi.Code
		says string
	}{
		"no source":           {journal.OutputWire{From: "none", To: "a"}, abi.NotFound, "none"},
		"no target":           {journal.OutputWire{From: "a", To: "none"}, abi.NotFound, "none"},
		"two graphs":          {journal.OutputWire{From: "a", To: "alone"}, abi.NotConnected, "an output wire does not join graphs"},
		"itself":              {journal.OutputWire{From: "a", To: "a"}, abi.InvalidArgument, "back to itself"},
		"the root to root":    {journal.OutputWire{From: "lead", To: journal.ToRoot}, abi.InvalidArgument, "which is the same creature"},
		"a name":              {journal.OutputWire{From: "a", To: "b", Name: "a\x00b"}, abi.InvalidArgument, ""},
		"a template":          {journal.OutputWire{From: "a", To: "b", Prompt: "{nothing}"}, abi.InvalidArgument, ""},
		"a long prompt":       {journal.OutputWire{From: "a", To: "b", Prompt: strings.Repeat("x", journal.MaxPrompt+1)}, abi.TooLarge, "16385 bytes"},
		"no predicate":        {journal.OutputWire{From: "a", To: "b", When: "small"}, abi.NotFound, "declares bad, big"},
		"no predicates":       {journal.OutputWire{From: "alone", To: "root", When: "small"}, abi.NotFound, "declare it in the recipe"},
		"the same":            {journal.OutputWire{From: "a", To: "b", When: "big"}, abi.AlreadyExists, "such a wire"},
		"the same by another": {journal.OutputWire{From: "a", To: "b", When: "big", Name: "other"}, abi.AlreadyExists, "such a wire"},
		"the name is taken":   {journal.OutputWire{From: "a", To: "lead", Name: "first"}, abi.AlreadyExists, "a wire named first"},
	} {
		t.Run(what, func(t *testing.T) {
			d := w.Draft(draft.Options{})
			defer d.Undo()
			if _, err := d.AddWire(t.Context(), journal.OutputWire{From: "a", To: "b", When: "big", Name: "first"}); err != nil {
				t.Fatal(err)
			}
			_, err := d.AddWire(t.Context(), c.wire)
			if e := code(t, err, c.want); !strings.Contains(e.Message+"; "+e.Remedy, c.says) {
				t.Errorf("%+v", e)
			}
			if c := d.Seal(); len(c.Wires.Lists) != 1 || len(c.Wires.Notes) != 1 {
				t.Errorf("left is %+v", c.Wires)
			}
		})
	}
}

func TestWiresComeAndGo(t *testing.T) {
	w := team(t)
	d := w.Draft(draft.Options{})
	var ids []journal.WireID
	for i := range journal.MaxWires {
		wire, err := d.AddWire(t.Context(), journal.OutputWire{From: "a", To: "b", Name: fmt.Sprintf("w%d", i), Prompt: fmt.Sprint(i)})
		if err != nil || wire.Order != uint64(i+1) {
			t.Fatalf("%+v: %v", wire, err)
		}
		ids = append(ids, wire.ID)
	}
	_, err := d.AddWire(t.Context(), journal.OutputWire{From: "a", To: "b", Name: "more"})
	code(t, err, abi.LimitExceeded)
	if removed, err := d.RemoveWire(t.Context(), ids[0]); err != nil || removed.Name != "w0" {
		t.Fatalf("%+v: %v", removed, err)
	}
	if _, ok := d.FindWire(ids[0]); ok || len(d.Seal().Wires.Notes) != journal.MaxWires-1 {
		t.Error("a wire that came and went leaves a trace")
	}
	_, err = d.RemoveWire(t.Context(), ids[0])
	if e := code(t, err, abi.NotFound); e.IDs["wire"] != string(ids[0]) {
		t.Errorf("%+v", e)
	}
	w.CarryOut(d)

	d = w.Draft(draft.Options{})
	defer d.Undo()
	kept := w.Members["a"].Wires[0]
	if _, err := d.RemoveWire(t.Context(), ids[2]); err != nil {
		t.Fatal(err)
	}
	had := d.WiresOf("a")
	d.SetWires("a", nil)
	d.KeepWire(kept) // which was the second, and is the first now
	d.NoteDropped("a", had[:3])
	var kinds []journal.EventKind
	for _, n := range d.Seal().Wires.Notes {
		kinds = append(kinds, n.Kind)
		if ev := n.Event(); ev.Creature != "a" || ev.Payload == nil {
			t.Errorf("the event is %+v", ev)
		}
	}
	if want := []journal.EventKind{journal.EventWireRemoved, 0, journal.EventWireRemoved, journal.EventWireRemoved}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("noted are %v", kinds)
	}
	if list := d.WiresOf("a"); len(list) != 1 || list[0].Order != 1 || draft.WireNamed(list, kept.Name) != 0 || draft.WireNamed(list, "") != -1 {
		t.Errorf("left are %+v", list)
	}
}

func TestDerivedIDs(t *testing.T) {
	four := func(s draft.Source) func(begin func(*draft.DerivedIDs)) []string {
		return func(begin func(*draft.DerivedIDs)) []string {
			ids := draft.NewDerivedIDs(s)
			begin(ids)
			return []string{string(ids.NewGraph()), string(ids.NewChannel()), string(ids.NewCreature()), string(ids.NewWire())}
		}
	}
	seen := map[string]bool{}
	for i, s := range []draft.Source{{}, {Creature: "c"}, {Seq: 1}, {Channel: "h"}, {Kind: 1}, {Call: "x"}, {Message: journal.EventID{Seq: 1}}} {
		for call := range 3 {
			for staged, begin := range []func(*draft.DerivedIDs){func(d *draft.DerivedIDs) { d.Begin(call) }, func(d *draft.DerivedIDs) { d.Stage(call) }} {
				first, again := four(s)(begin), four(s)(begin)
				if !reflect.DeepEqual(first, again) {
					t.Errorf("%+v gives %v and %v", s, first, again)
				}
				for _, id := range first {
					if seen[id] {
						t.Errorf("%d, call %d, staged %d: %s is not new", i, call, staged, id)
					}
					seen[id] = true
				}
			}
		}
	}
}
