package engine

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/seed47132306/terrarium/engine/archive"
	"github.com/seed47132306/terrarium/engine/internal/closing"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/hibernation"
	"github.com/seed47132306/terrarium/engine/internal/ids"
	"github.com/seed47132306/terrarium/engine/internal/outbound"
	"github.com/seed47132306/terrarium/engine/internal/runqueue"
	"github.com/seed47132306/terrarium/engine/internal/serialstore"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

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
	e.callerTurns.init(&e.core, run)
	e.workers.Go(e.core.timers.Run)
	if o.Clock == nil { // what happens by another clock can be repeated
		sweeps := hibernation.New(o.HibernateAfter, o.ProcessMemory)
		e.workers.Go(func() { sweeps.Run(e.core.closing, func() { e.core.hibernate(run) }) })
	}
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
		core: core{mutation: mutation{registry: newRegistry()}}, end: closing.New(), shutdownTimeout: cmp.Or(o.ShutdownTimeout, DefaultShutdownTimeout),
		applying: make(chan struct{}, 1),
	}
	c := &e.core
	e.Archive = archive.New(o.Storage, c.sessionOf)
	c.init(&o)
	c.outbound = outbound.New(ctx, o.Capabilities, c.clock.Now)
	l := c.lock() // no other goroutine has it yet
	defer l.unlock()
	if err := l.loadSaved(ctx); err != nil {
		return nil, err
	}
	c.timers = timing.New(c.clock)
	return e, nil
}

// init sets the core up from the options.
func (e *core) init(o *Options) {
	e.host, e.load, e.clock, e.manualClock, e.freshInstances, e.paused, e.log = o.Host, o.Load, timing.NewSteady(timing.Real{}, false), o.ManualClock, o.FreshInstances, o.Paused, o.Log
	e.jitter, e.queue, e.closing = rand.N[time.Duration], runqueue.New[creature](), make(chan struct{})
	e.heap = e.newHeapWatch(o.UnaccountedMemory)
	var here func() journal.Position
	if o.Storage != nil {
		e.storage, here = serialstore.Of(o.Storage), e.here
	}
	e.observers.Init(e.wallClock, here)
	if e.sampled = o.Clock == nil; !e.sampled {
		e.clock = timing.NewSteady(o.Clock, o.ManualClock)
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
