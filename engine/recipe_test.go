package engine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestTimersGoAlongWhenARecipeDividesItsGraph covers the one cut that happens
// before the timers of what is brought back are running again.
func TestTimersGoAlongWhenARecipeDividesItsGraph(t *testing.T) {
	h := newFakeHost()
	h.on("waker", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindStart {
			return nil
		}
		return codeErr(t, t.TimerSet([]byte("tea"), time.Hour, 0, []byte("now")))
	})
	s := newSaved(t, engine.Options{Host: h})
	waker := func(d *engine.Deployment) { d.Creatures[1].Module, d.Creatures[1].Wasm = "waker", []byte("waker") }
	apart := func(d *engine.Deployment) { d.Creatures[0].Send = nil }
	for i, more := range [][]func(*engine.Deployment){{waker}, {waker, apart}, {waker, apart}, {waker}, {waker}} {
		if i > 0 {
			s.shut()
			s.open()
		}
		a := s.apply(team(2, more...))
		s.wait()
		timers, err := s.Timers(a.Creatures["creature.m1"])
		if err != nil || len(timers) != 1 || timers[0].Name != "tea" {
			t.Fatalf("run %d: timers %+v, %v", i, timers, err)
		}
	}
}

func TestTwoRecipesGoOnInTheGraphTheyMergedInto(t *testing.T) {
	s := newSaved(t, engine.Options{})
	named := func(name string) *engine.Deployment {
		d := team(2)
		d.Name = name
		return d
	}
	one, two := s.apply(named("one")), s.apply(named("two"))
	s.change(topology.Connect{From: one.Creatures["creature.m1"], To: two.Creatures["creature.m0"], Channel: two.Channels["channel.c0"]})
	s.send(two.Channels["channel.c0"], "1")
	s.wait()
	s.shut()
	s.open()
	again := s.apply(named("one"))
	if !maps.Equal(again.Creatures, one.Creatures) {
		t.Errorf("one: %v, want %v", again.Creatures, one.Creatures)
	}
	again = s.apply(named("two"))
	if !maps.Equal(again.Creatures, two.Creatures) || !maps.Equal(again.Channels, two.Channels) || len(again.Created) > 0 {
		t.Errorf("two: %+v, want %v", again, two.Creatures)
	}
	s.send(two.Channels["channel.c0"], "2")
	s.wait()
	if got, want := s.state(two.Creatures["creature.m1"], "heard"), "c1:1\nc1:2\n"; got != want {
		t.Errorf("it heard %q, want %q", got, want)
	}
	n := 0
	for _, g := range s.status() {
		n += len(g.Creatures)
	}
	if n != 4 {
		t.Errorf("there are %d creatures, want 4", n)
	}
}

func TestApplyLeavesCreaturesWithoutAModuleAlone(t *testing.T) {
	h := newFakeHost()
	s := newSaved(t, engine.Options{Host: h})
	a := s.add("lost", "count")
	in := s.connect(a, a, "in")
	s.send(in, "1")
	s.wait()
	s.shut()
	count := h.behaviours["count"]
	delete(h.behaviours, "count")
	s.open()
	if _, problems, err := s.Restore(t.Context()); err != nil || len(problems) != 1 {
		t.Fatalf("Restore: %v, %v", problems, err)
	}
	s.apply(team(2))
	s.send(in, "2")
	h.on("count", count)
	s.reopen()
	s.wait()
	if got := s.state(a, "n"); got != "2" {
		t.Errorf("it counted to %q, want 2", got)
	}
}
