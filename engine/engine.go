package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Clock tells the time and waits. Its methods may be called from any
// goroutine.
type Clock interface {
	Now() time.Time
	// Timer returns a channel on which the time is sent once after d, and a function
	// that stops the timer.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// Options configure an [Engine]. Only Host is required.
type Options struct {
	// Host runs modules. The engine closes what it makes with the host, but not the
	// host itself.
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
	// Clock tells the time; nil means the real clock.
	Clock Clock
	// Seed, if not nil, makes the ids that the engine assigns repeatable.
	Seed *uint64
	// Workers is how many turns run at the same time; zero means one per processor.
	Workers int
	// FreshInstances runs every turn on a new instance. That shows whether creatures
	// keep something in linear memory that they should not.
	FreshInstances bool
	// Paused lets no turn and no timer run. [Engine.Restore] then restores creatures
	// without their modules. It is for tools that change a saved session, for example
	// with [Engine.Redeliver], before it is resumed. Their deliveries wait until then.
	Paused bool
	// ShutdownTimeout bounds [Engine.Close]; zero means [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// UnaccountedMemory is how many bytes the live Go heap of the process may grow
	// beyond the memory accounted to creatures. If it grows further, the engine looks
	// for an instance that holds them and replaces it. Zero means
	// [DefaultUnaccountedMemory]; negative turns the search off.
	UnaccountedMemory int64
	// Log receives the engine's log output; nil discards it.
	Log *slog.Logger
}

// Engine runs creatures. Its methods may be called from any goroutine. Methods that
// change the topology run one after the other, and block while stores are cut.
type Engine struct {
	core    core
	exports journal.Exporter // the storage, if it can export; else nil
	// judgedOutside counts messages from outside; see outsideSeed.
	judgedOutside atomic.Uint64

	workers sync.WaitGroup
	cancel  context.CancelFunc // ends the workers' context
	end     closing
	// shutdownTimeout is Options.ShutdownTimeout, or its default.
	shutdownTimeout time.Duration
	// applying is held by a call that applies deployments or restores graphs. Such
	// calls run one after the other.
	applying chan struct{}
}

// New starts an engine. Saved graphs in Storage stay as they are until [Engine.Apply]
// resumes or [Engine.Restore] restores them.
//
// ctx bounds only the start.
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := assemble(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Paused {
		e.cancel = func() {}
		return e, nil
	}
	count := o.Workers
	if count <= 0 {
		count = runtime.GOMAXPROCS(0)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	e.workers.Go(e.core.timers.Run)
	workers := make([]*turnWorker, count)
	for i := range workers {
		workers[i] = newWorker(&e.core, e.core.queue.AddLane())
	}
	for _, w := range workers {
		e.workers.Go(func() { w.run(run) })
	}
	return e, nil
}

// assemble makes an engine in which nothing runs yet.
func assemble(ctx context.Context, o Options) (*Engine, error) {
	if o.Host == nil {
		return nil, errtext.Invalid("new", "an engine needs a host", "set Options.Host")
	}
	if o.ShutdownTimeout < 0 {
		return nil, errtext.Invalid("new", "the shutdown timeout is negative", "leave Options.ShutdownTimeout zero for the default")
	}
	e := &Engine{
		core: core{mutation: mutation{registry: newRegistry()}}, end: closing{over: make(chan struct{})}, shutdownTimeout: cmp.Or(o.ShutdownTimeout, DefaultShutdownTimeout),
		applying: make(chan struct{}, 1),
	}
	e.exports, _ = o.Storage.(journal.Exporter)
	c := &e.core
	c.init(&o)
	l := c.lock() // no other goroutine has it yet
	defer l.unlock()
	if err := l.loadSaved(ctx); err != nil {
		return nil, err
	}
	c.timers = timing.New(c.clock)
	return e, nil
}

// shutDown is Close without a time limit, called when no further turn can begin.
func (e *Engine) shutDown(ctx context.Context) error {
	e.core.timers.Close()
	e.workers.Wait()
	e.cancel()

	e.applying <- struct{}{} // wait until a running Apply or Restore has stopped
	defer func() { <-e.applying }()
	l := e.core.lock()
	defer l.unlock()
	l.closed = true
	closeInstances(ctx, l)
	errs := []error{e.end.closeStores(ctx, l)}
	e.core.observers.Close()
	for _, c := range l.creatures {
		errs = append(errs, c.module.Close(ctx))
	}
	e.core.closeTemplates(ctx, slices.Collect(maps.Values(l.templates)))
	for _, d := range l.deployments {
		e.core.closePolicy(d.Policy)
	}
	for _, p := range l.former {
		e.core.closePolicy(p)
	}
	return errors.Join(errs...)
}

// closeInstances closes every instance. The workers have ended, so no goroutine uses
// one.
func closeInstances(ctx context.Context, e locked) {
	t := &turn{e: e.core}
	for c := range e.queue.Rest() { // some may have been removed
		if c.home.load() == nil && c.instance != nil {
			stopInstance(ctx, t, c, c.instance)
			c.instance = nil
		}
	}
	for _, graph := range e.sortedGraphs() {
		g := graph.enter()
		creatures, readers := g.sortedCreatures(), slices.Clone(g.readers)
		g.leave()
		for _, c := range creatures {
			if c.instance != nil {
				stopInstance(ctx, t, c, c.instance)
				c.instance = nil
			}
		}
		for _, r := range readers {
			r.signal()
		}
	}
}

// sortedGraphs returns the live graphs, oldest first.
func (e locked) sortedGraphs() []*graph {
	out := make([]*graph, 0, len(e.graphs))
	for _, g := range e.graphs {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *graph) int { return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id)) })
	return out
}

// WaitIdle waits until no timer is due, no delivery is runnable, no turn is running and
// no failed delivery waits for another attempt. Deliveries of stopped and quarantined
// creatures do not count. It returns the error deadline if ctx ends first.
func (e *Engine) WaitIdle(ctx context.Context) error {
	for {
		before := e.callTimers()
		busy := e.core.idle.Wait()
		if busy == nil {
			// A turn that ended meanwhile may have set a timer that is due already.
			if e.callTimers() == before {
				return nil
			}
			continue
		}
		select {
		case <-busy:
		case <-e.core.closing:
			return errtext.Closed
		case <-ctx.Done():
			return &abi.Error{
				Code: abi.Deadline, Op: "wait_idle", Message: "the engine did not become idle in time",
				Remedy: "wait longer; status shows which creatures are busy", Err: context.Cause(ctx),
			}
		}
	}
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

// DeadLetterCount returns how many deliveries have become dead letters since the
// engine was started.
func (e *Engine) DeadLetterCount() int64 { return e.core.deadLetters.Load() }
