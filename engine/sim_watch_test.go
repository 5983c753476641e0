package engine_test

import (
	"context"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// watcher is a subscriber of one engine. A crash may lose events that it has seen, so
// another one starts over.
type watcher struct {
	events *engine.Subscription // nil: there is no subscriber in this program
	seen   map[journal.EventID]bool
	last   map[journal.Origin]uint64
	old    map[journal.Origin]bool // of earlier runs
}

// startWatching subscribes to everything in every eighth program; without a subscriber,
// the engine takes other paths.
func (s *simulation) startWatching() {
	if s.seed%8 != 1 {
		return
	}
	s.watcher = watcher{
		events: s.e.Subscribe(engine.Filter{}, 0), seen: map[journal.EventID]bool{},
		last: map[journal.Origin]uint64{}, old: map[journal.Origin]bool{},
	}
	for _, ev := range s.disk.Log() {
		s.old[ev.ID.Origin] = true
	}
}

// watch reads what has been observed: each event once, those of an origin in their order.
func (s *simulation) watch() {
	if s.events == nil {
		return
	}
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	for {
		ob, err := s.events.Next(ended)
		if err != nil {
			return
		}
		if err := checkPayload(&ob.Event); err != nil {
			s.failf("the payload %s of a %s: %v", ob.Event.Payload, ob.Event.Kind, err)
		}
		id := ob.Event.ID
		switch {
		case ob.Missed > 0:
			s.failf("the subscriber has missed %d events", ob.Missed)
		case id.IsZero():
			continue // a turn that starts
		case s.seen[id]:
			s.failf("the subscriber got %s twice", id)
		case id.Seq <= s.last[id.Origin]:
			s.failf("the subscriber got %s after number %d", id, s.last[id.Origin])
		}
		s.seen[id], s.last[id.Origin] = true, id.Seq
	}
}

// checkWatched checks that the subscriber has seen all that this run has logged. Events
// that were logged when a graph entered a log were seen before, under other ids.
func (s *simulation) checkWatched(l *ledger) {
	if s.watch(); s.events == nil || len(s.bases) > 0 {
		return
	}
	for i := range l.log {
		if ev := &l.log[i]; !s.old[ev.ID.Origin] && !s.seen[ev.ID] {
			s.failf("the subscriber never got the %s %s", ev.Kind, ev.ID)
		}
	}
}
