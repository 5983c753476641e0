package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/topology"
)

// What the simulator has found, told shortly.

func TestARestoredGraphKeepsItsIDAndItsStoreWhoeverConnectsIt(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b, c := s.add("a", "sink"), s.add("b", "sink"), s.add("c", "sink")
	own := s.connect(a, a, "own")
	s.connect(b, c, "news")
	d := s.add("d", "sink") // the youngest is all that connects a with the others
	s.change(topology.SetEdge{Creature: d, Channel: own, Direction: engine.Send, On: true})
	s.connect(b, d, "to-d")
	before := s.status()
	s.reopen()
	after := s.status()
	if len(after) != 1 || after[0].ID != before[0].ID || after[0].Durability != "normal" {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
}

func TestWhoIsElderOutlivesRestarts(t *testing.T) {
	s := newSaved(t, engine.Options{})
	gone, a := s.add("gone", "sink"), s.add("a", "sink")
	s.change(topology.RemoveCreature{ID: gone})
	for _, name := range []string{"b", "c", "d", "e"} {
		s.reopen()
		s.add(name, "sink", func(c *engine.CreatureSpec) { c.Join = s.graph(a) })
	}
	s.reopen()
	var names string
	for _, c := range s.status()[0].Creatures {
		names += c.Name
	}
	if names != "abcde" {
		t.Errorf("by age: %s, want abcde", names)
	}
}

func TestDeadLettersOfARemovalThatSplitsCanBeDeliveredAgain(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "sink"), s.add("b", "record", func(c *engine.CreatureSpec) { c.Stopped = true })
	ch := s.connect(a, b, "out")
	s.send(ch, "unread")
	s.change(topology.RemoveChannel{ID: ch})
	for range 2 {
		letters, err := s.DeadLetters(t.Context(), s.graph(b), b, engine.EventID{}, 0)
		if err != nil || len(letters) != 1 || letters[0].Reason != "channel_removed" {
			t.Fatalf("letters %+v, %v", letters, err)
		}
		s.reopen()
	}
}

func TestATurnUnderWayWhenItsChannelGoesOutlivesACrash(t *testing.T) {
	disk, clock := sim.NewDisk(1), sim.NewClock()
	disk.Manual = true
	host := newFakeHost()
	boot := func() *engine.Stepper {
		seed := uint64(7)
		e, err := engine.NewStepper(t.Context(), engine.Options{
			Host: host, Storage: disk.Boot(), Clock: clock, Seed: &seed,
			Load: func(_ context.Context, m string) ([]byte, error) { return []byte(m), nil },
		}, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := boot()
	handled := 0
	var ch engine.ChannelID
	host.on("busy", func(_ abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		if handled++; handled > 1 {
			return nil
		}
		if _, err := e.RemoveChannel(t.Context(), ch); err != nil {
			t.Error(err)
		}
		disk.Flush()
		return nil
	})
	first := func(int) int { return 0 }
	a, err := e.AddCreature(t.Context(), spec("a", "busy"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Change(t.Context(), topology.Connect{From: a.Creature, To: a.Creature})
	if err != nil {
		t.Fatal(err)
	}
	ch = out[0].Channel
	if _, err := e.Send(t.Context(), ch, engine.Outgoing{Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for e.Serve(t.Context(), first) {
	}
	disk.Kill() // before the commit of the turn is written
	e = boot()
	for e.Serve(t.Context(), first) {
	}
	if handled != 2 {
		t.Errorf("the delivery was handled %d times, want again after the crash", handled)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestASimulationIsDeterministic(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		_, once := simulate(seed, simProgram(seed), true)
		_, again := simulate(seed, simProgram(seed), true)
		for i := range min(len(once), len(again)) {
			if once[i] != again[i] {
				t.Fatalf("seed %d, line %d:\n%s\n%s", seed, i, once[i], again[i])
			}
		}
		if len(once) != len(again) {
			t.Fatalf("seed %d: %d lines, then %d", seed, len(once), len(again))
		}
	}
}
