package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/failures"
	"github.com/seed47132306/terrarium/engine/internal/heapwatch"
	"github.com/seed47132306/terrarium/engine/internal/idle"
	"github.com/seed47132306/terrarium/engine/internal/ids"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/internal/outbound"
	"github.com/seed47132306/terrarium/engine/internal/runqueue"
	"github.com/seed47132306/terrarium/engine/internal/serialstore"
	"github.com/seed47132306/terrarium/engine/internal/stopping"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// core is the part of the engine that turns, changes and graphs need. It refers only to graphs and
// their members. Code that refers to turns or changes belongs to them, or to the [Engine].
type core struct {
	host           abi.Host
	storage        *serialstore.Storage // nil: every graph is volatile
	load           func(context.Context, string) ([]byte, error)
	clock          *timing.Steady
	manualClock    bool                       // see Options.ManualClock
	heap           *heapwatch.Watch[creature] // nil: none
	sampled        bool                       // workers read the clock from time to time
	durability     journal.Durability
	freshInstances bool
	paused         bool
	log            *slog.Logger
	ids            *ids.Source

	queue   *runqueue.Queue[creature]
	idle    idle.Counter
	timers  *timing.Timers
	jitter  func(max time.Duration) time.Duration
	closing chan struct{} // closed when Close begins
	closes  atomic.Bool   // the same, for frequent checks

	stops       stopping.Rules // the conditions of recipes
	observers   observe.Observers
	deadLetters atomic.Int64
	callers     sync.Map // EventID of an outside request: chan callerAnswer
	spawnable   sync.Map // by deployment: its []AwareSpecies
	policies    sync.Map // by deployment: its Policy, if any
	outbound    *outbound.Outbound
	failed      failures.Policies
	shapes      atomic.Uint64 // the last shape that a graph got

	mutation mutation
}

// releaseModule closes a module that is no longer in use.
func (e *core) releaseModule(ctx context.Context, m abi.Module) {
	if err := m.Close(ctx); err != nil {
		e.log.Debug("closing a module", "sha256", m.Info().SHA256, "error", err)
	}
}

// discardInstance closes the instance of a creature, if it has one, without running creature_stop.
func (e *core) discardInstance(ctx context.Context, c *creature) {
	e.closeUnused(ctx, c, c.instance)
	c.instance = nil
}

// closeUnused closes an instance that a creature no longer has; nil is none. Its failure is
// ignored, because the instance is no longer used.
func (e *core) closeUnused(ctx context.Context, c *creature, instance abi.Instance) {
	if instance == nil {
		return
	}
	if err := instance.Close(ctx); err != nil {
		e.log.Debug("closing an instance", "creature", c.id, "error", err)
	}
}

// Clock tells the time and waits. It may be set while the engine uses it: the engine takes
// the times of its events and timers from a [timing.Steady].
type Clock = timing.Clock

// wallClock reads the clock; see [graph.enterAt].
func (e *core) wallClock() int64 { return e.clock.Nanoseconds() }

func (e *core) isClosing() bool { return e.closes.Load() }
