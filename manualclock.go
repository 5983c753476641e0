package terrarium

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// testStart is the time at which every test begins, so that its messages have the same
// times whenever it runs.
var testStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// ManualClock is a clock that stands still until [Terrarium.Advance] moves it, for tests
// that give the same result at every run. Together with [Options.Seed] and one worker, the
// ids and times of a run are repeatable. A ManualClock serves one terrarium.
type ManualClock struct{ now atomic.Int64 }

// NewManualClock returns a clock that shows a time.
func NewManualClock(start time.Time) *ManualClock {
	c := &ManualClock{}
	c.now.Store(start.UnixNano())
	return c
}

// Now implements [engine.Clock].
func (c *ManualClock) Now() time.Time { return time.Unix(0, c.now.Load()).UTC() }

// Timer implements [engine.Clock]. The timers never fire: [engine.Engine.WaitIdle] fires
// those that have come due.
func (c *ManualClock) Timer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// set moves the clock to a time, but never backwards.
func (c *ManualClock) set(at time.Time) { c.now.Store(max(c.now.Load(), at.UnixNano())) }

// Advance moves the [ManualClock] of the terrarium. It stops at each timer on the way: the
// timer fires at its time, and what follows from it has been handled before the clock moves
// on. A failed delivery is tried again when the clock passes the end of its pause, and
// sessions are synced as often as [Options.SyncEvery] or their recipes say. Sources send what
// comes due on the way. Only one caller
// may move the clock at a time.
//
// The error is unsupported with another clock. If ctx ends first, the clock stays at the
// last timer that it has reached.
func (t *Terrarium) Advance(ctx context.Context, d time.Duration) error {
	if t.clock == nil {
		return &abi.Error{Code: abi.Unsupported, Op: "advance", Message: "the clock of the terrarium moves by itself", Remedy: "use NewManualClock as Options.Clock"}
	}
	if err := t.advance(ctx, t.clock.Now().Add(d)); err != nil {
		return err
	}
	return t.WaitIdle(ctx)
}

// advance moves the clock from timer to timer up to a time.
func (t *Terrarium) advance(ctx context.Context, until time.Time) error {
	for {
		if err := t.WaitIdle(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		wait, ok := t.nextTimer(ctx)
		at := t.clock.Now().Add(wait)
		if !ok || at.After(until) {
			t.clock.set(until)
			t.connectors.manual.Fire(connectorGrace)
			return nil
		}
		t.clock.set(at)
		t.connectors.manual.Fire(connectorGrace)
	}
}

// nextTimer returns in how much time the next timer is due, or the next sync of a session.
// Syncs that are due are made.
func (t *Terrarium) nextTimer(ctx context.Context) (wait time.Duration, ok bool) {
	wait, ok = t.engine.NextTimer()
	if at, due := t.connectors.manual.Next(connectorGrace); due && (!ok || at.Sub(t.clock.Now()) < wait) {
		wait, ok = at.Sub(t.clock.Now()), true
	}
	if dir := t.Directory(); dir != nil {
		if sync, due := dir.SyncDue(ctx); due && (!ok || sync < wait) {
			return sync, true
		}
	}
	return wait, ok
}
