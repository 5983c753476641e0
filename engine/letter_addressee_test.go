package engine_test

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestALetterFollowsTheAddress applies recipes that remove a creature with a backlog, and add
// another one at its address. The dead letters of the first are redelivered to the second, even
// after cuts and in another run. Before the second exists, they cannot be redelivered.
func TestALetterFollowsTheAddress(t *testing.T) {
	s := newSaved(t, engine.Options{})
	first := s.apply(team(2))
	m0, m1 := first.Creatures["creature.m0"], first.Creatures["creature.m1"]
	s.change(topology.SetStopped{ID: m1, Stopped: true})
	s.send(first.Channels["channel.c0"], "precious")
	s.wait()
	s.shut()

	s.open()
	if without := s.apply(team(1)); len(without.Removed) == 0 || without.Creatures["creature.m0"] != m0 {
		t.Fatalf("applied %+v", without)
	}
	letter := func() journal.DeadLetterRow {
		t.Helper()
		letters, err := s.DeadLetters(t.Context(), s.graph(m0), "", journal.EventID{}, 0)
		if err != nil || len(letters) != 1 || letters[0].Creature != m1 || letters[0].Reason != "creature_removed" {
			t.Fatalf("dead letters %+v, %v; want one of %s", letters, err, m1)
		}
		return letters[0]
	}
	_, err := s.Redeliver(t.Context(), s.graph(m0), letter().ID)
	if abi.CodeOf(err) != abi.NotFound || !strings.Contains(err.Error(), string(m1)) {
		t.Errorf("redelivering without a creature at the address: %v", err)
	}
	other := s.add("other", "sink") // for cuts, which give the graph other stores
	bridge := s.connect(m0, other, "bridge")
	s.change(topology.SetEdge{Creature: other, Channel: bridge, Direction: journal.Listen})
	s.shut()

	s.open()
	again := s.apply(team(2)).Creatures["creature.m1"]
	s.restore()
	if again == m1 || s.state(again, "heard") != "" {
		t.Fatalf("%s did not start over, and has heard %q", again, s.state(again, "heard"))
	}
	if _, err := s.Redeliver(t.Context(), s.graph(m0), letter().ID); err != nil {
		t.Fatal(err)
	}
	s.wait()
	if got := s.state(again, "heard"); !strings.Contains(got, "precious") {
		t.Errorf("the second creature heard %q", got)
	}
	if left, err := s.DeadLetters(t.Context(), s.graph(m0), "", journal.EventID{}, 0); err != nil || len(left) > 0 {
		t.Errorf("the remaining dead letters are %+v, %v", left, err)
	}
}

// TestAStoreRemembersWhoWas looks up creatures that exist, that were removed, and that
// never existed.
func TestAStoreRemembersWhoWas(t *testing.T) {
	s := newSaved(t, engine.Options{})
	applied := s.apply(team(3))
	gone := applied.Creatures["creature.m2"]
	s.change(topology.RemoveCreature{ID: gone})
	stays := applied.Creatures["creature.m0"]
	info := s.status()[0]
	s.shut()
	s.open()
	store, err := s.storage.Open(t.Context(), info.Session)
	if err != nil {
		t.Fatal(err)
	}
	memory := store.(journal.Rememberer)
	for id, want := range map[journal.CreatureID]string{gone: "creature.m2", stays: "creature.m0", "nobody": ""} {
		row, known, err := memory.Was(t.Context(), id)
		if err != nil || known != (want != "") || row.Address != want || known && (row.ID != id || row.Deployment != "team") {
			t.Errorf("%s was %+v, %v, %v; want %q", id, row, known, err, want)
		}
	}
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
