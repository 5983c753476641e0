// Package observe shows events to subscribers, from now on or from a moment in the past.
package observe

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/ring"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Filter selects events. Empty lists do not restrict; other lists combine with AND. A
// graph matches by any id that it has had.
type Filter struct {
	Kinds     []journal.EventKind
	Creatures []journal.CreatureID
	Graphs    []journal.GraphID
	Channels  []journal.ChannelID
}

// DefaultBuffer is how many events a subscription holds for a slow
// subscriber unless it asks for another number.
const DefaultBuffer = 4096

// MaxBuffer is the largest number of events that a subscription holds.
const MaxBuffer = 1 << 20

// Subscription is a bounded view of the events from its start on. It never
// slows the engine: when its buffer is full, events are left out, and an event
// of the kind lagged says how many.
//
// Next and Poll are called by one goroutine at a time; Close by any.
type Subscription struct {
	o      *Observers
	filter Filter
	kinds  kindSet // wanted

	// What follows belongs to the goroutine that calls Next or Poll.
	at       journal.Position                   // after what Next or Poll returned last
	floor    map[journal.SessionID]journal.Mark // what came before the first event of the ring
	replay   *journal.Replay                    // what is to be read of the stores first; nil when that is done
	attached bool                               // events as they happen go to the ring
	tidyAt   int                                // how many marks there are when it is time to look for fewer

	ring *ring.Ring[Observed]
}

// Observed is an event as a subscriber gets it.
type Observed struct {
	// Seq numbers everything that was observed in this run of the engine; it
	// means nothing in another.
	Seq   uint64
	Event journal.Event
	// Missed is the number of events left out, for the kind lagged.
	Missed uint64
	// For turn_ended and turn_failed, how long the turn took, and how long its delivery had
	// waited before, from the time of its message on. Both are 0 if no subscription wanted
	// these kinds when the turn began, and for events from the stores.
	Took, Waited time.Duration

	log Source // that has the event; zero if none has
}

// Observers is the set of subscriptions.
type Observers struct {
	kinds atomic.Uint64 // the kindSet that is the union of what subscriptions want
	seq   atomic.Uint64
	// mu guards what follows.
	mu     sync.RWMutex
	subs   []*Subscription
	closed bool // the engine is closed: nothing more is going to happen

	running running // turns that are measured

	Successors sync.Map // of ended GraphIDs: the GraphID they became part of
	now        func() int64
	here       func() journal.Position // nil: nothing is kept
}

// Source says in whose log an event is; see [journal.Mark].
type Source struct {
	Session journal.SessionID
	Since   int64 // the time of the last event before the log was opened
}

// Init sets what observers need of the engine: the clock, and, if there is a session
// directory, the position after everything that has been logged. A caller that attaches a
// subscription and then reads the position misses nothing: an event that is being logged
// meanwhile is before the position, or comes to the ring, or both.
func (o *Observers) Init(now func() int64, here func() journal.Position) { o.now, o.here = now, here }

// Subscribe starts observing. A subscription that begins in the past gets what a replay
// has first.
func (o *Observers) Subscribe(f Filter, buffer int, replay *journal.Replay) *Subscription {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	buffer = min(buffer, MaxBuffer)
	s := &Subscription{o: o, filter: f, ring: ring.New[Observed](buffer)}
	for _, k := range f.Kinds {
		s.kinds |= setOf(k)
	}
	if len(f.Kinds) == 0 {
		s.kinds = 1<<journal.NumEventKinds - 1
	}
	if replay != nil {
		s.replay, s.at = replay, replay.Position()
		return s
	}
	s.attach()
	if o.here != nil {
		s.at = o.here()
		s.floor, s.tidyAt = maps.Clone(s.at.Marks), tidyFrom(&s.at)
	}
	return s
}

// Next waits for the next event. It returns stopped when the subscription or
// the engine has been closed and everything has been read.
func (s *Subscription) Next(ctx context.Context) (Observed, error) {
	for {
		if ob, ok, err := s.Poll(ctx); ok || err != nil {
			return ob, err
		}
		select {
		case <-s.ring.News():
		case <-ctx.Done():
			return Observed{}, context.Cause(ctx)
		}
	}
}

