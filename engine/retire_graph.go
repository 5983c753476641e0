package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// retireAgain is the pause before the store of a graph that has ended is tried
// again, when its disk fails.
const retireAgain = time.Second

// ending is the store of a graph that ends.
type ending struct {
	graph *graph
	store journal.Store
	last  uint64 // number of the last event
}

// drain waits until everything is durable that graphs have logged which the
// change ends. If it cannot be written, they do not end: what is in the queue
// of a store goes with the process.
func (p *storePlan) drain(ctx context.Context) error {
	for _, g := range p.groups {
		if len(g.after) > 0 || g.before[0].store == nil {
			continue
		}
		end := &ending{g.before[0], g.before[0].store, g.before[0].seq}
		if err := end.store.Wait(ctx, end.last); err != nil {
			return err
		}
		p.endings = append(p.endings, end)
	}
	return nil
}

// retire ends the stores of graphs whose last member is gone.
func (p *storePlan) retire(ctx context.Context, x *change) {
	for _, end := range p.endings {
		if g := end.graph; g.store == end.store { // or its id goes on, with another store
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

// retire closes the store of a graph that has ended, all of which is durable,
// and retires it. An error may be tried again.
func (e *core) retire(ctx context.Context, end *ending) error {
	session := end.store.Info().Session
	if err := end.store.Close(ctx); err != nil {
		e.log.Error("closing the store of a graph that ended", "session", session, "error", err)
	}
	return e.storage.Retire(ctx, session)
}

// retireLater tries the stores again that could not be retired. It waits for
// nobody: not for a change that is under way, and not for a disk that fails.
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

// closeEndings closes and retires what is left when the engine is closed. What
// still cannot be written leaves a graph that will be there again.
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

// retireEmpty retires a saved graph without members: the process ended before
// its first record was written, or behind its last.
func (e *core) retireEmpty(ctx context.Context, g *journal.SavedGraph) {
	if err := e.storage.Retire(ctx, g.Session); err != nil {
		e.log.Warn("a session without members could not be retired", "session", g.Session, "error", err)
	}
}
