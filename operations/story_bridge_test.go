package operations

import (
	"reflect"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/fresh"
)

const twoBanks = `
channel "west" {}
channel "east" {}
creature "lead" {
  module     = "builtin:operator"
  privileged = true
  send       = [channel.west]
}
creature "west_count" {
  module = "builtin:tally"
  listen = [channel.west]
  wire "told" { to = creature.east_count }
}
creature "west_log" {
  module = "builtin:tally"
  listen = [channel.west]
}
creature "bridge" {
  module = "builtin:relay"
  listen = [channel.west]
  send   = [channel.east]
}
creature "east_count" {
  module = "builtin:tally"
  listen = [channel.east]
}
creature "east_clerk" {
  module = "builtin:operator"
  send   = [channel.east]
}
`

// A creature has finished its job and is removed. It was the bridge between two halves,
// which continue separately, each with the whole past. Only the bridge is affected.
func TestStoryABridgeIsTornDown(t *testing.T) {
	s := newStory(t)
	team := s.recipe("banks", twoBanks)
	west, east := team.Channels["channel.west"], team.Channels["channel.east"]
	lead, bridge := team.Creatures["creature.lead"], team.Creatures["creature.bridge"]
	counts := [2]terrarium.CreatureID{team.Creatures["creature.west_count"], team.Creatures["creature.east_count"]}
	s.say(west, "over")
	before := graphOf(t, s.Terrarium, lead)
	s.refused("not_privileged", team.Creatures["creature.east_clerk"], "group_remove_node", `{"creature": "bridge"}`)

	// The lead removes the bridge while a delivery still waits for it.
	s.granted(lead, "group_stop_node", `{"creature": "bridge"}`)
	s.say(west, "too late")
	past := s.past(string(before.ID))
	watching := s.watch(terrarium.Filter{})
	delta := s.granted(lead, "group_remove_node", `{"creature": "bridge"}`)[0].Result.Delta
	halves := [2]inspect.GraphStatus{graphOf(t, s.Terrarium, counts[0]), graphOf(t, s.Terrarium, counts[1])}
	if delta.Kind != "split" || !slices.Equal(delta.OldGraphs, []terrarium.GraphID{before.ID}) || !slices.Equal(delta.NewGraphs, []terrarium.GraphID{halves[0].ID, halves[1].ID}) {
		t.Errorf("the delta is %+v", delta)
	}
	if halves[0].ID != before.ID || halves[1].ID == before.ID {
		t.Errorf("the larger half is %s and the smaller %s, both of %s", halves[0].ID, halves[1].ID, before.ID)
	}
	if got, want := [2][]string{members(halves[0]), members(halves[1])}, [2][]string{{"lead", "west_count", "west_log"}, {"east_count", "east_clerk"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the halves are %v, want %v", got, want)
	}
	s.idle()
	twoPasts(t, s, before.Session, past, halves, watching)
	tornDown(t, watching, bridge, delta)

	// Each half continues on its own: nothing crosses over, no creature was restarted,
	// and the lead has no power over the other graph.
	s.say(west, "here")
	s.say(east, "there")
	for i, want := range []map[string]any{
		{"count/over": "1", "count/too late": "1", "count/here": "1"},
		{"count/over": "1", "count/there": "1"},
	} {
		if got := counted(t, s.Terrarium, counts[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s has counted %v, want %v", s.member(counts[i]).Name, got, want)
		}
		if starts := s.member(counts[i]).InstanceStarts; starts != 1 && !fresh.Instances() {
			t.Errorf("%s has had %d instances", s.member(counts[i]).Name, starts)
		}
	}
	s.refused("not_found", lead, "group_remove_node", `{"creature": "east_clerk"}`)
	s.refused("not_found", lead, "group_send", `{"creature": "east_count", "payload": "hello"}`)
	s.sound(counts[:]...)

	// In the next run the recipe makes the graph as it was. Its session has the history
	// of both halves.
	apart := [2][]terrarium.Event{s.past(string(halves[0].ID)), s.past(string(halves[1].ID))}
	s.again()
	s.recipe("banks", twoBanks)
	whole := idsOf(s.past(string(graphOf(t, s.Terrarium, lead).ID)))
	for i, events := range apart {
		for _, e := range events {
			if !slices.Contains(whole, e.ID) {
				t.Errorf("the %s of %s is lost", e.Kind, halves[i].ID)
			}
		}
	}
	if graphOf(t, s.Terrarium, lead).ID != graphOf(t, s.Terrarium, counts[1]).ID {
		t.Error("the halves are still apart")
	}
	s.sound(lead)
}

// tornDown checks what a watcher sees of the removal of a bridge: the halves, each with
// its session, the removal of the wire between them, and the dead letters.
func tornDown(t *testing.T, w *watcher, bridge terrarium.CreatureID, delta journal.Delta) {
	t.Helper()
	forked, split := map[terrarium.GraphID]bool{}, 0
	var stopped, letters, wires int
	for _, e := range w.seen {
		switch e.Kind {
		case journal.EventSessionForked:
			forked[e.Graph] = true
		case journal.EventTopologyChanged:
			if split++; !reflect.DeepEqual(payload[journal.Delta](t, e), delta) {
				t.Errorf("%s sees %s, want %+v", e.Graph, e.Payload, delta)
			}
		case journal.EventCreatureStopped:
			if stopped++; e.Creature != bridge || payload[journal.CreatureStoppedPayload](t, e).Reason != "removed" {
				t.Errorf("%s has stopped: %s", e.Creature, e.Payload)
			}
		case journal.EventDeadLetter:
			if letters++; payload[journal.DeadLetterPayload](t, e).Reason != "creature_removed" || payload[journal.DeadLetterPayload](t, e).Creature != bridge {
				t.Errorf("a dead letter: %s", e.Payload)
			}
		case journal.EventWireRemoved:
			if wires++; payload[journal.WireRemovedPayload](t, e).Reason != "split" {
				t.Errorf("a wire is gone: %s", e.Payload)
			}
		}
	}
	if len(forked) != 2 || split != 2 || stopped != 1 || letters != 1 || wires != 1 {
		t.Errorf("%d sessions, %d changes, %d creatures, %d dead letters and %d wires were seen: %v", len(forked), split, stopped, letters, wires, kinds(w.seen))
	}
}

// twoPasts checks that both halves have the whole past, and say where it is from, and
// that the watcher saw what has happened since in either.
func twoPasts(t *testing.T, s *story, from terrarium.SessionID, past []terrarium.Event, halves [2]inspect.GraphStatus, w *watcher) {
	t.Helper()
	if info := s.session(from); info.Live {
		t.Errorf("%s is still written to", from)
	}
	for _, half := range halves {
		info := s.session(half.Session)
		if !info.Live || info.SplitAt == 0 || info.MergedAt != 0 || !slices.Equal(info.Parents, []terrarium.SessionID{from}) {
			t.Errorf("the session of %s is %+v", half.ID, info)
		}
		events := s.past(string(half.Session))
		if !reflect.DeepEqual(events[:len(past)], past) {
			t.Errorf("%s begins with\n%v, want\n%v", half.ID, events[:len(past)], past)
		}
		for _, e := range events[len(past):] {
			if seen := w.saw(e.ID); seen.Kind != e.Kind || seen.Creature != e.Creature {
				t.Errorf("%s has %+v, and %+v was seen", half.ID, e, seen)
			}
		}
	}
}
