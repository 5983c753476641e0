package timing

import (
	"context"
	"time"
)

const (
	// storeGrace is how much a creature may store at once, in time at its rate, so that a
	// creature that was idle may work off its backlog.
	storeGrace = 10 * time.Second
	timerGrace = time.Second
	// changePause is how long a creature that has changed its graph waits while the storage is
	// behind.
	changePause = 2 * time.Second
	// throttledLogInterval is the interval between log lines that say that a creature waits.
	throttledLogInterval = time.Minute
)

// Pace keeps a creature from filling a store, or the memory in front of it, faster than
// its limits allow. What it stores is counted when it is logged, and the creature waits
// when that was too much. Nothing is refused or lost. The graph's mu guards it.
type Pace struct {
	Stored  Meter
	Rung    Meter // timer deliveries
	Hasty   bool  // it has changed its graph while the storage was behind
	lastLog int64 // time of the last log line, in nanoseconds since 1970
}

// AfterTurn returns how long the creature has to wait because of what it has stored, and how
// long it has to wait in all.
func (p *Pace) AfterTurn(now int64) (stored, all time.Duration) {
	stored = p.Stored.Wait(now, storeGrace)
	all = stored
	if p.Hasty {
		p.Hasty, all = false, max(stored, changePause)
	}
	return stored, all
}

// BeforeTimer returns how long a due timer has to wait because of the timers that have fired,
// and how long it has to wait in all.
func (p *Pace) BeforeTimer(now int64) (timers, all time.Duration) {
	timers = p.Rung.Wait(now, timerGrace)
	return timers, max(timers, p.Stored.Wait(now, storeGrace))
}

// Tell reports whether it is time to say again that the creature waits.
func (p *Pace) Tell(now int64) bool {
	if p.lastLog != 0 && now-p.lastLog < int64(throttledLogInterval) {
		return false
	}
	p.lastLog = now
	return true
}

// Ended is a context that has ended.
var Ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
