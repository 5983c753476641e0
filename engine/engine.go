package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/heapwatch"
	"github.com/seed47132306/terrarium/engine/internal/idle"
	"github.com/seed47132306/terrarium/engine/internal/runqueue"
	"github.com/seed47132306/terrarium/engine/internal/serialstore"
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
	host           abi.Host
	storage        *serialstore.Storage // nil: every graph is volatile
	exports        journal.Exporter     // what storage can do besides, or nil
	load           func(context.Context, string) ([]byte, error)
	clock          Clock
	heap           *heapwatch.Watch[creature] // nil: none
	sampled        bool                       // workers ask the clock once in a while
	durability     journal.Durability
	freshInstances bool
	paused         bool
	log            *slog.Logger
	ids            *idSource
	judgedOutside  atomic.Uint64 // counts messages from outside; see outsideSeed

	queue   *runqueue.Queue[creature]
	idle    idle.Counter
	timers  *timing.Timers
	workers sync.WaitGroup
	cancel  context.CancelFunc // ends the workers' context
	jitter  func(max time.Duration) time.Duration
	closing chan struct{} // closed when Close begins
	closes  atomic.Bool   // the same, for who asks often
	end     closing
	// shutdownTimeout is Options.ShutdownTimeout, or its default.
	shutdownTimeout time.Duration
	// applying is taken by who applies deployments or brings graphs back, one after
	// the other.
	applying chan struct{}

	observers   observers
	successors  sync.Map // of ended GraphIDs: the GraphID they became part of
	deadLetters atomic.Int64
	callers     sync.Map // EventID of a request from outside: chan callerAnswer
	spawnable   sync.Map // of deployments: their []AwareSpecies
	policies    sync.Map // of deployments: their Policy, if they have one
	failed      policyFailures
	shapes      atomic.Uint64 // the last one that a graph was given

	mutation mutation
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
	e.workers.Go(e.timers.Run)
	workers := make([]*turnWorker, count)
	for i := range workers {
		workers[i] = newWorker(e, e.queue.AddLane())
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
		end: closing{over: make(chan struct{})}, shutdownTimeout: cmp.Or(o.ShutdownTimeout, DefaultShutdownTimeout),
		jitter: rand.N[time.Duration],
		host:   o.Host, load: o.Load, clock: o.Clock, freshInstances: o.FreshInstances, paused: o.Paused, log: o.Log,
		durability: o.Durability, queue: runqueue.New[creature](), closing: make(chan struct{}), mutation: mutation{registry: newRegistry()},
		applying: make(chan struct{}, 1),
	}
	e.heap = e.newHeapWatch(o.UnaccountedMemory)
	if o.Storage != nil {
		e.storage = serialstore.Of(o.Storage)
		e.exports, _ = o.Storage.(journal.Exporter)
	}
	if e.clock == nil {
		e.clock, e.sampled = timing.Real{}, true
	}
	if e.log == nil {
		e.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	switch {
	case o.Storage == nil:
		e.durability = journal.Volatile
	case o.Durability == journal.Volatile:
		e.durability = journal.Normal
	}
	e.ids = newIDSource(o.Seed)
	l := e.lock() // no other goroutine has it yet
	defer l.unlock()
	if err := l.loadSaved(ctx); err != nil {
		return nil, err
	}
	e.timers = timing.New(e.clock)
	return e, nil
}

// shutDown is Close without a bound, once no turn begins any more.
func (e *Engine) shutDown(ctx context.Context) error {
	e.timers.Close()
	e.workers.Wait()
	e.cancel()

	e.applying <- struct{}{} // whoever is applying gives up
	defer func() { <-e.applying }()
	l := e.lock()
	defer l.unlock()
	l.closed = true
	l.closeInstances(ctx)
	errs := []error{l.closeStores(ctx)}
	e.observers.close()
	for _, c := range l.creatures {
		errs = append(errs, c.module.Close(ctx))
	}
	e.closeTemplates(ctx, slices.Collect(maps.Values(l.templates)))
	for _, d := range l.deployments {
		e.closePolicy(d.Policy)
	}
	for _, p := range l.former {
		e.closePolicy(p)
	}
	return errors.Join(errs...)
}

// closePolicy lets go of what a policy holds, if it holds anything.
func (e *Engine) closePolicy(p deploy.Policy) {
	if closer, ok := p.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			e.log.Debug("closing policies", "error", err)
		}
	}
}

// closeInstances closes every instance. The workers have ended, so nobody
// uses one.
func (e locked) closeInstances(ctx context.Context) {
	t := &turn{e: e.Engine}
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
		busy := e.idle.Wait()
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-e.closing:
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
func (e *Engine) DeadLetterCount() int64 { return e.deadLetters.Load() }

// releaseModule gives up a creature's module.
func (e *Engine) releaseModule(c *creature) {
	if err := c.module.Close(context.Background()); err != nil {
		e.log.Debug("closing a module", "creature", c.id, "error", err)
	}
}
