package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// While an engine is paused nothing runs and no module is loaded. A redelivered message
// is delivered by the next engine, and timers are unchanged.
func TestAPausedEngineOnlyChangesWhatIsSaved(t *testing.T) {
	h := newFakeHost()
	s := newSaved(t, engine.Options{Host: h, Workers: 1})
	broken, turns := true, 0
	h.on("fragile", func(tn abi.Turn, kind abi.Kind) error {
		turns++
		switch {
		case kind == abi.KindStart:
			return codeErr(tn, tn.TimerSet([]byte("later"), time.Hour, 0, []byte("ring")))
		case broken:
			return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
		}
		payload, _ := tn.Source(abi.SourcePayload)
		return note(tn, string(payload))
	})
	c := s.add("c", "fragile", func(spec *deploy.CreatureSpec) { spec.Restart.Mode = deploy.RestartNever })
	failed := s.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventCreatureFailed}}, 0)
	in := s.connect(c, c, "in")
	s.send(in, "precious")
	s.wait()
	failed.Close()
	n := 0
	for ev := range failed.All(t.Context()) {
		n++
		if ev.Event.Creature != c || ev.Event.Attempt != 1 || len(ev.Event.Payload) == 0 {
			t.Errorf("creature_failed is %+v", ev)
		}
	}
	if n != 1 {
		t.Errorf("%d events creature_failed, want 1", n)
	}
	s.shut()

	s.o.Paused = true
	before := turns
	s.open()
	s.restore()
	letters, err := s.DeadLetters(t.Context(), s.graph(c), "", journal.EventID{}, 0)
	if err != nil || len(letters) == 0 {
		t.Fatalf("dead letters: %v, %v", letters, err)
	}
	for _, l := range letters {
		if _, err := s.Redeliver(t.Context(), s.graph(c), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	s.shut()
	if turns != before {
		t.Errorf("%d turns ran while the engine was paused", turns-before)
	}

	s.o.Paused, broken = false, false
	s.open()
	s.restore()
	s.wait()
	if got := s.state(c, "heard"); got != "precious\n" {
		t.Errorf("c heard %q", got)
	}
	if rows, err := s.Timers(c); err != nil || len(rows) != 1 {
		t.Errorf("c has the timers %v, %v; want one", rows, err)
	}
	if st := s.status()[0].Creatures[0].State; st != "running" {
		t.Errorf("c is %s", st)
	}
}

// A creature without its module appears as stopped. Changes that cut the stores nevertheless
// save it as it was, so that it runs again with its module. If it is stopped or started
// meanwhile, that is saved.
func TestACreatureWithoutItsModuleIsSavedAsItWas(t *testing.T) {
	for _, without := range []string{"paused", "broken"} {
		t.Run(without, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			relays := func(h *fakeHost) {
				h.on("own", func(tn abi.Turn, kind abi.Kind) error {
					if kind == abi.KindStart {
						return nil
					}
					payload, _ := tn.Source(abi.SourcePayload)
					return status(tn, tn.Send(abi.AllChannels, payload, nil))
				})
			}
			relays(s.host)
			a, b, c, d := s.add("a", "own"), s.add("b", "own"), s.add("c", "record"), s.add("d", "record")
			in := s.connect(a, a, "in")
			s.change(topology.SetEdge{Creature: a, Channel: in, Direction: journal.Send, On: false})
			ab, _, bd := s.connect(a, b, "ab"), s.connect(b, c, "bc"), s.connect(b, d, "bd")
			s.change(topology.SetStopped{ID: c, Stopped: true})
			s.wait()
			s.shut()
			s.o.Paused = without == "paused"
			s.open()
			if _, problems, err := s.Restore(t.Context()); err != nil || len(problems) != map[string]int{"paused": 0, "broken": 2}[without] {
				t.Fatalf("Restore: %v, problems %v", err, problems)
			}
			s.change(topology.RemoveChannel{ID: ab})
			s.change(topology.SetStopped{ID: b, Stopped: true})
			s.change(topology.Connect{From: a, To: b, Name: "again"})
			s.change(topology.SetStopped{ID: c, Stopped: false})
			s.change(topology.RemoveChannel{ID: bd})
			s.send(in, "kept")
			s.wait()
			s.shut()

			s.o.Paused = false
			s.open()
			relays(s.host)
			s.restore()
			s.wait()
			states := map[string]journal.CreatureState{}
			for _, g := range s.status() {
				for _, m := range g.Creatures {
					states[m.Name] = m.State
				}
			}
			same(t, "the states are", fmt.Sprint(states), "map[a:running b:stopped c:running d:running]")
			s.change(topology.SetStopped{ID: b, Stopped: false})
			s.wait()
			same(t, "c heard", s.state(c, "heard"), "bc:kept\n")
		})
	}
}

// The creatures of a paused engine have nothing to do, whatever waits for them. The engine is
// idle after every change, and the next engine that runs handles what waits.
func TestAPausedEngineIsIdle(t *testing.T) {
	h := newFakeHost()
	h.exports["curious"] = []string{"creature_handle", abi.ExportGraphChanged}
	starts := map[string]int{}
	for _, name := range []string{"curious", "starting"} {
		h.on(name, func(_ abi.Turn, kind abi.Kind) error {
			if kind == abi.KindStart {
				starts[name]++
			}
			return nil
		})
	}
	s := newSaved(t, engine.Options{Host: h, Workers: 1})
	stopped := func(spec *deploy.CreatureSpec) { spec.Stopped = true }
	from := s.add("from", "relay")
	never, behind, gone := s.add("never", "starting", stopped), s.add("behind", "record"), s.add("gone", "starting", stopped)
	toBehind := s.connect(from, behind, "news")
	s.connect(from, never, "more")
	s.connect(from, gone, "less")
	s.wait()
	s.change(topology.SetStopped{ID: behind, Stopped: true})
	s.send(toBehind, "waits")
	s.shut()

	s.o.Paused = true
	s.open()
	s.restore()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	idle := func(after string) {
		t.Helper()
		if err := s.WaitIdle(now); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	idle("the restoration")
	s.change(topology.SetStopped{ID: never, Stopped: false})
	idle("the start of a creature that never ran")
	s.change(topology.SetStopped{ID: behind, Stopped: false})
	idle("the start of a creature with a backlog")
	s.send(toBehind, "follows")
	idle("a message")
	s.change(topology.SetStopped{ID: gone, Stopped: false})
	s.change(topology.RemoveCreature{ID: gone})
	idle("a removal")
	added := s.add("added", "curious")
	s.connect(from, added, "late")
	idle("an addition, with news of the graph")
	s.replace(from, "relay")
	idle("a replacement of a module")
	if _, err := s.Tool(now, never, "group_status", nil); abi.CodeOf(err) != abi.Stopped || !strings.Contains(fmt.Sprint(err), "paused") {
		t.Errorf("Tool: %v, want stopped", err)
	}
	idle("the call of a tool")
	s.shut()
	w := newWorld(t, engine.Options{Paused: true})
	w.send(w.apply(team(3)).Channels["channel.c0"], "unheard")
	if err := w.WaitIdle(now); err != nil {
		t.Errorf("after a recipe, without stores: %v", err)
	}
	same(t, "the starts while it was paused are", starts, map[string]int{})

	s.o.Paused = false
	s.reopen()
	s.wait()
	same(t, "behind heard", s.state(behind, "heard"), "news:waits\nnews:follows\n")
	same(t, "the starts are", starts, map[string]int{"curious": 1, "starting": 1})
}
