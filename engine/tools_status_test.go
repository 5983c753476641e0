package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
	"pgregory.net/rapid"
)

// throng is a graph of a privileged creature and many others, to which it sends.
func throng(t testing.TB, n int) (w *world, lead journal.CreatureID) {
	w = newWorld(t, engine.Options{Host: operators()})
	lead = w.add("lead", "operator", privileged)
	g := w.graph(lead)
	w.try(func(b *engine.Batch) error {
		for i := range n {
			s := spec(fmt.Sprint("n", i), "sink")
			s.Join, s.Parent = g, lead
			added, _, err := b.AddCreature(t.Context(), s)
			if err != nil {
				return err
			}
			if i%3 == 0 {
				if _, err := b.AddWire(t.Context(), journal.OutputWire{From: added.Creature, To: lead}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return w, lead
}

// statusOf requests a part of a graph, in a turn of its own.
func statusOf(t testing.TB, w *world, lead journal.CreatureID, after string, limit int) (out tools.GroupStatus) {
	t.Helper()
	b, err := json.Marshal(tools.GroupStatusArgs{After: after, Limit: limit})
	if err == nil {
		b, err = w.Tool(t.Context(), lead, "group_status", b)
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestThePartsOfAStatusAreTheWhole reads a graph in parts of every size: together they
// equal the whole result.
func TestThePartsOfAStatusAreTheWhole(t *testing.T) {
	const n = 40
	w, lead := throng(t, n)
	whole := statusOf(t, w, lead, "", 0)
	if whole.Next != "" || len(whole.Creatures) != n+1 || len(whole.Channels) != n || len(whole.Wires) != (n+2)/3 {
		t.Fatalf("the whole has %d creatures, %d channels, %d wires, next %q", len(whole.Creatures), len(whole.Channels), len(whole.Wires), whole.Next)
	}
	want := tools.GroupTotals{Creatures: n + 1, Channels: n, Wires: (n + 2) / 3}
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(1, 2*n+20).Draw(r, "limit")
		sum := whole
		sum.Creatures, sum.Channels, sum.Wires = []tools.GroupMember{}, []tools.GroupChannel{}, []journal.OutputWire{}
		for after, parts := "", 0; ; parts++ {
			p := statusOf(t, w, lead, after, limit)
			if got := len(p.Creatures) + len(p.Channels) + len(p.Wires); got > limit || got == 0 || p.Totals != want {
				r.Fatalf("a part of %d has %d, of %+v", limit, got, p.Totals)
			}
			sum.Creatures, sum.Channels, sum.Wires = append(sum.Creatures, p.Creatures...), append(sum.Channels, p.Channels...), append(sum.Wires, p.Wires...)
			if after = p.Next; after == "" {
				break
			}
		}
		if !reflect.DeepEqual(sum, whole) {
			r.Fatalf("the parts of %d add up to %+v, want %+v", limit, sum, whole)
		}
	})
}

// TestAStatusIsBounded uses a graph with more of everything than one result shows.
func TestAStatusIsBounded(t *testing.T) {
	w, lead := throng(t, 300)
	hub := w.connect(lead, journal.CreatureID(statusOf(t, w, lead, "", 2).Creatures[1].ID), "hub")
	g := w.graph(lead)
	w.try(func(b *engine.Batch) error {
		for i := range 100 {
			id, err := b.FindCreature(g, fmt.Sprint("n", i))
			if err == nil {
				_, err = b.Do(t.Context(), topology.SetEdge{Creature: id, Channel: hub, Direction: journal.Listen, On: true})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.wire(journal.OutputWire{From: lead, To: lead, AllowSelf: true, Prompt: strings.Repeat("ä", 5000), Name: "long"})
	first := statusOf(t, w, lead, "", 0)
	if got := len(first.Creatures) + len(first.Channels) + len(first.Wires); got != 256 || first.Next == "" {
		t.Errorf("the first part has %d, next %q", got, first.Next)
	}
	if m := first.Creatures[0]; len(m.Send) != 32 || m.Truncated != 301-32 {
		t.Errorf("the lead sends on %d channels, %d left out", len(m.Send), m.Truncated)
	}
	found := map[string]bool{}
	for after := first.Next; after != ""; {
		p := statusOf(t, w, lead, after, 0)
		for _, ch := range p.Channels {
			if ch.ID == hub {
				found["hub"] = len(ch.Listeners) == 32 && ch.Truncated == 100-32
			}
		}
		for _, wire := range p.Wires {
			if wire.Name == "long" {
				found["long"] = len(wire.Prompt) < 300 && strings.TrimRight(wire.Prompt, "ä…") == ""
			}
		}
		if len(p.Spawnable) != 0 {
			t.Errorf("a later part repeats what may be spawned")
		}
		after = p.Next
	}
	if !found["hub"] || !found["long"] {
		t.Errorf("a part is missing or too large: %v", found)
	}
}

// TestWiresAreListedInParts reads the list of group_wire in parts.
func TestWiresAreListedInParts(t *testing.T) {
	w, lead := throng(t, 300)
	var all []journal.OutputWire
	for after := any(nil); ; {
		a := args{"action": "list"}
		if after != nil {
			a["after"] = after
		}
		r := answer[tools.WireResult](t, w.ask(lead, toolCall{"group_wire", a})[0])
		if len(r.Wires) > 64 {
			t.Errorf("%d wires in one result", len(r.Wires))
		}
		if all = append(all, r.Wires...); r.Next == "" {
			break
		}
		after = r.Next
	}
	listed, err := w.Wires(w.graph(lead))
	for i := range listed {
		listed[i].Order = 0 // results do not have it
	}
	if err != nil || !reflect.DeepEqual(all, listed) {
		t.Errorf("the parts have %d wires; want %d (%v)", len(all), len(listed), err)
	}
	for call, want := range map[string]toolCall{
		"not_found":        {"group_status", args{"after": "cnobody"}},
		"invalid_argument": {"group_wire", args{"action": "add", "from": "lead", "to": "n1", "after": "w1"}},
	} {
		if r := w.ask(lead, want)[0]; r.Code != call {
			t.Errorf("%+v returns %+v, want %s", want, r, call)
		}
	}
	if r := w.ask(lead, toolCall{"group_status", args{"limit": 257}})[0]; r.Code != "invalid_argument" {
		t.Errorf("a limit that is too high: %+v", r)
	}
}

// TestACallDoesNotReadTheCallersEdges measures the cost of a call for a creature with
// many edges, in allocated bytes.
func TestACallDoesNotReadTheCallersEdges(t *testing.T) {
	const calls = 50
	allocated := func(n int) uint64 {
		w, lead := throng(t, n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			if _, err := w.Tool(t.Context(), lead, "group_wire", []byte(`{"action": "remove", "wire": "wnone"}`)); err == nil {
				t.Error("removing a wire that does not exist has succeeded")
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / calls
	}
	if few, many := allocated(5), allocated(2000); many > few+64<<10 {
		t.Errorf("%d bytes with 5 edges, %d with 2000", few, many)
	}
}
