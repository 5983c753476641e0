package observe

import (
	"sync"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// running has the turns that have begun while a subscription wanted to know how long turns
// take. Each creature has at most one turn at a time.
type running struct {
	mu    sync.Mutex // guards turns
	turns map[journal.CreatureID]begun
}

// begun has the time when a turn has begun, and the time when the message of its delivery
// was sent.
type begun struct{ at, sent int64 }

// maxRunning bounds the turns that are remembered. Those of creatures that were removed
// meanwhile never end.
const maxRunning = 1 << 16

// Times reports whether turns are measured: a subscription wants to know about their ends.
func (o *Observers) Times() bool {
	return o.Wants(journal.EventTurnEnded) || o.Wants(journal.EventTurnFailed)
}

// Begin publishes the event of a turn that has begun, and notes its time and the time at
// which the message of its delivery was sent. When the turn ends, [Observers.Publish]
// says how long it took. The turn replaces a turn of the creature that has not ended.
func (o *Observers) Begin(ev *journal.Event, sent int64) {
	o.Publish(ev, Source{})
	if o.Times() {
		o.running.begin(ev.Creature, begun{at: ev.Time, sent: sent})
	}
}

func (r *running) begin(c journal.CreatureID, b begun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns == nil || len(r.turns) >= maxRunning {
		r.turns = map[journal.CreatureID]begun{}
	}
	r.turns[c] = b
}

// end returns how long the turn that an event ends has taken, and how long its delivery
// had waited. For other events and turns both are 0.
func (r *running) end(ev *journal.Event) (took, waited time.Duration) {
	if ev.Kind != journal.EventTurnEnded && ev.Kind != journal.EventTurnFailed {
		return 0, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.turns[ev.Creature]
	if !ok {
		return 0, 0
	}
	delete(r.turns, ev.Creature)
	if b.sent > 0 {
		waited = time.Duration(max(b.at-b.sent, 0))
	}
	return time.Duration(max(ev.Time-b.at, 0)), waited
}

// forget forgets all turns.
func (r *running) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = nil
}
