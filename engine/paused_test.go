package engine_test

import (
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
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
