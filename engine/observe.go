package engine

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/ring"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Filter selects events. Empty lists do not restrict; what is given combines
// with AND. A graph matches by any id it has had.
type Filter struct {
	Kinds     []journal.EventKind
	Creatures []journal.CreatureID
	Graphs    []journal.GraphID
	Channels  []journal.ChannelID
}

// DefaultSubscriptionBuffer is how many events a subscription holds for a slow
// subscriber unless it asks for another number.
const DefaultSubscriptionBuffer = 4096

// MaxSubscriptionBuffer is the most events that a subscription holds.
const MaxSubscriptionBuffer = 1 << 20

// Subscription is a bounded view of the events from its start on. It never
// slows the engine: when its buffer is full, events are left out, and an event
// of the kind lagged says how many.
//
// Next is called by one goroutine at a time; Close by any.
type Subscription struct {
	e      *core
	filter Filter
	kinds  uint32 // bit set of the kinds wanted

	// What follows belongs to the goroutine that calls Next; see catchup.go.
	at       journal.Position                   // behind what Next answered last
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

	log logSource // that has the event; zero if none has
}

// observers is the set of subscriptions.
type observers struct {
	kinds atomic.Uint32 // union of what subscriptions want
	seq   atomic.Uint64
	// mu guards what follows.
	mu     sync.RWMutex
	subs   []*Subscription
	closed bool // the engine is closed: nothing more is going to happen
}

// Subscribe starts observing. buffer is the number of events held for a slow
// subscriber, at most [MaxSubscriptionBuffer]; zero means
// [DefaultSubscriptionBuffer]. The caller must close
// the subscription.
func (e *Engine) Subscribe(f Filter, buffer int) *Subscription {
	s := e.newSubscription(f, buffer)
	s.attach()
	if e.core.storage != nil {
		s.at = e.core.here()
		s.floor, s.tidyAt = maps.Clone(s.at.Marks), tidyFrom(&s.at)
	}
	return s
}

func (e *Engine) newSubscription(f Filter, buffer int) *Subscription {
	if buffer <= 0 {
		buffer = DefaultSubscriptionBuffer
	}
	buffer = min(buffer, MaxSubscriptionBuffer)
	s := &Subscription{e: &e.core, filter: f, ring: ring.New[Observed](buffer)}
	for _, k := range f.Kinds {
		s.kinds |= 1 << k
	}
	if len(f.Kinds) == 0 {
		s.kinds = 1<<journal.NumEventKinds - 1
	}
	return s
}

// Next waits for the next event. It answers stopped when the subscription or
// the engine has been closed and everything has been read.
func (s *Subscription) Next(ctx context.Context) (Observed, error) {
	for {
		if s.replay != nil {
			if ob, ok, err := s.catchUp(ctx); ok || err != nil {
				return ob, err
			}
		}
		if ob, ok := s.takeEvent(); ok {
			if s.passEvent(&ob) {
				return ob, nil
			}
			continue
		}
		if _, ended := s.ring.Closed(); ended {
			return Observed{}, &abi.Error{Code: abi.Stopped, Op: "subscribe", Message: "the subscription is closed"}
		}
		select {
		case <-s.ring.News():
		case <-ctx.Done():
			return Observed{}, context.Cause(ctx)
		}
	}
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
		ob = Observed{Seq: s.e.observers.seq.Add(1), Event: journal.Event{Kind: journal.EventLagged}, Missed: missed}
		ob.Event.Time = s.e.clock.Now().UnixNano()
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
	o := &s.e.observers
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		s.ring.Close()
		return
	}
	o.subs = append(o.subs, s)
	o.kinds.Store(o.kinds.Load() | s.kinds)
}

// detach undoes attach.
func (s *Subscription) detach() {
	o := &s.e.observers
	o.mu.Lock()
	o.subs = without(slices.Clone(o.subs), s)
	var kinds uint32
	for _, other := range o.subs {
		kinds |= other.kinds
	}
	o.kinds.Store(kinds)
	o.mu.Unlock()
}

// close ends all subscriptions.
func (o *observers) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, s := range o.subs {
		s.ring.Close()
	}
}

// observed reports whether anybody wants events of a kind. It is on the path
// of every delivery.
func (e *core) observed(k journal.EventKind) bool { return e.observers.kinds.Load()&(1<<k) != 0 }

// observedAny reports whether anybody wants any events.
func (e *core) observedAny() bool { return e.observers.kinds.Load() != 0 }

// publish shows an event to the subscriptions. Once a store or a subscriber
// has it, an event is not modified. It is called in the critical section in
// which the event got its place, so that subscribers see the order of the log.
// log is the one that has it, or zero if none has.
func (e *core) publish(ev *journal.Event, log logSource) {
	if !e.observed(ev.Kind) {
		return
	}
	o := &e.observers
	o.mu.RLock()
	defer o.mu.RUnlock()
	var seq uint64
	for _, s := range o.subs {
		if !s.wants(ev) {
			continue
		}
		if seq == 0 {
			seq = o.seq.Add(1)
		}
		s.ring.Offer(Observed{Seq: seq, Event: *ev, log: log})
	}
}

func (s *Subscription) wants(ev *journal.Event) bool {
	f := &s.filter
	switch {
	case s.kinds&(1<<ev.Kind) == 0:
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

// wantsGraph also matches ids that a graph had before a merge: what became of
// the graph asked for, and what that came from.
func (s *Subscription) wantsGraph(id journal.GraphID) bool {
	return slices.ContainsFunc(s.filter.Graphs, func(g journal.GraphID) bool {
		return g == id || s.e.became(g, id) || s.e.became(id, g)
	})
}

func (e *core) publishTurnStarted(c *creature, d delivery) {
	g := c.home.load()
	if g == nil {
		return
	}
	e.publish(&journal.Event{
		Time: e.clock.Now().UnixNano(), Kind: journal.EventTurnStarted, Graph: g.id, Creature: c.id,
		Attempt: c.attempt + 1, Channel: d.msg.channel, Seq: d.msg.seq, Cause: d.msg.id,
	}, logSource{})
}

// noteInstance logs that a creature got a new instance.
func (w *turnWorker) noteInstance(c *creature) {
	wall := w.e.wallClock()
	g := c.home.lock()
	if g == nil {
		return
	}
	defer g.mu.Unlock()
	g.wall = wall
	rec := g.newRecord()
	if rec == nil && !w.e.observed(journal.EventInstanceStarted) {
		return
	}
	reason := journal.StartFirst
	if c.instances.Load() > 1 {
		reason = journal.StartReplaced
	}
	if c.attempt > 0 {
		reason = journal.StartRetry
	}
	g.log(rec, c.instanceStarted(reason))
	g.append(rec)
}

// instanceStarted is the event that says why the creature has a new instance.
func (c *creature) instanceStarted(reason journal.StartReason) journal.Event {
	return journal.Event{Kind: journal.EventInstanceStarted, Creature: c.id, Payload: journal.JSON(journal.InstanceStartedPayload{
		Reason: reason, ModuleSHA256: c.module.Info().SHA256, Count: c.instances.Load(),
	})}
}
