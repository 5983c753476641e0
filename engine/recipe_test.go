package engine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestTimersGoAlongWhenARecipeDividesItsGraph covers the one cut that happens before the
// timers of resumed creatures are running again.
func TestTimersGoAlongWhenARecipeDividesItsGraph(t *testing.T) {
	h := newFakeHost()
	h.on("waker", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindStart {
			return nil
		}
		return codeErr(t, t.TimerSet([]byte("tea"), time.Hour, 0, []byte("now")))
	})
	s := newSaved(t, engine.Options{Host: h})
	waker := func(d *deploy.Deployment) { d.Creatures[1].Module, d.Creatures[1].Wasm = "waker", []byte("waker") }
	apart := func(d *deploy.Deployment) { d.Creatures[0].Send = nil }
	for i, more := range [][]func(*deploy.Deployment){{waker}, {waker, apart}, {waker, apart}, {waker}, {waker}} {
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
	named := func(name string) *deploy.Deployment {
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
		t.Errorf("the creatures of one are %v, want %v", again.Creatures, one.Creatures)
	}
	again = s.apply(named("two"))
	if !maps.Equal(again.Creatures, two.Creatures) || !maps.Equal(again.Channels, two.Channels) || len(again.Created) > 0 {
		t.Errorf("two is %+v, want %v", again, two.Creatures)
	}
	s.send(two.Channels["channel.c0"], "2")
	s.wait()
	if got, want := s.state(two.Creatures["creature.m1"], "heard"), "c1:1\nc1:2\n"; got != want {
		t.Errorf("m1 of two heard %q, want %q", got, want)
	}
	n := 0
	for _, g := range s.status() {
		n += len(g.Creatures)
	}
	if n != 4 {
		t.Errorf("there are %d creatures, want 4", n)
	}
}

// A channel that a recipe declares is made in the graph of its creatures, even if another
// channel there has its name.
func TestARecipeDeclaresAChannelWhoseNameItsGraphHas(t *testing.T) {
	named := func(name string, more ...func(*deploy.Deployment)) *deploy.Deployment {
		d := team(2, more...)
		d.Name = name
		return d
	}
	more := func(d *deploy.Deployment) {
		d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel.more", Name: "more"})
		d.Creatures[1].Listen = append(d.Creatures[1].Listen, deploy.WireSpec{Channel: "channel.more"})
	}
	for _, c := range []struct {
		name       string
		first, two *deploy.Deployment // the second as it is applied in the second run
		lead       func(s *saved, one, two *engine.Applied)
		channel    string // of the second deployment, in the second run
		want       string
	}{
		{"unified with another's", named("one"), named("two"), func(s *saved, one, two *engine.Applied) {
			s.change(topology.Connect{From: one.Creatures["creature.m0"], To: two.Creatures["creature.m1"], Name: "c1", OnCollision: topology.Unify})
		}, "channel.c1", "c1:7\n"},
		{"another's", named("one", more), named("two", more), func(s *saved, one, two *engine.Applied) {
			s.change(topology.Connect{From: one.Creatures["creature.m0"], To: two.Creatures["creature.m1"], Name: "c1"})
		}, "channel.more", "more:7\n"},
		{"nobody's", named("one"), named("two", more), func(s *saved, _, two *engine.Applied) {
			s.change(topology.Connect{From: two.Creatures["creature.m0"], To: two.Creatures["creature.m1"], Name: "more"})
		}, "channel.more", "more:7\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			c.lead(s, s.apply(c.first), s.apply(named("two")))
			s.shut()
			s.open()
			again, err := s.ApplyAll(t.Context(), c.two, c.first)
			if err != nil {
				t.Fatal(err)
			}
			s.send(again[0].Channels[c.channel], "7")
			s.wait()
			if got := s.state(again[0].Creatures["creature.m1"], "heard"); got != c.want {
				t.Errorf("m1 heard %q, want %q", got, c.want)
			}
			s.sound(s.archive())
		})
	}
}

// The recipe determines the aliases of its channels, even if another channel has the alias by
// then. The backlog is not lost.
func TestARecipeGivesChannelsOtherAliases(t *testing.T) {
	sends := func(wires ...deploy.WireSpec) func(*deploy.Deployment) {
		return func(d *deploy.Deployment) { d.Creatures[0].Send = wires }
	}
	straight := sends(deploy.WireSpec{Channel: "channel.c1", Alias: "x"}, deploy.WireSpec{Channel: "channel.c2", Alias: "y"})
	crossed := sends(deploy.WireSpec{Channel: "channel.c1", Alias: "y"}, deploy.WireSpec{Channel: "channel.c2", Alias: "x"})
	plain := sends(deploy.WireSpec{Channel: "channel.c1"}, deploy.WireSpec{Channel: "channel.c2"})
	extra := func(s *saved, a *engine.Applied) {
		s.change(topology.Connect{From: a.Creatures["creature.m0"], To: a.Creatures["creature.m2"], Name: "extra", Alias: "c1"})
	}
	for _, c := range []struct {
		name          string
		first, second func(*deploy.Deployment)
		meanwhile     func(*saved, *engine.Applied)
		last          bool // what was changed meanwhile stays
		want          map[string]string
	}{
		{"swapped", straight, crossed, nil, false, map[string]string{"y": "c1", "x": "c2"}},
		{"swapped, with the last topology", straight, crossed, nil, true, map[string]string{"y": "c1", "x": "c2"}},
		{"left out", straight, plain, nil, false, map[string]string{"c1": "c1", "c2": "c2"}},
		{"taken meanwhile", straight, plain, extra, false, map[string]string{"c1": "c1", "c2": "c2"}},
		{"taken meanwhile by what stays", straight, plain, extra, true, map[string]string{"c1": "c1", "c2": "c2", "extra": "extra"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			first := team(3, c.first)
			one := s.apply(first)
			if c.meanwhile != nil {
				c.meanwhile(s, one)
			}
			s.change(topology.SetStopped{ID: one.Creatures["creature.m2"], Stopped: true})
			s.send(one.Channels["channel.c2"], "7")
			s.wait()
			s.shut()
			s.open()
			second := team(3, c.second)
			second.Creatures[2].Stopped = false
			if c.last {
				second.Last = first
			}
			two := s.apply(second)
			if got := s.sendAliases(two.Creatures["creature.m0"]); !maps.Equal(got, c.want) {
				t.Errorf("m0 sends on %v, want %v", got, c.want)
			}
			s.change(topology.SetStopped{ID: two.Creatures["creature.m2"]})
			s.wait()
			if got := s.state(two.Creatures["creature.m2"], "heard"); got != "c2:7\n" {
				t.Errorf("m2 heard %q", got)
			}
			s.sound(s.archive())
		})
	}
}

// sendAliases are the names of the channels that a creature sends on, by alias.
func (s *saved) sendAliases(id journal.CreatureID) map[string]string {
	out := map[string]string{}
	for _, g := range s.status() {
		for _, c := range g.Creatures {
			for alias, ch := range c.Aliases.Send {
				at := slices.IndexFunc(g.Channels, func(o inspect.ChannelStatus) bool { return o.ID == ch })
				if c.ID == id {
					out[alias] = g.Channels[at].Name
				}
			}
		}
	}
	return out
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
		t.Errorf("a counted to %q, want 2", got)
	}
}
