// Package outbound executes the requests of creatures to capabilities. It enforces the limits
// of each grant, and retries within them.
//
// The engine starts a request inside a critical section, so starting one never blocks. The
// requests of a grant begin in the order in which they were started.
package outbound

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/spending"
)

// Outbound runs the requests of one engine. Its methods may be called from any goroutine.
type Outbound struct {
	kinds  map[string]capability.Kind
	now    func() time.Time
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	grants   map[[sha256.Size]byte]weak.Pointer[Access]
	attempts map[string]int // attempts under way, by the id of the capability
	closed   bool
	working  int           // goroutines that Close waits for
	idle     chan struct{} // closed when there is none after Close
}

// grace is the time that an attempt has to end after its context has ended.
const grace = time.Second

// New returns an Outbound for kinds of capabilities. now is the clock for their rates. The
// Outbound must be closed. ctx only carries values; its end has no effect.
func New(ctx context.Context, kinds []capability.Kind, now func() time.Time) *Outbound {
	o := &Outbound{now: now, kinds: map[string]capability.Kind{}, grants: map[[sha256.Size]byte]weak.Pointer[Access]{}, attempts: map[string]int{}, idle: make(chan struct{})}
	for _, k := range kinds {
		o.kinds[k.Name()] = k
	}
	o.ctx, o.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return o
}

// Kinds returns the kinds, in no order.
func (o *Outbound) Kinds() []capability.Kind { return slices.Collect(maps.Values(o.kinds)) }

// Close interrupts the attempts under way, and waits for them to end. If an attempt ignores
// the interrupt, Close waits for it only for a short time; see [Outbound.Attempts]. The
// results of these attempts are not used.
func (o *Outbound) Close() {
	o.enter()
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.cancel()
	o.leave()
	<-o.idle
	for _, p := range o.grants {
		if a := p.Value(); a != nil {
			if c, ok := a.Grant.(io.Closer); ok {
				_ = c.Close()
			}
		}
	}
}

// Attempts lists the attempts that have not ended, by capability.
func (o *Outbound) Attempts() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, id := range slices.Sorted(maps.Keys(o.attempts)) {
		out = append(out, fmt.Sprintf("%s of the capability %s", errtext.Count(o.attempts[id], "attempt"), id))
	}
	return out
}

// count adds n, which is 1 or -1, to the attempts of a capability that are under way.
func (o *Outbound) count(id string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.attempts[id] += n; o.attempts[id] == 0 {
		delete(o.attempts, id)
	}
}

// counted is do for an attempt that was counted as under way, which then ends.
func (a *Access) counted(ctx context.Context, call capability.Call) capability.Result {
	defer a.o.count(a.ID(), -1)
	return a.do(ctx, call)
}

// start runs f in a goroutine that Close waits for. After Close it does nothing, and returns
// false.
func (o *Outbound) start(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.working++
		go func() {
			defer o.leave()
			f()
		}()
	}
	return !o.closed
}

// enter makes Close wait for the goroutine.
func (o *Outbound) enter() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.working++
}

// leave ends what enter has begun.
func (o *Outbound) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.working--; o.closed && o.working == 0 {
		select {
		case <-o.idle: // an abandoned attempt has ended after Close
		default:
			close(o.idle)
		}
	}
}

// Access is a grant. All creatures that have it from the same declaration share it.
type Access struct {
	deploy.Capability
	capability.Grant
	o      *Outbound
	limits capability.Limits

	mu      sync.Mutex
	lanes   map[string][]*Call // by creature: started, but not known to be durable
	queue   []*Call
	running int
	stuck   int       // attempts that were abandoned and have not ended
	due     time.Time // the time at which the rate allows the next attempt
}

// Open returns the access to a creature's capabilities by their ids. A capability that lacks
// its secret settings grants nothing until the recipe is applied.
func (o *Outbound) Open(creature string, list []deploy.Capability) (map[string]*Access, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]*Access{}
	for i := range list {
		c := &list[i]
		kind := o.kinds[string(c.Kind)]
		if kind == nil {
			return nil, &abi.Error{
				Code: abi.Unsupported, Op: "add_creature", Message: fmt.Sprintf("%s is granted the capability %s, and this program has no %s", creature, c.ID(), c.Kind),
				Remedy: "use a program that has this capability, or remove the grant", IDs: map[string]string{"capability": c.ID()},
			}
		}
		if c.Lacking {
			out[c.ID()] = &Access{Capability: *c}
			continue
		}
		a, err := o.open(kind, c)
		if err != nil {
			return nil, fmt.Errorf("the capability %s of %s: %w", c.ID(), creature, err)
		}
		out[c.ID()] = a
	}
	return out, nil
}

