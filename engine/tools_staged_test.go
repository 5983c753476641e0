package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
)

// memberOf finds the member that a status describes.
func memberOf(t *testing.T, s tools.GroupStatus, id journal.CreatureID) tools.GroupMember {
	t.Helper()
	for _, m := range s.Creatures {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("%s is not in the status", id)
	return tools.GroupMember{}
}

// TestATurnSeesWhatItsSplitCuts makes a turn separate its creature from its parent, by a split
// or by the parent's removal, and then read the graph. The turn sees what every reader sees
// after its commit.
func TestATurnSeesWhatItsSplitCuts(t *testing.T) {
	for _, c := range []struct {
		name  string
		part  toolCall
		wires int // remaining wires
	}{
		{"by a split", toolCall{"group_channel", args{"action": "unwire", "channel": "lead", "creature": "boss", "direction": "send"}}, 0},
		// A wire to a removed creature stays, and leads to dead letters.
		{"by a removal", toolCall{"group_remove_node", args{"creature": "boss"}}, 1},
		{"not at all", toolCall{"group_stop_node", args{"creature": "boss"}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, engine.Options{Host: operators()})
			boss := w.add("boss", "sink")
			lead := w.add("lead", "operator", privileged, w.below(boss))
			w.wire(journal.OutputWire{From: lead, To: boss})
			w.wire(journal.OutputWire{From: boss, To: lead})
			replies := w.ask(lead, c.part, toolCall{"group_status", nil}, toolCall{"group_wire", args{"action": "list"}})
			answer[json.RawMessage](t, replies[0])
			staged := answer[tools.GroupStatus](t, replies[1])
			listed := answer[tools.WireResult](t, replies[2]).Wires
			after := answer[tools.GroupStatus](t, w.ask(lead, toolCall{"group_status", nil})[0])
			mine, then := memberOf(t, staged, lead), memberOf(t, after, lead)
			if mine.Parent != then.Parent || len(staged.Wires) != len(after.Wires) || len(staged.Creatures) != len(after.Creatures) {
				t.Errorf("the turn saw %+v, but after its commit the graph is %+v", staged, after)
			}
			if want := c.wires == 2; (mine.Parent == boss) != want {
				t.Errorf("in the turn, the parent is %q", mine.Parent)
			}
			if len(staged.Wires) != c.wires || len(listed) != c.wires || staged.Totals.Wires != c.wires {
				t.Errorf("%d wires in the status, %d in the list; want %d", len(staged.Wires), len(listed), c.wires)
			}
		})
	}
}

// TestASpawnedNodeThatIsSplitOffHasNoParent adds a node and removes its only channel, in
// one turn.
func TestASpawnedNodeThatIsSplitOffHasNoParent(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead := a.Creatures["creature.lead"]
	replies := s.ask(lead,
		toolCall{"group_add_node", args{"species": "scribe", "name": "eve"}},
		toolCall{"group_channel", args{"action": "unwire", "channel": "eve", "creature": "lead", "direction": "send"}},
	)
	eve := answer[tools.AddNodeResult](t, replies[0]).Creature
	if d := answer[tools.ChannelResult](t, replies[1]).Delta; d.Kind != "split" {
		t.Fatalf("the delta is %+v", d)
	}
	for _, when := range []string{"at once", "after a restart"} {
		if c, _ := s.creatureIn(eve); c.Parent != "" || s.graph(eve) == s.graph(lead) {
			t.Errorf("%s eve's parent is %q, in the graph %s; lead is in %s", when, c.Parent, s.graph(eve), s.graph(lead))
		}
		if why := s.parentLinks(eve)[eve]; !strings.Contains(why, `"reason":"split"`) {
			t.Errorf("%s the log says %q", when, why)
		}
		s.reopen()
	}
}

// TestIDsDependOnTheCallAlone makes a call that fails in the first run of a turn and succeeds
// in the second. Later calls return the same ids in both runs.
func TestIDsDependOnTheCallAlone(t *testing.T) {
	d := newOnDisk(t)
	var lead journal.CreatureID
	var deletions []abi.Code
	var made []journal.ChannelID
	d.host.on("lead", onMessage(func(t abi.Turn) error {
		_, code := t.Tool([]byte("group_channel"), []byte(`{"action": "delete", "channel": "extra"}`))
		deletions = append(deletions, code)
		b, code := t.Tool([]byte("group_channel"), []byte(`{"action": "create", "name": "notes"}`))
		var r tools.ChannelResult
		if err := json.Unmarshal(b, &r); code != abi.OK || err != nil {
			return codeErr(t, code)
		}
		if made = append(made, r.Channel); len(made) == 1 { // another change of the graph
			if _, err := d.AddChannel(d.T.Context(), d.graphOf(lead), "extra", ""); err != nil {
				d.Error(err)
			}
		}
		_, code = t.Tool([]byte("group_status"), nil)
		return codeErr(t, code)
	}))
	lead = d.add("lead", "lead", privileged)
	d.connect(lead, d.add("bob", "sink"))
	d.sendTo(lead, "go")
	d.serve()
	if len(deletions) != 2 || deletions[0] != abi.NotFound || deletions[1] != abi.OK {
		t.Fatalf("the deletions returned %v, want not_found and, in the second run, ok", deletions)
	}
	if made[0] != made[1] {
		t.Errorf("the same call made %s, and then %s", made[0], made[1])
	}
	if found, err := d.FindChannel(d.graphOf(lead), "notes"); err != nil || found != made[0] {
		t.Errorf("there is %q (%v), want %s", found, err, made[0])
	}
}

// TestCallsOfOneTurnHaveIDsOfTheirOwn spawns twice in a turn, after a refused call.
func TestCallsOfOneTurnHaveIDsOfTheirOwn(t *testing.T) {
	w := newWorld(t, engine.Options{Host: operators()})
	lead := w.apply(crew("crew")).Creatures["creature.lead"]
	add := toolCall{"group_add_node", args{"species": "scribe"}}
	replies := w.ask(lead, add, toolCall{"group_add_node", args{"species": "dragon"}}, add, toolCall{"group_channel", args{"action": "create", "name": "x"}})
	one, two := answer[tools.AddNodeResult](t, replies[0]), answer[tools.AddNodeResult](t, replies[2])
	ids := map[string]bool{string(one.Creature): true, string(two.Creature): true, string(one.Channel): true, string(two.Channel): true}
	ids[string(answer[tools.ChannelResult](t, replies[3]).Channel)] = true
	if len(ids) != 5 {
		t.Errorf("the ids are %v, want five different ones", ids)
	}
}