// Poll returns the next event, if there is one, without waiting for an event to happen.
// ctx limits how long the stores are read. Poll returns stopped when the subscription or the
// engine has been closed and everything has been read.
func (s *Subscription) Poll(ctx context.Context) (ob Observed, ok bool, err error) {
	if s.replay != nil {
		if ob, ok, err := s.catchUp(ctx); ok || err != nil {
			return ob, ok, err
		}
	}
	for {
		if ob, ok = s.takeEvent(); !ok {
			break
		}
		if s.passEvent(&ob) {
			return ob, true, nil
		}
	}
	if _, ended := s.ring.Closed(); ended {
		return Observed{}, false, errClosed
	}
	return Observed{}, false, nil
}

// All ranges over the events until ctx ends or the subscription is closed.
func (s *Subscription) All(ctx context.Context) iter.Seq[Observed] {
	return func(yield func(Observed) bool) {
		for {
			ob, err := s.Next(ctx)
			if err != nil || !yield(ob) {
				return
			}
		}
	}
}

// takeEvent takes the next event of the ring, or one that says how many are missing.
func (s *Subscription) takeEvent() (Observed, bool) {
	ob, missed, ok := s.ring.Take()
	if missed > 0 {
		ob = Observed{Seq: s.o.seq.Add(1), Event: journal.Event{Kind: journal.EventLagged}, Missed: missed}
		ob.Event.Time = s.o.now()
	}
	return ob, ok
}

// Close ends the subscription. What it holds can still be read.
func (s *Subscription) Close() {
	s.detach()
	s.ring.Close()
}

// attach makes events go to the ring from now on.
func (s *Subscription) attach() {
	o := s.o
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		s.ring.Close()
		return
	}
	o.subs = append(o.subs, s)
	o.kinds.Store(o.kinds.Load() | uint64(s.kinds))
}

// detach undoes attach.
func (s *Subscription) detach() {
	o := s.o
	o.mu.Lock()
	o.subs = slices.DeleteFunc(slices.Clone(o.subs), func(other *Subscription) bool { return other == s })
	var kinds kindSet
	for _, other := range o.subs {
		kinds |= other.kinds
	}
	o.kinds.Store(uint64(kinds))
	o.mu.Unlock()
	if !o.Times() {
		o.running.forget()
	}
}

// Close ends all subscriptions.
func (o *Observers) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, s := range o.subs {
		s.ring.Close()
	}
}

// Wants reports whether any subscriber wants events of a kind. It is on the path
// of every delivery.
func (o *Observers) Wants(k journal.EventKind) bool { return kindSet(o.kinds.Load())&setOf(k) != 0 }

// Any reports whether any subscriber wants any events.
func (o *Observers) Any() bool { return o.kinds.Load() != 0 }

