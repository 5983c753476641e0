package engine_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// continued is a program outside of the engine that reads the events of a directory across cuts
// and crashes. It uses one subscription after the other, each of which continues after the
// cursor of the one before. It requests every event or those of some kinds, and its buffers are
// small.
type continued struct {
	reader *engine.Subscription // nil: the program does not read now, or never does
	cursor journal.EventCursor  // "": the program never reads
	kinds  []journal.EventKind
	got    map[journal.EventID]bool
	last   map[journal.Origin]uint64
	latest int64 // the latest time of an event
	lost   int64 // latest at the time of the last crash
	chance *rand.Rand
}

// followEvents starts reading in every eighth program.
func (s *simulation) followEvents() {
	if s.seed%8 != 5 {
		return
	}
	s.onward = continued{
		cursor: journal.FromStart, got: map[journal.EventID]bool{}, last: map[journal.Origin]uint64{},
		chance: rand.New(rand.NewPCG(s.seed, 4)),
	}
	if s.onward.chance.IntN(2) == 0 {
		s.onward.kinds = []journal.EventKind{journal.EventChannelMessage, journal.EventTurnEnded, journal.EventDeadLetter, journal.EventLagged}
	}
}

// startOnward resets everything but the cursor, which is all that remains of a process that has
// died.
func (s *simulation) startOnward() {
	s.onward.reader, s.onward.lost = nil, s.onward.latest
	s.keepAhead()
}

// keepAhead keeps the clock ahead of what crashes may have lost after it was read. A
// clock that is set back before that deceives the cursor; see engine.Mark.
func (s *simulation) keepAhead() {
	if behind := s.onward.lost - s.clock.Now().UnixNano(); behind >= 0 && s.onward.cursor != "" {
		s.clock.Advance(time.Duration(behind + 1))
	}
}

// follow reads a few events, stops reading, or starts again.
func (s *simulation) follow() {
	if s.onward.cursor == "" {
		return
	}
	switch s.onward.chance.IntN(8) {
	case 0, 1:
		s.readOn(s.onward.chance.IntN(40))
	case 2:
		s.readOn(1000)
	case 3:
		if s.onward.reader != nil {
			s.onward.reader.Close()
			s.onward.reader = nil
		}
	}
}

// readOn reads up to n events, if there are as many.
func (s *simulation) readOn(n int) {
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	for range n {
		if s.onward.reader == nil {
			sub, err := s.e.SubscribeAfter(s.ctx, engine.Filter{Kinds: s.onward.kinds}, s.onward.cursor, 1+s.onward.chance.IntN(30))
			if err != nil {
				s.failf("SubscribeAfter: %v", err)
			}
			s.onward.reader = sub
		}
		ob, err := s.onward.reader.Next(ended)
		if err != nil {
			return
		}
		s.takeOn(&ob)
	}
}

// takeOn notes one event, or continues after missed ones.
func (s *simulation) takeOn(ob *engine.Observed) {
	id := ob.Event.ID
	switch {
	case ob.Event.Kind == journal.EventLagged:
		var lagged journal.LaggedPayload
		if err := json.Unmarshal(ob.Event.Payload, &lagged); err != nil || lagged.Missed != ob.Missed || lagged.Missed == 0 {
			s.failf("lagged says %s for %d missed events: %v", ob.Event.Payload, ob.Missed, err)
		}
		s.onward.reader.Close()
		s.onward.reader, s.onward.cursor = nil, lagged.Cursor
		return
	case id.IsZero():
		return // a turn that starts
	case s.onward.got[id]:
		s.failf("the continuing subscriber got the %s %s twice", ob.Event.Kind, id)
	case id.Seq <= s.onward.last[id.Origin]:
		s.failf("the continuing subscriber got the %s %s after number %d", ob.Event.Kind, id, s.onward.last[id.Origin])
	}
	s.onward.latest = max(s.onward.latest, ob.Event.Time)
	s.onward.got[id], s.onward.last[id.Origin] = true, id.Seq
	s.onward.cursor = s.onward.reader.Cursor()
}

// checkFollowed checks that a subscriber that continued got everything that is logged.
// Events that were logged when a graph entered a log were seen before, under other ids.
func (s *simulation) checkFollowed() {
	if s.onward.cursor == "" {
		return
	}
	s.readOn(1_000_000)
	if len(s.bases) > 0 {
		return
	}
	log := s.disk.Log()
	for i := range log {
		if ev := &log[i]; (s.onward.kinds == nil || slices.Contains(s.onward.kinds, ev.Kind)) && !s.onward.got[ev.ID] {
			s.failf("the continuing subscriber never got the %s %s", ev.Kind, ev.ID)
		}
	}
}
