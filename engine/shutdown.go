package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// ErrLeftOpen is a cause of the error of a Close that has reached its bound.
var ErrLeftOpen = errors.New("closing has reached its time limit")

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
	e.end.begin.Do(func() {
		// Before anything is interrupted: an interrupted turn must not begin again.
		e.core.closes.Store(true)
		close(e.core.closing)
		e.core.queue.Close()
		go func() {
			defer close(e.end.over)
			// Closing is finished even if ctx has ended, because acknowledged events may
			// be in the queues of the stores.
			e.end.err = e.shutDown(context.WithoutCancel(ctx))
		}()
	})
	patience, end := time.NewTimer(bound/3), time.NewTimer(bound)
	defer patience.Stop()
	defer end.Stop()
	select {
	case <-e.end.over:
		return errors.Join(e.end.err, e.leftOutside())
	case <-patience.C:
	case <-ctx.Done():
	}
	e.cancel()
	select {
	case <-e.end.over:
		return errors.Join(e.end.err, e.leftOutside())
	case <-end.C:
		return e.leftOpen(bound)
	}
}

// CloseBound is how long closing may take: timeout, or until the deadline of ctx if that
// is earlier and has not passed yet.
func CloseBound(ctx context.Context, timeout time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		return max(0, min(timeout, time.Until(deadline)))
	}
	return timeout
}

// leftOpen reports what an engine leaves that does not close. It waits for no lock,
// because whatever does not end may keep any of them.
func (e *Engine) leftOpen(bound time.Duration) error {
	e.end.mu.Lock()
	stores := e.end.stores
	e.end.mu.Unlock()
	var left []string
	if stores == nil {
		left, stores = e.stillRunning()
	}
	for _, s := range stores {
		if durable := s.store.Durable(); s.last > durable {
			left = append(left, fmt.Sprintf("%d events of the session %s that are not written", s.last-durable, s.store.Info().Session))
		} else if len(left) == 0 {
			left = append(left, fmt.Sprintf("the open store of the session %s, with all events written", s.store.Info().Session))
		}
	}
	left = append(left, e.core.outbound.Attempts()...)
	if len(left) == 0 {
		left = append(left, "a change of the topology that does not end")
	}
	return &abi.Error{
		Code: abi.Deadline, Op: "close", Message: fmt.Sprintf("the engine did not close within %v; what is left: %s", bound, strings.Join(errtext.Few(left), ", ")),
		Remedy: "all acknowledged events are kept, and the session can be resumed after the process has ended; if the disk is slow, raise the shutdown timeout",
		Err:    ErrLeftOpen,
	}
}

// stillRunning lists the turns that do not end and the stores with unwritten events.
func (e *Engine) stillRunning() (turns []string, stores []openStore) {
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
			stores = append(stores, openStore{g.store, g.seq})
		}
		g.leave()
	}
	return turns, stores
}

// leftOutside reports attempts of capabilities that ignore their interruption.
func (e *Engine) leftOutside() error {
	left := e.core.outbound.Attempts()
	if len(left) == 0 {
		return nil
	}
	return &abi.Error{
		Code: abi.Deadline, Op: "close", Message: "the engine has closed, but " + strings.Join(errtext.Few(left), ", ") + " have not ended",
		Remedy: "end the process, and correct the capability: its method Do must end when its context ends", Err: ErrLeftOpen,
	}
}

// closeStores closes the stores of all graphs, including those that have ended.
func (x *closing) closeStores(ctx context.Context, e locked) error {
	open := []openStore{}
	for _, graph := range e.sortedGraphs() {
		g := graph.enter()
		if g.store != nil {
			open = append(open, openStore{g.store, g.seq})
		}
		g.leave()
	}
	graphs := len(open)
	for _, end := range e.endings {
		open = append(open, openStore{end.store, end.last})
	}
	var errs []error
	for i, s := range open[:graphs] {
		x.closes(open[i:])
		errs = append(errs, s.store.Close(ctx))
	}
	x.closes(open[graphs:])
	return errors.Join(append(errs, e.closeEndings(ctx))...)
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
	errs := []error{e.end.closeStores(ctx, l)}
	e.core.observers.Close()
	for _, c := range l.creatures {
		errs = append(errs, c.module.Close(ctx))
	}
	e.core.closeTemplates(ctx, slices.Collect(maps.Values(l.templates)))
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
