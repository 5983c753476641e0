package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/archive"
	"github.com/seed47132306/terrarium/engine/internal/closing"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/hibernation"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Options configure an [Engine]. Only Host is required.
type Options struct {
	// Host runs modules. The engine closes what it makes with the host, but not the host itself.
	Host abi.Host
	// Storage keeps session stores; nil means that every graph is volatile.
	// The engine closes the stores, but not the storage itself.
	Storage journal.Storage
	// Durability applies to graphs for which no deployment sets it. Zero means
	// [journal.Normal] if there is a Storage.
	Durability journal.Durability
	// Load reads a module by its name in a [deploy.CreatureSpec]. Nil means that
	// specifications must contain the bytes of their modules.
	Load func(ctx context.Context, module string) ([]byte, error)
	// Capabilities are the kinds of capabilities that recipes can grant to creatures.
	Capabilities []capability.Kind
	// Clock tells the time; nil means the real clock.
	Clock Clock
	// ManualClock says that the caller moves Clock: [Engine.WaitIdle] does not wait for the
	// end of pauses. The caller learns of them from [Engine.NextPause].
	ManualClock bool
	// Seed, if not nil, makes the ids that the engine assigns repeatable.
	Seed *uint64
	// Workers is how many turns run at the same time; zero means one per processor.
	Workers int
	// FreshInstances runs every turn on a new instance. That shows whether creatures
	// keep something in linear memory that they should not.
	FreshInstances bool
	// Paused lets no turn and no timer run. [Engine.Restore] then restores creatures without their
	// modules. It is for tools that change a saved session, for example with [Engine.Redeliver],
	// before it is resumed. Their deliveries wait until then, and the engine is idle.
	Paused bool
	// ShutdownTimeout bounds [Engine.Close]; zero means [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// UnaccountedMemory is how many bytes the live Go heap of the process may grow beyond
	// the memory accounted to creatures. If it grows further, the engine looks for an
	// instance that holds this memory, and replaces the instance. Zero means
	// [DefaultUnaccountedMemory]; negative turns the search off.
	UnaccountedMemory int64
	// HibernateAfter is how long creatures are idle, or at the latest twice as long,
	// before they hibernate: they have no instance until their next turn. Zero means
	// [DefaultHibernateAfter]; negative means no limit.
	HibernateAfter time.Duration
	// ProcessMemory is how many bytes the process may use. When a tenth is left, creatures
	// hibernate after a second or two. Zero means the memory limit of the Go runtime, if it
	// has one; negative means no bound. With a Clock, no creature hibernates by itself.
	ProcessMemory int64
	// Log receives the engine's log output; nil discards it.
	Log *slog.Logger
}

// Engine runs creatures. Its methods may be called from any goroutine. Methods that
// change the topology run one after the other, and block while stores are cut.
type Engine struct {
	*archive.Archive // the sessions of its session directory
	core             core
	// judgedOutside counts messages from outside; see outsideSeed.
	judgedOutside atomic.Uint64

	workers     sync.WaitGroup
	callerTurns callerTurns
	cancel      context.CancelFunc // ends the workers' context
	end         *closing.Shutdown
	// shutdownTimeout is Options.ShutdownTimeout, or its default.
	shutdownTimeout time.Duration
	// applying is held by a call that applies deployments or restores graphs. Such
	// calls run one after the other.
	applying chan struct{}
}

// WaitIdle waits until no timer is due, no delivery is runnable, no turn is running and no failed
// delivery waits for another attempt. Deliveries of stopped and quarantined creatures do not
// count, nor do any in a paused engine. It returns the error deadline if ctx ends first.
func (e *Engine) WaitIdle(ctx context.Context) error {
	ended, closed := e.core.idle.Await(ctx, e.core.closing, e.callTimers)
	switch {
	case closed:
		return errtext.Closed
	case ended:
		return errtext.NotIdle(context.Cause(ctx))
	}
	return nil
}

// callTimers calls the timers that are due, and returns how many have been called since
// the engine was started. A paused engine calls none.
func (e *Engine) callTimers() uint64 {
	if e.core.paused {
		return 0
	}
	_, called := e.core.timers.CallDue()
	return called
}

// NextTimer returns the time until the next timer is due: that of a creature, the deadline
// of a request, or the end of a pause. It is not positive if the timer is due already.
// Callers cannot work this out from the clock, because the time of a session may be ahead
// of it. In a paused engine, no timer is due.
func (e *Engine) NextTimer() (wait time.Duration, ok bool) {
	return e.core.until(e.core.timers.Next())
}

// NextPause returns the time until the next pause ends, after which a failed delivery is
// tried again or a creature over its rate continues.
func (e *Engine) NextPause() (wait time.Duration, ok bool) {
	return e.core.until(e.core.timers.NextPause())
}

func (e *core) until(at time.Time, ok bool) (time.Duration, bool) {
	if !ok || e.paused {
		return 0, false
	}
	return at.Sub(e.clock.Now()), true
}

// DeadLetterCount returns how many deliveries have become dead letters since the
// engine was started.
func (e *Engine) DeadLetterCount() int64 { return e.core.deadLetters.Load() }

// DefaultHibernateAfter is the default of [Options.HibernateAfter].
const DefaultHibernateAfter = hibernation.DefaultAfter

// DefaultShutdownTimeout is the default of [Options.ShutdownTimeout].
const DefaultShutdownTimeout = 30 * time.Second