// Publish shows an event to the subscriptions. Once a store or a subscriber has it, an
// event is not modified. Publish is called in the critical section in which the event got
// its place, so that subscribers see the order of the log. log is the log that has the
// event, or zero if none has it.
func (o *Observers) Publish(ev *journal.Event, log Source) {
	if !o.Wants(ev.Kind) {
		return
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	took, waited := o.running.end(ev)
	var seq uint64
	for _, s := range o.subs {
		if !s.wants(ev) {
			continue
		}
		if seq == 0 {
			seq = o.seq.Add(1)
		}
		s.ring.Offer(Observed{Seq: seq, Event: *ev, Took: took, Waited: waited, log: log})
	}
}

func (s *Subscription) wants(ev *journal.Event) bool {
	f := &s.filter
	switch {
	case s.kinds&setOf(ev.Kind) == 0:
		return false
	case len(f.Creatures) > 0 && !slices.Contains(f.Creatures, ev.Creature):
		return false
	case len(f.Channels) > 0 && !slices.Contains(f.Channels, ev.Channel):
		return false
	case len(f.Graphs) > 0 && !s.wantsGraph(ev.Graph):
		return false
	}
	return true
}

// wantsGraph also matches ids that a graph had before a merge: successors of the
// requested graph, and graphs that it came from.
func (s *Subscription) wantsGraph(id journal.GraphID) bool {
	return slices.ContainsFunc(s.filter.Graphs, func(g journal.GraphID) bool {
		return g == id || s.o.became(g, id) || s.o.became(id, g)
	})
}

// Cursor says where to continue after what Next answered last; without a
// session directory it is empty. It belongs to the goroutine that calls Next.
func (s *Subscription) Cursor() journal.EventCursor {
	if s.o.here == nil {
		return ""
	}
	if s.replay != nil {
		return s.replay.Cursor()
	}
	s.tidy()
	return s.at.Cursor()
}

// catchUp returns the next event that the stores have. It returns neither an event nor an
// error if the rest is in the ring.
//
// It reads until nothing is left, has the ring filled from then on, and reads
// what was logged in between. If the ring is full before that is done, it begins
// again from where it is.
func (s *Subscription) catchUp(ctx context.Context) (ob Observed, ok bool, err error) {
	for {
		if s.isClosed() {
			return ob, false, errClosed
		}
		ev, session, more, err := s.replay.Next(ctx)
		switch {
		case err != nil:
			return ob, false, err
		case more:
			if s.attached {
				s.floor[session] = s.replay.Position().Marks[session]
			}
			if s.wants(&ev) {
				return Observed{Seq: s.o.seq.Add(1), Event: ev}, true, nil
			}
		case !s.attached:
			s.attach()
			s.attached, s.floor = true, s.o.here().Marks
		case s.ring.Overflown():
			s.detach()
			s.ring.Clear()
			s.attached = false
		default:
			s.at, s.replay = s.replay.Position(), nil
			s.tidyAt = tidyFrom(&s.at)
			return ob, false, nil
		}
	}
}

// errClosed ends a subscription.
var errClosed = &abi.Error{Code: abi.Stopped, Op: "subscribe", Message: "the subscription is closed"}

// isClosed reports whether the subscription or the engine is closed.
func (s *Subscription) isClosed() bool {
	o := s.o
	o.mu.RLock()
	defer o.mu.RUnlock()
	closed, _ := s.ring.Closed()
	return closed || o.closed
}

// passEvent moves the position after an event of the ring. It reports whether Next
// returns the event: events before the floor have been read from the stores, or are older
// than the subscription.
func (s *Subscription) passEvent(ob *Observed) bool {
	if ob.Event.Kind == journal.EventLagged {
		lagged := journal.LaggedPayload{Missed: ob.Missed}
		if s.o.here != nil {
			lagged.Cursor = s.at.Cursor()
		}
		ob.Event.Payload = journal.JSON(lagged)
		return true
	}
	log := ob.log
	if log.Session == "" {
		return true
	}
	if floor, known := s.floor[log.Session]; known && floor.Covers(&ob.Event) {
		return false
	}
	s.at.Marks[log.Session] = journal.Mark{Event: ob.Event.ID, Since: log.Since}
	return true
}

// tidyFrom is the number of marks from which on a shorter position is worth looking for:
// every cut adds marks, and those of ended sessions stay.
func tidyFrom(p *journal.Position) int { return 2*len(p.Marks) + 8 }

// tidy replaces the position by that of the engine, if it has grown and there is
// nothing between the two.
func (s *Subscription) tidy() {
	if len(s.at.Marks) < s.tidyAt {
		return
	}
	here := s.o.here()
	if s.ring.Empty() {
		s.at, s.tidyAt = here, tidyFrom(&here)
	}
}

// became reports whether a graph became others, and id is one of these.
func (o *Observers) became(old, id journal.GraphID) bool {
	for next, ok := o.Successors.Load(old); ok; next, ok = o.Successors.Load(next) {
		if next.(journal.GraphID) == id {
			return true
		}
	}
	return false
}
