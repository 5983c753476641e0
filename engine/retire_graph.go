package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// retireAgain is the pause before another try to retire the store of an ended graph when
// its disk fails.
const retireAgain = time.Second

// drain waits until everything is durable that has been logged by graphs that the change ends. If
// it cannot be written, they do not end, because the queue of a store is lost with the process.
func (p *storePlan) drain(ctx context.Context) error {
	for _, g := range p.groups {
		if len(g.After) > 0 || g.before[0].store == nil {
			continue
		}
		end := &ending{g.before[0].graph, g.before[0].store, g.before[0].seq}
		if err := end.store.Wait(ctx, end.last); err != nil {
			return err
		}
		p.endings = append(p.endings, end)
	}
	return nil
}

// retire ends the stores of graphs that have lost their last member.
func (p *storePlan) retire(ctx context.Context, x *change) {
	for _, end := range p.endings {
		if g := x.in(end.graph); g.store == end.store { // otherwise its id continues, with another store
			end.last, g.store = g.seq, nil
		}
		ctx := context.WithoutCancel(ctx) // the graph has ended, whatever the caller does
		err := end.store.Wait(ctx, end.last)
		if err == nil {
			err = x.e.retire(ctx, end)
		}
		if err != nil {
			x.e.log.Error("the store of a graph that ended is kept until it can be written", "session", end.store.Info().Session, "error", err)
			x.e.endings = append(x.e.endings, end)
			x.e.timers.After(retireAgain, x.e.retireLater)
		}
	}
}

// retire closes and retires the store of a graph that has ended. Everything in it is
// durable. It may be called again after an error.
func (e *core) retire(ctx context.Context, end *ending) error {
	session := end.store.Info().Session
	if err := end.store.Close(ctx); err != nil {
		e.log.Error("closing the store of a graph that ended", "session", session, "error", err)
	}
	return e.storage.Retire(ctx, session)
}

// retireLater tries again to retire the stores that could not be retired. It waits
// neither for a change in progress nor for a failing disk.
func (e *core) retireLater() {
	if l, ok := e.tryLock(); ok {
		defer l.unlock()
		if l.closed {
			return
		}
		l.endings = slices.DeleteFunc(l.endings, func(end *ending) bool {
			return end.store.Durable() >= end.last && e.retire(context.Background(), end) == nil
		})
		if len(l.endings) == 0 {
			return
		}
	}
	e.timers.After(retireAgain, e.retireLater)
}

// closeEndings closes and retires the remaining stores when the engine is closed. A store
// that still cannot be written leaves a graph that will exist again.
func (e locked) closeEndings(ctx context.Context) error {
	var errs []error
	for _, end := range e.endings {
		if err := end.store.Close(ctx); err != nil && abi.CodeOf(err) != abi.Stopped {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, e.storage.Retire(ctx, end.store.Info().Session))
	}
	e.endings = nil
	return errors.Join(errs...)
}

// retireEmpty retires a saved graph without members: the process ended before its first
// record was written, or after its last.
func (e *core) retireEmpty(ctx context.Context, g *journal.SavedGraph) {
	if err := e.storage.Retire(ctx, g.Session); err != nil {
		e.log.Warn("a session without members could not be retired", "session", g.Session, "error", err)
	}
}
