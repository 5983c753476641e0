package engine

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// holding is the set of creatures that one caller holds.
type holding struct {
	e    *core
	held map[*creature]*hold
}

// claim says why a creature is to be held.
type claim struct {
	waits  bool // wait for the end of its turn; otherwise it is not held if it is in a turn
	closes bool // it gets another instance
}

// holdAll holds creatures, waits for the end of their current turns, and closes the
// instances of those that get new ones. The caller has its turn to apply. The mutation
// lock is free meanwhile, because turns that change the graph need it to end.
func (e *Engine) holdAll(ctx context.Context, creatures map[*creature]claim) (*holding, error) {
	h := &holding{e: &e.core, held: map[*creature]*hold{}}
	e.core.idle.Add(1) // their waiting deliveries will be handled
	for c, claim := range creatures {
		g := c.home.enter()
		if g.none() {
			continue
		}
		if claim.waits || !c.owned {
			c.hold = &hold{quiet: make(chan struct{})}
			h.held[c] = c.hold
		}
		if !c.owned {
			c.hold.handOver(g)
		}
		g.leave()
	}
	for c, held := range h.held {
		select {
		case <-held.quiet:
		case <-e.core.closing:
			h.release(ctx)
			return nil, errtext.Closed
		case <-ctx.Done():
			h.release(ctx)
			return nil, errtext.StillInTurn(c.id, context.Cause(ctx))
		}
	}
	for c := range h.held {
		if creatures[c].closes {
			(&turn{e: h.e}).stop(ctx, c)
		}
	}
	return h, nil
}

// has reports whether the creature is held.
func (h *holding) has(c *creature) bool { return h != nil && h.held[c] != nil }

// release lets the creatures continue. The instance of a creature that was removed
// meanwhile is closed.
func (h *holding) release(ctx context.Context) {
	if h == nil {
		return
	}
	var wake waker
	for c, held := range h.held {
		g := c.home.enter()
		if !g.none() {
			if c.hold = nil; !c.scheduled && c.cold(g) && c.instance != nil && !h.e.paused {
				c.scheduled = true // for a worker to close its instance
				wake.Add(c, &h.e.idle)
			}
			c.wake(g, &wake)
			g.leave()
			continue
		}
		select {
		case <-held.quiet:
			(&turn{e: h.e}).stop(ctx, c)
		default: // a worker owns it, and does that
		}
	}
	wake.flush(h.e)
	h.e.idle.Add(-1)
}

// backOff keeps a creature from running for a while.
func (g section) backOff(c *creature, d time.Duration) {
	e := g.engine
	c.backingOff = true
	e.countPause(1)
	e.timers.AfterPause(d, func() {
		g := c.home.enter()
		if g.none() {
			return // the removal has already adjusted the count
		}
		var w waker
		if c.backingOff {
			c.backingOff = false
			c.wake(g, &w)
			e.countPause(-1)
		}
		g.leave()
		w.flush(e)
	})
}

// countPause counts the creatures that pause. A pending retry is not idle, unless it would
// wait for a clock that the caller moves.
func (e *core) countPause(n int64) {
	if !e.manualClock {
		e.idle.Add(n)
	}
}
