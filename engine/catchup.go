package engine

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// SubscribeAfter is [Engine.Subscribe] for somebody who goes on behind a cursor:
// what the session stores have behind it comes first, and then what happens, each
// event once. Events that no store keeps come only from when they are watched.
//
// The stores are read by [Subscription.Next], so that nobody waits for it. It
// answers unsupported where there is no session directory, and not_found for a
// cursor of another one.
func (e *Engine) SubscribeAfter(ctx context.Context, f Filter, after journal.EventCursor, buffer int) (*Subscription, error) {
	if e.core.storage == nil {
		return nil, &abi.Error{
			Code: abi.Unsupported, Op: "subscribe", Message: "nothing is kept that could be caught up on",
			Remedy: "use a session directory, or leave after out",
		}
	}
	replay, err := journal.NewReplay(ctx, journal.ChronicleOf(e.core.storage.Storage), after, nil)
	if err != nil {
		return nil, err
	}
	s := e.newSubscription(f, buffer)
	s.replay, s.at = replay, replay.Position()
	return s, nil
}

// Cursor says where to continue behind what Next answered last; without a
// session directory it is empty. It belongs to the goroutine that calls Next.
func (s *Subscription) Cursor() journal.EventCursor {
	if s.e.storage == nil {
		return ""
	}
	if s.replay != nil {
		return s.replay.Cursor()
	}
	s.tidy()
	return s.at.Cursor()
}

// catchUp answers the next event that the stores have, or neither that nor an
// error when the rest is in the ring.
//
// It reads until nothing is left, has the ring filled from then on, and reads
// what was logged in between. If the ring is full before that is done, it begins
// again from where it is.
func (s *Subscription) catchUp(ctx context.Context) (ob Observed, ok bool, err error) {
	for {
		if s.isClosed() {
			return ob, false, errSubscriptionClosed
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
				return Observed{Seq: s.e.observers.seq.Add(1), Event: ev}, true, nil
			}
		case !s.attached:
			s.attach()
			s.attached, s.floor = true, s.e.here().Marks
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

// errSubscriptionClosed ends a subscription.
var errSubscriptionClosed = &abi.Error{Code: abi.Stopped, Op: "subscribe", Message: "the subscription is closed"}

// isClosed reports whether the subscription or the engine is closed.
func (s *Subscription) isClosed() bool {
	o := &s.e.observers
	o.mu.RLock()
	defer o.mu.RUnlock()
	closed, _ := s.ring.Closed()
	return closed || o.closed
}

// passEvent moves the position behind an event of the ring. It reports whether the
// event is to be handed out: those that came before the floor have been read in
// the stores, or were there before the subscription.
func (s *Subscription) passEvent(ob *Observed) bool {
	if ob.Event.Kind == journal.EventLagged {
		lagged := journal.LaggedPayload{Missed: ob.Missed}
		if s.e.storage != nil {
			lagged.Cursor = s.at.Cursor()
		}
		ob.Event.Payload = journal.JSON(lagged)
		return true
	}
	log := ob.log
	if log.session == "" {
		return true
	}
	if floor, known := s.floor[log.session]; known && floor.Covers(&ob.Event) {
		return false
	}
	s.at.Marks[log.session] = journal.Mark{Event: ob.Event.ID, Since: log.since}
	return true
}

// here is the position behind everything that has been logged. Whoever attaches
// to the observers before it is called misses nothing: what is being logged is
// in the position or comes to the ring, or both.
func (e *core) here() journal.Position {
	l := e.rlock()
	defer l.runlock()
	p := journal.Position{Through: e.storage.Last(), Marks: map[journal.SessionID]journal.Mark{}}
	for _, g := range l.graphs {
		g.mu.Lock()
		if g.store != nil {
			p.Marks[g.source.session] = journal.Mark{Event: journal.EventID{Origin: g.origin, Seq: g.seq}, Since: g.source.since}
		}
		g.mu.Unlock()
	}
	for _, d := range l.saved {
		p.Marks[d.Session] = journal.Mark{Since: d.LastTime}
	}
	return p
}

// tidyFrom is the number of marks from which on it is worth while to look for a
// shorter position: every cut adds marks, and those of ended sessions stay.
func tidyFrom(p *journal.Position) int { return 2*len(p.Marks) + 8 }

// tidy replaces the position by that of the engine, if it has grown and there is
// nothing between the two.
func (s *Subscription) tidy() {
	if len(s.at.Marks) < s.tidyAt {
		return
	}
	here := s.e.here()
	if s.ring.Empty() {
		s.at, s.tidyAt = here, tidyFrom(&here)
	}
}

// loadSuccessors finds out what became of the graphs of earlier runs.
func (e *core) loadSuccessors(ctx context.Context) error {
	list, err := journal.ChronicleOf(e.storage.Storage).Catalogue(ctx)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		e.storage.SetLast(list[len(list)-1].Session)
	}
	for old, id := range journal.NewSuccession(list) {
		e.successors.Store(old, id)
	}
	return nil
}

// became reports whether a graph went into others, of which the last given is
// one.
func (e *core) became(old, id journal.GraphID) bool {
	for next, ok := e.successors.Load(old); ok; next, ok = e.successors.Load(next) {
		if next.(journal.GraphID) == id {
			return true
		}
	}
	return false
}
