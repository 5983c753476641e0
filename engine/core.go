package engine

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/failures"
	"github.com/seed47132306/terrarium/engine/internal/heapwatch"
	"github.com/seed47132306/terrarium/engine/internal/idle"
	"github.com/seed47132306/terrarium/engine/internal/ids"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/internal/runqueue"
	"github.com/seed47132306/terrarium/engine/internal/serialstore"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// core is what turns, changes and graphs need of the engine that they are in. It refers
// to graphs and their members only: code that refers to a turn or a change belongs to
// these, or to the [Engine].
type core struct {
	host           abi.Host
	storage        *serialstore.Storage // nil: every graph is volatile
	load           func(context.Context, string) ([]byte, error)
	clock          Clock
	heap           *heapwatch.Watch[creature] // nil: none
	sampled        bool                       // workers ask the clock once in a while
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
	closes  atomic.Bool   // the same, for code that asks often

	observers   observe.Observers
	deadLetters atomic.Int64
	callers     sync.Map // EventID of a request from outside: chan callerAnswer
	spawnable   sync.Map // of deployments: their []AwareSpecies
	policies    sync.Map // of deployments: their Policy, if they have one
	failed      failures.Policies
	shapes      atomic.Uint64 // the last one that a graph was given

	mutation mutation
}

// init gives the core what the options say.
func (e *core) init(o *Options) {
	e.host, e.load, e.clock, e.freshInstances, e.paused, e.log = o.Host, o.Load, o.Clock, o.FreshInstances, o.Paused, o.Log
	e.jitter, e.queue, e.closing = rand.N[time.Duration], runqueue.New[creature](), make(chan struct{})
	e.heap = e.newHeapWatch(o.UnaccountedMemory)
	var here func() journal.Position
	if o.Storage != nil {
		e.storage, here = serialstore.Of(o.Storage), e.here
	}
	e.observers.Init(e.wallClock, here)
	if e.clock == nil {
		e.clock, e.sampled = timing.Real{}, true
	}
	if e.log == nil {
		e.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	switch e.durability = o.Durability; {
	case o.Storage == nil:
		e.durability = journal.Volatile
	case o.Durability == journal.Volatile:
		e.durability = journal.Normal
	}
	e.ids = ids.New(o.Seed)
}

// closePolicy lets go of what a policy holds, if it holds anything.
func (e *core) closePolicy(p deploy.Policy) {
	if closer, ok := p.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			e.log.Debug("closing policies", "error", err)
		}
	}
}

// releaseModule gives up a creature's module.
func (e *core) releaseModule(c *creature) {
	if err := c.module.Close(context.Background()); err != nil {
		e.log.Debug("closing a module", "creature", c.id, "error", err)
	}
}
