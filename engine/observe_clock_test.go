package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// tickingClock advances by a second at every reading.
type tickingClock struct {
	stillClock
	ticks atomic.Int64
}

func (c *tickingClock) Now() time.Time {
	return c.stillClock.Now().Add(time.Duration(c.ticks.Add(1)) * time.Second)
}

// Workers read the clock only once in a while. Nevertheless, a turn does not end before it
// starts, and its last event says how long the turn took and how long its delivery waited.
func TestATurnEndsAfterItHasStarted(t *testing.T) {
	h := newFakeHost()
	h.fuel = 10
	w := newWorld(t, engine.Options{Host: h, Clock: &tickingClock{}})
	w.SampleClock()
	a := w.add("a", "sink")
	in := w.connect(a, a, "in")
	sub := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTurnStarted, journal.EventTurnEnded, journal.EventChannelMessage}}, 1000)
	defer sub.Close()
	const turns = 50
	for range turns {
		w.send(in, "x")
	}
	started, sent := map[uint64]int64{}, map[uint64]int64{}
	for ended := 0; ended < turns; {
		ob, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ev := ob.Event
		switch {
		case ev.Seq == 0: // the creature_init of the creature
		case ev.Kind == journal.EventChannelMessage:
			sent[ev.Seq] = ev.Time
		case ev.Kind == journal.EventTurnStarted:
			started[ev.Seq] = ev.Time
		default:
			ended++
			if begin := started[ev.Seq]; begin == 0 || ev.Time < begin {
				t.Errorf("turn %d started at %d and ended at %d", ev.Seq, begin, ev.Time)
			}
			if took, waited := ev.Time-started[ev.Seq], started[ev.Seq]-sent[ev.Seq]; int64(ob.Took) != took || int64(ob.Waited) != waited {
				t.Errorf("turn %d says that it took %v after %v, want %v after %v", ev.Seq, ob.Took, ob.Waited, time.Duration(took), time.Duration(waited))
			}
		}
	}
}
