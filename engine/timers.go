package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// timerEffect is a timer that the turn sets or cancels.
type timerEffect struct {
	name    string
	delay   time.Duration
	period  time.Duration
	payload []byte
	cancel  bool
}

// TimerSet implements [abi.Turn].
func (t *turn) TimerSet(name []byte, delay, period time.Duration, payload []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	limits := &t.c.limits
	switch {
	case int64(len(name)) > limits.StateKey:
		return t.fail(abi.TooLarge, "use a shorter name", "the name of the timer has %d bytes; the limit state_key is %d", len(name), limits.StateKey)
	case len(name) == 0 || !utf8.Valid(name) || slices.Contains(name, 0):
		return t.fail(abi.InvalidArgument, "use another name", "the name of a timer is UTF-8 without NUL and not empty")
	case delay < 0 || period < 0:
		return t.fail(abi.InvalidArgument, "use 0 or more", "a timer's delay and period are not negative")
	case int64(len(payload)) > limits.Message:
		return t.fail(abi.TooLarge, "keep it in the state", "the payload has %d bytes; the limit message is %d", len(payload), limits.Message)
	}
	return t.putTimer(timerEffect{name: string(name), delay: delay, period: period, payload: slices.Clone(payload)})
}

// TimerCancel implements [abi.Turn].
func (t *turn) TimerCancel(name []byte) (existed bool, code abi.Code) {
	if code := t.effect(); code != abi.OK {
		return false, code
	}
	if int64(len(name)) > t.c.limits.StateKey {
		return false, abi.OK
	}
	if existed, _ = t.hasTimer(string(name)); !existed {
		return false, abi.OK
	}
	code = t.putTimer(timerEffect{name: string(name), cancel: true})
	return code == abi.OK, code
}

// putTimer replaces what the turn has done to a timer before.
func (t *turn) putTimer(x timerEffect) abi.Code {
	limits := &t.c.limits
	at, again := slices.BinarySearchFunc(t.timers, x.name, func(x timerEffect, name string) int { return cmp.Compare(x.name, name) })
	set, others := t.hasTimer(x.name)
	held := others.bytes + int64(len(x.name)+len(x.payload))
	switch {
	case x.cancel && again && !t.persists(x.name):
		t.timers = slices.Delete(t.timers, at, at+1) // as if it had never been set
		return abi.OK
	case x.cancel:
	case !set && others.count >= limits.Timers:
		return t.overLimit("timers", int64(limits.Timers))
	case held > limits.TimerBytes:
		return t.overLimit("timer_bytes", limits.TimerBytes)
	}
	if again {
		t.timers[at] = x
	} else {
		t.timers = slices.Insert(t.timers, at, x)
	}
	return abi.OK
}

// persists reports whether a timer was set before the turn.
func (t *turn) persists(name string) bool {
	_, ok := t.timersBefore()[name]
	return ok
}

// timersBefore are the timers that were set when the turn first asked for one, with
// the bytes of each. Timers ring meanwhile, but a turn sees the same ones all the
// time, and pays for looking at them once.
func (t *turn) timersBefore() map[string]int {
	if t.before != nil {
		return t.before
	}
	g := t.c.home.lock()
	if g == nil {
		return nil
	}
	defer g.mu.Unlock()
	t.before = make(map[string]int, len(t.c.timers))
	for name, a := range t.c.timers {
		size := len(name) + len(a.row.Payload)
		t.before[name] = size
		t.beforeBytes += int64(size)
	}
	return t.before
}

// heldTimers are timers that are set.
type heldTimers struct {
	count int
	bytes int64 // of their names and payloads
}

// hasTimer says whether a timer is set, and what the others amount to, as the
// turn sees it.
func (t *turn) hasTimer(name string) (set bool, others heldTimers) {
	before := t.timersBefore()
	others = heldTimers{len(before), t.beforeBytes}
	leave := func(other string) (was bool) {
		size, was := before[other]
		if was {
			others.count--
			others.bytes -= int64(size)
		}
		return was
	}
	changed := false
	for i := range t.timers {
		x := &t.timers[i]
		leave(x.name)
		switch {
		case x.name == name:
			set, changed = !x.cancel, true
		case !x.cancel:
			others.count++
			others.bytes += int64(len(x.name) + len(x.payload))
		}
	}
	if !changed {
		set = leave(name)
	}
	return set, others
}

// alarm is a timer that a creature has set. The graph's mu guards it.
type alarm struct {
	row   journal.TimerRow
	timer *timing.Timer
	held  bool // it was due while the creature did not run
}

// arm sets a timer. The caller holds mu.
func (e *core) arm(c *creature, row journal.TimerRow) {
	a := &alarm{row: row}
	if c.timers == nil {
		c.timers = map[string]*alarm{}
	}
	c.timers[row.Name] = a
	a.timer = e.timers.At(time.Unix(0, row.Due), func() { e.ring(c, a) })
}

// disarm takes a timer away. The caller holds mu.
func (e *core) disarm(rec *journal.Record, c *creature, name string) {
	a := c.timers[name]
	if a == nil {
		return
	}
	e.timers.Stop(a.timer)
	delete(c.timers, name)
	if rec != nil {
		rec.Drop.Timers = append(rec.Drop.Timers, journal.TimerRow{Creature: c.id, Name: name})
	}
}

// ring delivers a timer that is due. A repeating one that was due several
// times meanwhile is delivered once. One for which the store has no room waits, and
// so does that of a creature which has more of them than it may, or does not run: it
// would fill an inbox that nobody reads.
func (e *core) ring(c *creature, a *alarm) {
	room := e.hasRoom(c)
	wall := e.wallClock()
	g := c.home.lock()
	if g == nil {
		return
	}
	if e.isClosing() || c.timers[a.row.Name] != a {
		g.mu.Unlock()
		return
	}
	g.wall = wall
	if a.held = !c.runs(); a.held || e.ringLater(g, c, a, room) {
		g.mu.Unlock()
		return
	}
	rec := g.newRecord()
	c.pace.rung.Count(wall, 1, int64(c.limits.TimerRate))
	e.disarm(rec, c, a.row.Name)
	if p := a.row.Period; p > 0 {
		next := a.row
		next.Due += p * max(1, (wall-a.row.Due)/p+1)
		e.arm(c, next)
		if rec != nil {
			rec.Timers = append(rec.Timers, next)
		}
	}
	headers, _ := journal.EncodeHeaders(map[string]string{headerTimer: a.row.Name})
	m := newMessage(a.row.Payload, headers)
	m.kind = abi.KindTimer
	var w waker
	g.post(rec, &w, c, m, journal.EventID{}, journal.EventID{})
	c.charge(g, rec.Size())
	g.append(rec)
	g.mu.Unlock()
	w.flush(e)
}

// ringHeld has the timers ring that were due while a creature did not run. The caller
// holds mu.
func (e *core) ringHeld(c *creature) {
	for _, name := range slices.Sorted(maps.Keys(c.timers)) {
		if a := c.timers[name]; a.held {
			a.held = false
			a.timer = e.timers.At(time.Unix(0, a.row.Due), func() { e.ring(c, a) })
		}
	}
}

// Timers returns the timers that a creature has set, by name.
func (e *Engine) Timers(creature journal.CreatureID) ([]journal.TimerRow, error) {
	c, g, err := e.core.lockCreature(creature)
	if err != nil {
		return nil, err
	}
	defer g.mu.Unlock()
	rec := &journal.Record{}
	putAsks(rec, c)
	return rec.Timers, nil
}
