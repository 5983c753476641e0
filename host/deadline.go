package host

import (
	"context"
	"sync"
	"time"
)

// guard ends the call of one instance when its time is over or when the caller
// gives up. This is the seam for metering: who runs a guest only calls begin
// and end.
//
// wazero watches the channel done while a guest runs, and the compiled code
// polls at every loop head whether wazero has closed the instance. A guard that
// has fired stays so: the instance is broken then, which is why one channel and
// one timer serve all of its calls.
type guard struct {
	done    chan struct{} // closed when the guard fires; nil before the first call
	timer   *time.Timer   // nil before the first call
	unwatch func() bool   // nil when no context is watched

	mu      sync.Mutex
	running bool
	parent  <-chan struct{} // Done of the context that is watched
	cause   error           // why it fired: context.DeadlineExceeded or *abandoned
}

// begin starts to watch ctx and the clock. It returns ctx's error, and does
// nothing, when ctx is over already.
func (g *guard) begin(ctx context.Context, limit time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.done == nil {
		g.done = make(chan struct{})
	}
	g.watch(ctx)
	g.mu.Lock()
	g.running = true
	g.mu.Unlock()
	if g.timer == nil {
		g.timer = time.AfterFunc(limit, g.expire)
	} else {
		g.timer.Reset(limit)
	}
	return nil
}

// end stops watching and returns why the guard fired, or nil. A call whose time
// ran out is over its limit even if the guest came back in the last moment: by
// then wazero may have closed the instance.
func (g *guard) end() error {
	inTime := g.timer.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = false
	if !inTime && g.cause == nil {
		g.cause = context.DeadlineExceeded
	}
	return g.cause
}

// watch makes ctx the context that can end the calls. One that never ends costs
// nothing, and one that is passed again and again is registered once.
func (g *guard) watch(ctx context.Context) {
	parent := ctx.Done()
	if parent == g.parent {
		return
	}
	g.close()
	if parent == nil {
		return
	}
	g.mu.Lock()
	g.parent = parent
	g.mu.Unlock()
	g.unwatch = context.AfterFunc(ctx, func() { g.abandon(parent, ctx.Err()) })
}

func (g *guard) expire() { g.fire(context.DeadlineExceeded, nil) }

func (g *guard) abandon(parent <-chan struct{}, cause error) { g.fire(&abandoned{cause}, parent) }

// fire ends the call that is going on. An outdated notice, of a context that is
// no longer watched or between two calls, changes nothing.
func (g *guard) fire(cause error, parent <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.running || g.cause != nil || (parent != nil && parent != g.parent) {
		return
	}
	g.cause = cause
	close(g.done)
}

// close forgets the watched context. A notice of it that is on its way is
// outdated from then on.
func (g *guard) close() {
	if g.unwatch == nil {
		return
	}
	g.unwatch()
	g.unwatch = nil
	g.mu.Lock()
	g.parent = nil
	g.mu.Unlock()
}

// err is why the guard fired, in the two words that wazero understands.
func (g *guard) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch g.cause {
	case nil, context.DeadlineExceeded:
		return g.cause
	default:
		return context.Canceled
	}
}

// abandoned says that the caller gave up, whatever its own reason.
type abandoned struct{ cause error }

func (a *abandoned) Error() string { return a.cause.Error() }
func (a *abandoned) Unwrap() error { return a.cause }