func (o *Outbound) open(kind capability.Kind, c *deploy.Capability) (*Access, error) {
	digest := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", c.Kind, c.Name, c.Settings))
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.grants[digest].Value(); a != nil {
		return a, nil
	}
	grant, err := kind.Open(c.Settings)
	if err != nil {
		return nil, err
	}
	a := &Access{Capability: *c, Grant: grant, o: o, limits: grant.Limits(), lanes: map[string][]*Call{}}
	if a.limits.Concurrency <= 0 {
		a.limits.Concurrency = capability.DefaultConcurrency
	}
	if a.limits.Timeout <= 0 {
		a.limits.Timeout = capability.DefaultTimeout
	}
	if c, ok := grant.(io.Closer); ok {
		// Close the grant once no creature and no attempt has the access. There is no caller
		// for its error.
		runtime.AddCleanup(a, func(c io.Closer) { _ = c.Close() }, c)
	}
	for key, p := range o.grants { // remove the grants of replaced recipes
		if p.Value() == nil {
			delete(o.grants, key)
		}
	}
	o.grants[digest] = weak.Make(a)
	return a, nil
}

// Refuse ends a request that no capability grants.
func (o *Outbound) Refuse(call *Call, code abi.Code, text string) {
	o.start(func() { call.End(o.ctx, capability.Failure(code, text), false) })
}

// Start executes a request. The requests of a creature are executed in the order in which
// they were started.
func (a *Access) Start(call *Call) {
	call.Attempt = 0
	call.o = a.o
	call.ctx, call.stop = context.WithCancel(a.o.ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	lane, busy := a.lanes[call.Creature]
	a.lanes[call.Creature] = append(lane, call)
	if !busy {
		a.o.start(func() { a.settleIn(call.Creature) })
	}
}

// settleIn waits until the requests of a creature may be executed, one after the other. This
// may take as long as the creature's store takes, so it happens outside of the places for
// attempts, which all creatures share. If there is a place for the last request, the goroutine
// serves it itself: each goroutine that a request would have to wake adds to its latency.
func (a *Access) settleIn(creature string) {
	for {
		call := a.nextOf(creature)
		if call == nil {
			return
		}
		switch now := call.Begin(call.ctx); {
		case call.ctx.Err() != nil, now == nil:
			call.drop()
		case !now.enqueue(call): // another goroutine will take it
		case !a.hasMore(creature):
			now.serve()
			return
		case !a.o.start(now.serve):
			now.serve() // which drops it
		}
	}
}

// nextOf takes the next request of a creature. If there is none, the creature has no lane.
func (a *Access) nextOf(creature string) *Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	lane := a.lanes[creature]
	if len(lane) == 0 {
		delete(a.lanes, creature)
		return nil
	}
	a.lanes[creature] = lane[1:]
	return lane[0]
}

// hasMore reports whether a creature has further requests. If not, it has no lane.
func (a *Access) hasMore(creature string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.lanes[creature]) > 0 {
		return true
	}
	delete(a.lanes, creature)
	return false
}

// enqueue adds a request, and reports whether it has taken a place for the caller, which must
// serve then.
func (a *Access) enqueue(call *Call) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, call)
	if a.running == a.limits.Concurrency {
		return false
	}
	a.running++
	return true
}

// serve makes one attempt, passes its place on, and delivers the result.
func (a *Access) serve() {
	for {
		call, wait := a.next()
		if call == nil {
			return
		}
		if !pause(a.o.ctx, wait) {
			call.drop()
			continue
		}
		switch now := call.Begin(call.ctx); { // which does not wait again
		case call.ctx.Err() != nil, now == nil:
			call.drop()
			continue
		case now != a: // its recipe was applied again
			if now.enqueue(call) && !a.o.start(now.serve) {
				now.serve() // which drops it
			}
			continue
		}
		call.Attempt++
		r, abandoned := a.metered(call)
		if abandoned || !a.conclude(call, r) {
			return
		}
	}
}

// conclude passes the place on, and then delivers a result, for which there may be no room yet
// in the inbox of the creature, or waits until the next attempt. It reports whether the caller
// has a place again, or still, and must serve.
func (a *Access) conclude(call *Call, r capability.Result) bool {
	placed := !a.passOn()
	switch {
	case a.o.ctx.Err() != nil, call.ctx.Err() != nil && r.Code != abi.OK:
		call.drop() // if it stays open, it is executed again when the session is resumed
	case r.Code != abi.OK && r.Again && call.Attempt <= a.limits.Retries:
		if pause(call.ctx, a.limits.Pause(call.Attempt, r.After)) {
			return a.enqueue(call) || placed
		}
		call.drop()
	default:
		call.end(r, a.limits.DeadLetter)
	}
	return placed
}

// passOn gives a place to the next request, or frees it. After Close it does neither, and
// returns false: the caller must drop the requests that wait.
func (a *Access) passOn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		a.running--
		a.queue = nil
		return true
	}
	return a.o.start(a.serve)
}

