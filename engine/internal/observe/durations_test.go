package observe

import (
	"strconv"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
)

// ended publishes that a turn of a creature has ended, and returns what a subscription gets.
func ended(t *testing.T, o *Observers, s *Subscription, kind journal.EventKind, at int64) Observed {
	t.Helper()
	o.Publish(&journal.Event{Kind: kind, Creature: "c", Time: at}, Source{})
	ob, err := s.Next(t.Context())
	if err != nil || ob.Event.Kind != kind {
		t.Fatalf("%+v, %v", ob, err)
	}
	return ob
}

// A turn is measured once, whether it succeeds or fails, if a subscription wants its end.
func TestDurations(t *testing.T) {
	o := &Observers{}
	s := o.Subscribe(Filter{Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}}, 8, nil)
	begin := func(at, sent int64) {
		o.Begin(&journal.Event{Kind: journal.EventTurnStarted, Creature: "c", Time: at}, sent)
	}
	begin(100, 40)
	if ob := ended(t, o, s, journal.EventTurnEnded, 130); ob.Took != 30 || ob.Waited != 60 {
		t.Errorf("took %d, waited %d", ob.Took, ob.Waited)
	}
	if ob := ended(t, o, s, journal.EventTurnEnded, 140); ob.Took != 0 || ob.Waited != 0 {
		t.Errorf("a turn whose start was not observed took %d and waited %d", ob.Took, ob.Waited)
	}
	begin(200, 0) // a start has no message
	begin(220, 0) // it was postponed, and begins again
	if ob := ended(t, o, s, journal.EventTurnFailed, 221); ob.Took != 1 || ob.Waited != 0 {
		t.Errorf("took %d, waited %d", ob.Took, ob.Waited)
	}
	begin(300, 400) // the clock of the log is ahead
	if ob := ended(t, o, s, journal.EventTurnEnded, 290); ob.Took != 0 || ob.Waited != 0 {
		t.Errorf("took %d, waited %d", ob.Took, ob.Waited)
	}
	begin(400, 400)
	s.Close()
	if o.running.turns != nil || o.Times() {
		t.Error("turns are remembered, although no subscription wants their durations")
	}
}

// If creatures are removed in the middle of their turns, these turns do not fill the memory.
func TestRunningTurnsAreBounded(t *testing.T) {
	o := &Observers{}
	s := o.Subscribe(Filter{Kinds: []journal.EventKind{journal.EventTurnEnded}}, 8, nil)
	defer s.Close()
	for i := range maxRunning + 10 {
		o.Begin(&journal.Event{Kind: journal.EventTurnStarted, Creature: journal.CreatureID(strconv.Itoa(i)), Time: 1}, 1)
	}
	if n := len(o.running.turns); n != 10 {
		t.Errorf("%d turns are remembered, want 10", n)
	}
}

// Every kind has its own place in a set of kinds.
func TestKindsAreDistinct(t *testing.T) {
	var all kindSet
	for _, k := range journal.EventKinds() {
		if setOf(k) == 0 || all&setOf(k) != 0 {
			t.Errorf("the kind %v shares its place, or has none", k)
		}
		all |= setOf(k)
	}
	if setOf(200) != 0 {
		t.Error("a kind that does not exist has a place")
	}
}
