package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/journal"
)

type (
	// Filter selects events.
	Filter = observe.Filter
	// Subscription is a bounded view of the events from its start on.
	Subscription = observe.Subscription
	// Observed is an event as a subscriber gets it.
	Observed = observe.Observed
)

// The number of events that a subscription holds for a slow subscriber: the default and
// the maximum.
const (
	DefaultSubscriptionBuffer = observe.DefaultBuffer
	MaxSubscriptionBuffer     = observe.MaxBuffer
)

// Subscribe starts a subscription. buffer is the number of events held for a slow
// subscriber, at most [MaxSubscriptionBuffer]; zero means [DefaultSubscriptionBuffer].
// The caller must close the subscription.
func (e *Engine) Subscribe(f Filter, buffer int) *Subscription {
	return e.core.observers.Subscribe(f, buffer, nil)
}

// SubscribeAfter is [Engine.Subscribe] for a subscriber that continues after a cursor.
// First it gets the stored events after the cursor, then new ones as they happen, each
// event once. Events that no store keeps are shown only from the time of the call on.
//
// [Subscription.Next] reads the stores, so that reading delays nothing else. SubscribeAfter
// returns unsupported if there is no session directory, and not_found for a cursor of another one.
func (e *Engine) SubscribeAfter(ctx context.Context, f Filter, after journal.EventCursor, buffer int) (*Subscription, error) {
	if e.core.storage == nil {
		return nil, errtext.NoCatchUp
	}
	replay, err := journal.NewReplay(ctx, journal.ChronicleOf(e.core.storage.Storage), after, nil)
	if err != nil {
		return nil, err
	}
	return e.core.observers.Subscribe(f, buffer, replay), nil
}

// here is the position after everything that has been logged.
func (e *core) here() journal.Position {
	l := e.rlock()
	defer l.runlock()
	p := journal.Position{Through: e.storage.Last(), Marks: map[journal.SessionID]journal.Mark{}}
	for _, graph := range l.graphs {
		g := graph.enter()
		if g.store != nil {
			p.Marks[g.source.Session] = journal.Mark{Event: journal.EventID{Origin: g.origin, Seq: g.seq}, Since: g.source.Since}
		}
		g.leave()
	}
	for _, d := range l.saved {
		p.Marks[d.Session] = journal.Mark{Since: d.LastTime}
	}
	return p
}

// loadSuccessors reads the successors of the graphs of earlier runs.
func (e *core) loadSuccessors(ctx context.Context) error {
	last, err := e.observers.LoadSuccessors(ctx, journal.ChronicleOf(e.storage.Storage))
	if last != "" {
		e.storage.SetLast(last)
	}
	return err
}

func (e *core) publishTurnStarted(c *creature, d delivery) {
	g := c.home.load()
	if g == nil {
		return
	}
	e.observers.Begin(&journal.Event{
		Time: e.wallClock(), Kind: journal.EventTurnStarted, Graph: g.id, Creature: c.id,
		Attempt: c.attempt + 1, Channel: d.msg.Channel, Seq: d.msg.Seq, Cause: d.msg.ID,
	}, d.msg.Time)
}

// noteInstance logs that a creature got a new instance.
func (w *turnWorker) noteInstance(c *creature) {
	wall := w.e.wallClock()
	g := c.home.enterAt(wall)
	if g.none() {
		return
	}
	defer g.leave()
	rec := g.newRecord()
	if rec == nil && !w.e.observers.Wants(journal.EventInstanceStarted) {
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
		Reason: reason, ModuleSHA256: c.module.Info().SHA256, Engine: c.module.Info().Engine, Count: c.instances.Load(),
	})}
}
