package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TimerSet implements [abi.Turn].
func (t *turn) TimerSet(name []byte, delay, period time.Duration, payload []byte) abi.Code {
	t.lookAtTimers()
	return t.Own.TimerSet(name, delay, period, payload)
}

// TimerCancel implements [abi.Turn].
func (t *turn) TimerCancel(name []byte) (existed bool, code abi.Code) {
	t.lookAtTimers()
	return t.Own.TimerCancel(name)
}

// lookAtTimers copies the set of timers, once in a turn.
func (t *turn) lookAtTimers() {
	if t.ReadOnly || t.KnowsTimers() {
		return
	}
	if g := t.c.home.enter(); !g.none() {
		defer g.leave()
		before := make(map[string]int, len(t.c.timers))
		for name, a := range t.c.timers {
			before[name] = len(name) + len(a.row.Payload)
		}
		t.KnowTimers(before)
	}
}

// arm sets a timer.
func (g section) arm(c *creature, row journal.TimerRow) {
	a := &alarm{row: row}
	if c.timers == nil {
		c.timers = map[string]*alarm{}
	}
	c.timers[row.Name] = a
	e := g.engine
	a.timer = e.timers.At(time.Unix(0, row.Due), func() { e.ring(c, a) })
}

// disarm removes a timer.
func (g section) disarm(rec *journal.Record, c *creature, name string) {
	a := c.timers[name]
	if a == nil {
		return
	}
	g.engine.timers.Stop(a.timer)
	delete(c.timers, name)
	if rec != nil {
		rec.Drop.Timers = append(rec.Drop.Timers, journal.TimerRow{Creature: c.id, Name: name})
	}
}

// ring delivers a timer that is due. A repeating timer that became due several times meanwhile is
// delivered once. A timer waits if the store has no room for it, if the creature exceeds its timer
// rate, or if the creature does not run, because the timer would fill an inbox that is not read.
func (e *core) ring(c *creature, a *alarm) {
	room := e.hasRoom(c)
	wall := e.wallClock()
	g := c.home.enterAt(wall)
	if g.none() {
		return
	}
	if e.isClosing() || c.timers[a.row.Name] != a {
		g.leave()
		return
	}
	if a.held = !c.runs(g); a.held || g.ringLater(c, a, room) {
		g.leave()
		return
	}
	rec := g.newRecord()
	c.pace.Rung.Count(wall, 1, int64(c.limits.TimerRate))
	g.disarm(rec, c, a.row.Name)
	if p := a.row.Period; p > 0 {
		next := a.row
		next.Due = timing.NextDue(a.row.Due, p, wall)
		g.arm(c, next)
		if rec != nil {
			rec.Timers = append(rec.Timers, next)
		}
	}
	headers, _ := journal.EncodeHeaders(map[string]string{message.HeaderTimer: a.row.Name})
	m := message.New(a.row.Payload, headers)
	m.Kind = abi.KindTimer
	var w waker
	g.post(rec, &w, c, m, journal.EventID{}, journal.EventID{})
	c.charge(g, rec.Size())
	g.append(rec)
	g.leave()
	w.flush(e)
}

// ringHeld delivers the timers that became due while a creature did not run.
func (g section) ringHeld(c *creature) {
	e := g.engine
	for _, name := range slices.Sorted(maps.Keys(c.timers)) {
		if a := c.timers[name]; a.held {
			a.held = false
			a.timer = e.timers.At(time.Unix(0, a.row.Due), func() { e.ring(c, a) })
		}
	}
}

// Timers returns the timers that a creature has set, by name.
func (e *Engine) Timers(creature journal.CreatureID) ([]journal.TimerRow, error) {
	c, g, err := e.core.enterCreature(creature)
	if err != nil {
		return nil, err
	}
	defer g.leave()
	rec := &journal.Record{}
	putAsks(g, rec, c)
	return rec.Timers, nil
}

// ringLater reports whether a due timer has to wait, and then schedules another try. It
// has to wait if the store has no room, or if the creature has stored, or its timers have
// fired, more than they may.
func (g section) ringLater(c *creature, a *alarm, room bool) bool {
	timers, wait := c.pace.BeforeTimer(g.wall)
	switch {
	case timers > 0:
		g.logThrottled(c, "timer_rate", int64(c.limits.TimerRate))
	case wait > 0:
		g.logThrottled(c, "store_rate", c.limits.StoreRate)
	case room:
		return false
	}
	e := g.engine
	a.timer = e.timers.After(max(wait, ringAgain), func() { e.ring(c, a) })
	return true
}
