package engine_test

import (
	"fmt"
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
		t.Errorf("%d turns ran while it was paused", turns-before)
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

// A creature without its module seems to be stopped. Changes that cut the stores save it
// as it was nevertheless, so that it runs again with its module; and if it is stopped or
// started meanwhile, it is saved so.
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