// next takes the next request, and returns how long to wait before it begins.
func (a *Access) next() (call *Call, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		a.running--
		a.queue = nil
		return nil, 0
	}
	call, a.queue[0] = a.queue[0], nil
	a.queue = a.queue[1:]
	if a.limits.Rate > 0 {
		// The bucket has room for the attempts of a second.
		now := a.o.now()
		if full := now.Add(-time.Second); a.due.Before(full) {
			a.due = full
		}
		a.due = a.due.Add(time.Duration(float64(time.Second) / a.limits.Rate))
		wait = a.due.Sub(now)
	}
	return call, wait
}

// storePause is the pause before another look at a store that cannot be written.
const storePause = 100 * time.Millisecond

// Pause waits before another look at a store that cannot be written. It returns false if ctx
// has ended.
func Pause(ctx context.Context) bool { return pause(ctx, storePause) }

// pause waits for d. It returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// metered is one attempt, within the budgets. It reports whether the attempt was abandoned.
func (a *Access) metered(call *Call) (r capability.Result, abandoned bool) {
	m, ok := a.Grant.(capability.Meter)
	if !ok {
		return a.try(call)
	}
	most := m.Forecast(call.Request)
	if err := call.Spend(a.o.ctx, Spending{a.ID(), m.Budgets(), most}); err != nil {
		r := capability.Failure(abi.CodeOf(err), err.Error())
		if r.Again = r.Code == abi.Storage; r.Again {
			a.settle(call, most, nil)
		}
		return r, false
	}
	r, abandoned = a.try(call)
	if !abandoned && (call.ctx.Err() == nil || r.Code == abi.OK) && a.o.ctx.Err() == nil {
		a.settle(call, most, r.Used)
	}
	return r, abandoned
}

// settle replaces what was reserved by what an attempt has used. If the graph has ended, so
// has its budget.
func (a *Access) settle(call *Call, reserved, used map[string]int64) {
	if change := spending.Difference(reserved, used); len(change) > 0 {
		_ = call.Spend(a.o.ctx, Spending{Capability: a.ID(), Change: change})
	}
}

// try makes one attempt, and reports whether it was abandoned, as an attempt is that does not end
// in time: it counts as failed, whatever it does later. Then another goroutine has concluded it.
// To bound the number of abandoned attempts, further attempts fail at once while there are as many
// of them as the grant may make at the same time.
func (a *Access) try(call *Call) (r capability.Result, abandoned bool) {
	a.mu.Lock()
	full := a.stuck >= a.limits.Concurrency
	a.mu.Unlock()
	if full {
		r = capability.Failure(abi.Unavailable, "earlier attempts of the capability "+a.ID()+" did not end in time, and use up its concurrency; restart the program")
		r.Again = true
		return r, false
	}
	ctx, cancel := context.WithTimeout(call.ctx, a.limits.Timeout)
	defer cancel()
	made := call.Call // which changes when the watcher repeats it
	w := watch{ended: make(chan struct{}), gone: make(chan struct{})}
	unwatch := context.AfterFunc(ctx, func() {
		defer close(w.gone)
		a.watch(call, &w)
	})
	a.o.count(a.ID(), 1)
	r = a.counted(ctx, made) // which no longer counts afterwards
	if a.wasAbandoned(&w) {
		a.o.enter()
		return r, true
	}
	close(w.ended)
	if !unwatch() {
		<-w.gone
	}
	return r, false
}

// A watch decides between an attempt that ends and one that is abandoned.
type watch struct {
	ended   chan struct{}
	gone    chan struct{} // closed when the watcher, if there is one, has nothing more to do
	decided bool          // guarded by the mutex of the access
}

// watch waits for an attempt whose context has ended. If the attempt does not end, watch takes the
// place of its goroutine.
func (a *Access) watch(call *Call, w *watch) {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-w.ended:
		return
	case <-t.C:
	}
	if !a.abandon(w) {
		return
	}
	defer a.o.leave() // in place of the goroutine, which enters again when the attempt ends
	r := capability.Failure(abi.Deadline, "the capability "+a.ID()+" did not end the attempt within its timeout")
	r.Again = true
	if a.conclude(call, r) {
		a.serve()
	}
}

// abandon counts the attempt as stuck until it ends, unless it has ended.
func (a *Access) abandon(w *watch) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.decided {
		return false
	}
	w.decided = true
	a.stuck++
	return true
}

// wasAbandoned reports whether an attempt that ends was abandoned.
func (a *Access) wasAbandoned(w *watch) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.decided {
		a.stuck--
		return true
	}
	w.decided = true
	return false
}

// do makes the attempt. A capability that panics has failed.
func (a *Access) do(ctx context.Context, call capability.Call) (r capability.Result) {
	defer func() {
		if p := recover(); p != nil {
			r = capability.Failure(abi.Internal, errtext.Clip(fmt.Sprintf("the capability %s panicked: %v", a.ID(), p)))
		}
	}()
	if err := a.Check(call.Request); err != nil {
		return capability.Failure(abi.CodeOf(err), err.Error())
	}
	return a.Do(ctx, call)
}
