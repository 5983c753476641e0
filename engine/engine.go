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
	// Timer returns a channel on which the time is sent once after d, and a
	// function that gives the timer up.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// Options configure an [Engine]. Only Host is required.
type Options struct {
	// Host runs modules. The engine closes what it makes with it, but not the
	// host itself.
	Host abi.Host
	// Storage keeps session stores; nil means that every graph is volatile.
	// The engine closes the stores, but not the storage itself.
	Storage journal.Storage
	// Durability of graphs that no deployment decides about; zero means
	// [journal.Normal] where there is a Storage.
	Durability journal.Durability
	// Load reads a module by its name in a [deploy.CreatureSpec]; nil means that
	// specifications must bring their bytes along.
	Load func(ctx context.Context, module string) ([]byte, error)
	// Clock tells the time; nil means the real one.
	Clock Clock
	// Seed, if not nil, makes the ids that the engine gives out repeatable.
	Seed *uint64
	// Workers is how many turns run at a time; zero means one per processor.
	Workers int
	// FreshInstances runs every turn on a new instance, which shows whether
	// creatures keep something in linear memory that they should not.
	FreshInstances bool
	// Paused lets nothing run: no turn, no timer. [Engine.Restore] brings
	// creatures back without their modules. It is for tools that change a saved
	// session, by [Engine.Redeliver] for instance, before somebody goes on with
	// it; what they deliver waits until then.
	Paused bool
	// ShutdownTimeout bounds [Engine.Close]; zero means [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// UnaccountedMemory is by how many bytes the live Go heap of the process may grow
	// beyond what is accounted to creatures before the engine looks for an instance
	// that holds them, and replaces it. Zero means [DefaultUnaccountedMemory]; negative
	// means that it never looks.
	UnaccountedMemory int64
	// Log gets what the engine has to say; nil discards it.
	Log *slog.Logger
}

// Engine runs creatures. Its methods may be called from any goroutine; those
// that change the topology are carried out one after the other, and block while
// stores are cut.
type Engine struct {
	core    core
	exports journal.Exporter // what the storage can do besides, or nil
	// judgedOutside counts messages from outside; see outsideSeed.
	judgedOutside atomic.Uint64

	workers sync.WaitGroup
	cancel  context.CancelFunc // ends the workers' context
	end     closing
	// shutdownTimeout is Options.ShutdownTimeout, or its default.
	shutdownTimeout time.Duration
	// applying is taken by a call that applies deployments or brings graphs back, one
	// after the other.
	applying chan struct{}
}

// New starts an engine. If there is a Storage with saved graphs, they stay as
// they are until [Engine.Apply] or [Engine.Restore] brings them back.
//
// ctx bounds the start only.
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
		return nil, errtext.Invalid("new", "a shutdown timeout is not negative", "leave Options.ShutdownTimeout zero for the default")
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

// shutDown is Close without a bound, once no turn begins any more.
func (e *Engine) shutDown(ctx context.Context) error {
	e.core.timers.Close()
	e.workers.Wait()
	e.cancel()

	e.applying <- struct{}{} // whoever is applying gives up
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

// closeInstances closes every instance. The workers have ended, so nobody
// uses one.
func closeInstances(ctx context.Context, e locked) {
	t := &turn{e: e.core}
	for c := range e.queue.Rest() { // some may have been removed
		if c.home.load() == nil && c.instance != nil {
			stopInstance(ctx, t, c, c.instance)
			c.instance = nil
		}
	}
	for _, g := range e.sortedGraphs() {
		for _, c := range g.sortedCreatures() {
			if c.instance != nil {
				stopInstance(ctx, t, c, c.instance)
				c.instance = nil
			}
		}
		g.mu.Lock()
		readers := slices.Clone(g.readers)
		g.mu.Unlock()
		for _, r := range readers {
			r.signal()
		}
	}
}

// sortedGraphs returns the live graphs, eldest first. The caller holds mu.
func (e locked) sortedGraphs() []*graph {
	out := make([]*graph, 0, len(e.graphs))
	for _, g := range e.graphs {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *graph) int { return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id)) })
	return out
}

// WaitIdle waits until no delivery is runnable, no turn is running and no
// failed one is waiting to be tried again. Deliveries of stopped and
// quarantined creatures do not count. It answers deadline when ctx ends first.
func (e *Engine) WaitIdle(ctx context.Context) error {
	for {
		busy := e.core.idle.Wait()
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-e.core.closing:
			return errtext.Closed
		case <-ctx.Done():
			return &abi.Error{
				Code: abi.Deadline, Op: "wait_idle", Message: "the engine did not become idle in time",
				Remedy: "wait longer; status shows who is busy", Err: context.Cause(ctx),
			}
		}
	}
}

// DeadLetterCount is how many deliveries became dead letters since the engine was
// started.
func (e *Engine) DeadLetterCount() int64 { return e.core.deadLetters.Load() }
