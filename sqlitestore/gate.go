package sqlitestore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// gate lets callers wait until a rising number has reached a value, or until it fails
// with a reason.
type gate struct {
	reached atomic.Uint64

	mu      sync.Mutex
	err     error // why the number does not rise at present
	waiters []*waiter
}

type waiter struct {
	want   uint64
	answer chan error // has room for one answer
}

var waiterPool = sync.Pool{New: func() any { return &waiter{answer: make(chan error, 1)} }}

// wait returns nil once the number is at least want, and an error if the gate fails or ctx
// ends first.
func (g *gate) wait(ctx context.Context, want uint64) error {
	if g.reached.Load() >= want {
		return nil
	}
	w, err := g.join(want)
	if w == nil {
		return err
	}
	defer waiterPool.Put(w)
	select {
	case err := <-w.answer:
		return err
	case <-ctx.Done():
		if !g.leave(w) {
			return <-w.answer // it was answered meanwhile
		}
		return ctx.Err()
	}
}

// join queues a waiter, unless the answer is known already.
func (g *gate) join(want uint64) (*waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reached.Load() >= want {
		return nil, nil
	}
	if g.err != nil {
		return nil, g.err
	}
	w := waiterPool.Get().(*waiter)
	w.want = want
	g.waiters = append(g.waiters, w)
	return w, nil
}

// leave reports whether w was still waiting.
func (g *gate) leave(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiters, w)
	if i < 0 {
		return false
	}
	g.waiters = slices.Delete(g.waiters, i, i+1)
	return true
}

// advance raises the number, and lets callers wait again after fail.
func (g *gate) advance(reached uint64) {
	g.raise(reached)
	g.open()
}

// raise raises the number, if it is lower, and releases the callers that wait for that
// number or a lower one.
func (g *gate) raise(reached uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	reached = max(reached, g.reached.Load())
	g.reached.Store(reached)
	g.waiters = slices.DeleteFunc(g.waiters, func(w *waiter) bool {
		if w.want > reached {
			return false
		}
		w.answer <- nil
		return true
	})
}

// open lets callers wait again after fail.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = nil
}

// fail answers all waiting callers, and all later ones until open is called.
func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
	for _, w := range g.waiters {
		w.answer <- err
	}
	clear(g.waiters)
	g.waiters = g.waiters[:0]
}
