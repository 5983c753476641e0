package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/deque"
)

// hibernate makes those creatures hibernate that have had no turn since the last call. It
// takes the section of a graph for one creature at a time, so that no turn waits for more.
func (e *core) hibernate(ctx context.Context) {
	l := e.rlock()
	all := slices.Collect(maps.Values(l.creatures))
	l.runlock()
	for _, c := range all {
		if e.isClosing() {
			return
		}
		if g := c.home.enter(); !g.none() {
			instance := c.fallAsleep(g)
			g.leave()
			e.closeUnused(ctx, c, instance)
		}
	}
}

// fallAsleep makes the creature hibernate if it is idle and has had no turn since the last
// call. It returns the instance, which is to be closed without creature_stop: that is for a
// creature that ends. What the creature needs again is made when its next turn begins.
func (c *creature) fallAsleep(g section) abi.Instance {
	turns := c.counters.Turns + c.counters.Failures + 1
	if c.swept != turns || !c.runs(g) {
		c.swept = turns
		return nil
	}
	instance := c.takeIdle(g)
	if instance != nil {
		c.running = running{asleep: true, swept: turns}
		c.sight.view, c.glance = nil, glance{reads: c.reads}
		if g.store == nil && c.state != nil && c.state.Len() == 0 {
			c.state = nil
		}
		if c.mb.window.Len() == 0 {
			c.mb.window = deque.Deque[delivery]{}
		}
	}
	return instance
}

// takeIdle takes the instance from a creature that no worker or holder owns. It returns nil
// if there is none.
func (c *creature) takeIdle(section) (instance abi.Instance) {
	if !c.scheduled && c.hold == nil {
		instance, c.instance = c.instance, nil
	}
	return instance
}
