package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine/internal/closing"
	"github.com/seed47132306/terrarium/engine/internal/species"
)

// ErrLeftOpen is a cause of the error of a Close that has reached its bound.
var ErrLeftOpen = closing.ErrLeftOpen

// Close stops the engine: calls from outside return stopped, running turns end and are
// committed, logs are written, instances and stores are closed. The backlog stays in the
// log of graphs that have a store.
//
// Close takes [Options.ShutdownTimeout] at most, or until the deadline of ctx if that is
// earlier and has not passed yet. Turns that still run after a third of that time, or
// when ctx ends, are interrupted and leave no effect. So even a context that a signal has
// ended leads to an orderly shutdown. When the time is over, the error has the code
// deadline, wraps [ErrLeftOpen], and names what is left: turns that still run, and events
// that are not written. None of these events was acknowledged. The shutdown continues in the
// background until the process ends, which it may do at any time.
//
// Later calls wait for the same shutdown, each within its own bound, and return the same
// result. If attempts of a capability ignore that they were interrupted, the engine closes
// without them, and the error wraps ErrLeftOpen and names them until they end.
func (e *Engine) Close(ctx context.Context) error {
	bound := CloseBound(ctx, e.shutdownTimeout)
	e.end.Begin(func() {
		// Before anything is interrupted: an interrupted turn must not begin again.
		e.core.closes.Store(true)
		close(e.core.closing)
		e.core.queue.Close()
	}, func() error {
		// Closing is finished even if ctx has ended, because acknowledged events may be in
		// the queues of the stores.
		return e.shutDown(context.WithoutCancel(ctx))
	})
	ended, err := e.end.Wait(ctx, bound, e.cancel)
	if !ended {
		return e.end.LeftOpen(bound, e.stillRunning, e.core.outbound.Attempts())
	}
	return errors.Join(err, closing.LeftOutside(e.core.outbound.Attempts()))
}

// CloseBound is how long [Engine.Close] may take: timeout, or until the deadline of ctx if
// that is earlier and has not passed yet.
func CloseBound(ctx context.Context, timeout time.Duration) time.Duration {
	return closing.Bound(ctx, timeout)
}

// stillRunning lists the turns that do not end and the stores with unwritten events. It
// waits for no lock, because whatever does not end may keep any of them.
func (e *Engine) stillRunning() (turns []string, stores []closing.Store) {
	l, ok := e.core.tryRLock()
	if !ok {
		return nil, nil
	}
	defer l.runlock()
	for _, graph := range l.sortedGraphs() {
		g, ok := graph.tryEnter()
		if !ok {
			turns = append(turns, fmt.Sprintf("work in the graph %s", graph.id))
			continue
		}
		for _, c := range g.creatures {
			if c.owned {
				turns = append(turns, fmt.Sprintf("a turn of %s (%s)", c.name, c.id))
			}
		}
		if g.store != nil && g.seq > g.store.Durable() {
			stores = append(stores, closing.Store{Store: g.store, Last: g.seq})
		}
		g.leave()
	}
	return turns, stores
}

// closeStores closes the stores of all graphs, including those that have ended.
func (e *Engine) closeStores(ctx context.Context, l locked) error {
	open := []closing.Store{}
	for _, graph := range l.sortedGraphs() {
		g := graph.enter()
		if g.store != nil {
			open = append(open, closing.Store{Store: g.store, Last: g.seq})
		}
		g.leave()
	}
	graphs := len(open)
	for _, end := range l.endings {
		open = append(open, closing.Store{Store: end.store, Last: end.last})
	}
	return errors.Join(e.end.CloseStores(ctx, open, graphs), l.closeEndings(ctx))
}

// shutDown is Close without a time limit, called when no further turn can begin.
func (e *Engine) shutDown(ctx context.Context) error {
	e.core.timers.Close()
	e.core.outbound.Close()
	e.workers.Wait()
	e.cancel()

	e.applying <- struct{}{} // wait until a running Apply or Restore has stopped
	defer func() { <-e.applying }()
	l := e.core.lock()
	defer l.unlock()
	l.closed = true
	closeInstances(ctx, l)
	errs := []error{e.closeStores(ctx, l)}
	e.core.observers.Close()
	for _, c := range l.creatures {
		errs = append(errs, c.module.Close(ctx))
	}
	species.Close(ctx, e.core.log, l.species.All())
	return errors.Join(errs...)
}

// closeInstances closes every instance. The workers have ended, so no goroutine uses one.
func closeInstances(ctx context.Context, e locked) {
	t := &turn{e: e.core}
	for c := range e.queue.Rest() { // some may have been removed
		if c.home.load() == nil {
			t.stop(ctx, c)
		}
	}
	for _, graph := range e.sortedGraphs() {
		g := graph.enter()
		creatures, readers := g.sortedCreatures(), slices.Clone(g.readers)
		g.leave()
		for _, c := range creatures {
			t.stop(ctx, c)
		}
		for _, r := range readers {
			r.signal()
		}
	}
}
