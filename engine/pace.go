package engine

import (
	"fmt"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ringAgain is the delay before a due timer is tried again while the store has no room.
const ringAgain = 20 * time.Millisecond

// charge counts what is logged for a creature.
func (c *creature) charge(g section, bytes int64) {
	if bytes > 0 {
		c.pace.Stored.Count(g.wall, bytes, c.limits.StoreRate)
	}
}

// throttle makes a creature wait if it has stored more than it may, or changed its graph while
// the storage is behind. The worker owns the creature.
func (w *turnWorker) throttle(g section, c *creature) {
	wait, pause := c.pace.AfterTurn(g.wall)
	if pause == 0 || c.backingOff || !c.runs(g) {
		return
	}
	if wait > 0 {
		g.logThrottled(c, "store_rate", c.limits.StoreRate)
	}
	g.backOff(c, pause)
}

// logThrottled writes to the creature's log that a limit makes it wait.
func (g section) logThrottled(c *creature, limit string, rate int64) {
	c.counters.Throttled++
	if !c.pace.Tell(g.wall) {
		return
	}
	text := fmt.Sprintf("the limit %s (%d per second) is reached, and the creature waits; raise the limit or store less", limit, rate)
	g.engine.log.Warn("a creature waits", "creature", c.id, "name", c.name, "limit", limit, "rate", rate)
	rec := g.newRecord()
	g.logLines(rec, journal.Event{Creature: c.id}, []effects.Line{{Level: abi.LevelWarn, Text: text, Engine: true}})
	g.append(rec)
}

// hasRoom reports, without waiting, whether the store of a creature's graph has room for
// a record. The caller is in no critical section.
func (e *core) hasRoom(c *creature) bool {
	g := c.home.enter()
	if g.none() {
		return true // the caller notices
	}
	store := g.store
	g.leave()
	return store == nil || store.Room(timing.Ended) == nil || !c.home.logsTo(store)
}
