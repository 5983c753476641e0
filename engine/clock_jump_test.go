package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// jumps are the times to which a test sets the clock of a machine, one after the other. The
// clock has no battery and begins in 1970, is set by the network, is far ahead for a moment, and
// is corrected again.
var jumps = []time.Time{
	time.Unix(5, 0),
	time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC),
	time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 11, 24, 12, 1, 0, 0, time.UTC),
	time.Unix(5, 0),
	time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC), // which nanoseconds cannot express
	time.Date(1901, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 11, 24, 13, 0, 0, 0, time.UTC),
}

func (c *handClock) set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = to
}

// TestClockThatJumps sets the clock back and forth, while the engine runs and between two
// engines. Timers fire and pauses end after the requested time, and events stay in order.
func TestClockThatJumps(t *testing.T) {
	for name, between := range map[string]func(*saved){"running": (*saved).wait, "resumed": (*saved).reopen} {
		t.Run(name, func(t *testing.T) { clockJumps(t, between) })
	}
}

func clockJumps(t *testing.T, between func(*saved)) {
	clock, h := newHandClock(), newFakeHost()
	close(clock.proceed)
	fails := 0
	h.on("ticker", func(tn abi.Turn, kind abi.Kind) error {
		switch kind {
		case abi.KindStart:
			return codeErr(tn, tn.TimerSet([]byte("tick"), 10*time.Second, 10*time.Second, nil))
		case abi.KindTimer:
			return note(tn, "rang")
		case abi.KindMessage:
			if fails++; fails%2 == 1 {
				return errors.New("not yet")
			}
			return note(tn, "tried again")
		}
		return nil
	})
	clock.set(jumps[0])
	s := newSaved(t, engine.Options{Host: h, Workers: 1, Clock: clock, ManualClock: true})
	c := s.add("c", "ticker", func(spec *deploy.CreatureSpec) {
		spec.Restart = deploy.RestartPolicy{Attempts: 3, Backoff: time.Second, BackoffMax: time.Second}
	})
	s.wait()
	for i, at := range jumps {
		clock.set(at)
		between(s)
		s.wait()
		before := s.state(c, "heard")
		if _, err := s.SendTo(t.Context(), c, engine.Outgoing{}); err != nil {
			t.Fatal(err)
		}
		s.wait()
		for range 2 { // a jump ahead may also have fired the timer
			clock.advance(10 * time.Second)
			s.wait()
		}
		heard := strings.TrimPrefix(s.state(c, "heard"), before)
		if n := strings.Count(heard, "rang"); n != 2 || strings.Count(heard, "tried again") != 1 {
			t.Errorf("20 s after the clock was set to %v (jump %d), c heard %q; want two timers, and one delivery that was tried again", at, i, heard)
		}
	}
	wantInOrder(t, s, c)
}

// wantInOrder merges the graph of a creature with another one, and checks that the history is in
// order and that no session is older than its parents.
func wantInOrder(t *testing.T, s *saved, c journal.CreatureID) {
	t.Helper()
	s.connect(s.add("other", "sink"), c, "bridge")
	s.wait()
	var last journal.Event
	for _, ev := range s.events(c) {
		if ev.Time < last.Time || ev.Time == last.Time && ev.ID.Origin == last.ID.Origin {
			t.Fatalf("event %v at %d comes after %v at %d", ev.ID, ev.Time, last.ID, last.Time)
		}
		last = ev
	}
	infos, err := s.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	created := map[journal.SessionID]int64{}
	for _, i := range infos {
		if created[i.Session] = i.Created; i.Created < jumps[0].UnixNano() {
			t.Errorf("session %s was created at %d, before the clock began", i.Session, i.Created)
		}
		for _, p := range i.Parents {
			if i.MergedAt < created[p] {
				t.Errorf("session %s was merged at %d, before its parent %s was created at %d", i.Session, i.MergedAt, p, created[p])
			}
		}
		report, err := s.storage.Verify(t.Context(), i.Session)
		if err != nil || len(report.Missing)+len(report.OutOfOrder)+len(report.Damage) > 0 {
			t.Errorf("Verify %s: %+v, %v", i.Session, report, err)
		}
	}
	if len(infos) < 3 {
		t.Errorf("%d sessions, want two parents and their child", len(infos))
	}
}
