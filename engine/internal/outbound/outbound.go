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
	work   sync.WaitGroup

	mu       sync.Mutex
	grants   map[[sha256.Size]byte]weak.Pointer[Access]
	attempts map[string]int // attempts under way, by the id of the capability
	closed   bool
}

// grace is the time that an attempt has to end after its context has ended.
const grace = time.Second

// New returns an Outbound for kinds of capabilities. now is the clock for their rates. The
// Outbound must be closed. ctx only carries values; its end has no effect.
func New(ctx context.Context, kinds []capability.Kind, now func() time.Time) *Outbound {
	o := &Outbound{now: now, kinds: map[string]capability.Kind{}, grants: map[[sha256.Size]byte]weak.Pointer[Access]{}, attempts: map[string]int{}}
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
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.cancel()
	o.work.Wait()
	for _, p := range o.grants {
		if a := p.Value(); a != nil {
			a.close()
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
		o.work.Go(f)
	}
	return !o.closed
}

// Access is a grant. All creatures that have it from the same declaration share it.
type Access struct {
	deploy.Capability
	grant
	id string // of the capability
	o  *Outbound

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
			out[c.ID()] = &Access{Capability: *c, id: c.ID()}
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
	opened, err := openGrant(kind, c)
	if err != nil {
		return nil, err
	}
	a := &Access{Capability: *c, grant: opened, id: c.ID(), o: o, lanes: map[string][]*Call{}}
	// Close the grant once no creature and no attempt has the access.
	runtime.AddCleanup(a, func(g grant) { g.close() }, opened)
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

// ID is that of the capability, without the cost of putting it together.
func (a *Access) ID() string { return a.id }

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
// attempts, which all creatures share.
func (a *Access) settleIn(creature string) {
	for {
		a.mu.Lock()
		lane := a.lanes[creature]
		if len(lane) == 0 {
			delete(a.lanes, creature)
			a.mu.Unlock()
			return
		}
		a.lanes[creature] = lane[1:]
		a.mu.Unlock()
		call := lane[0]
		switch now := call.Begin(call.ctx); {
		case call.ctx.Err() != nil, now == nil:
			call.drop()
		default:
			now.enqueue(call)
		}
	}
}

func (a *Access) enqueue(call *Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, call)
	if a.running < a.limits.Concurrency {
		a.running++
		a.o.start(a.serve)
	}
}

// serve makes attempts as long as requests wait.
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
		a.attempt(call)
	}
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

// attempt executes a request once.
func (a *Access) attempt(call *Call) {
	now := call.Begin(call.ctx) // which does not wait again
	switch {
	case call.ctx.Err() != nil, now == nil:
		call.drop()
		return
	case now != a: // its recipe was applied again
		now.enqueue(call)
		return
	}
	call.Attempt++
	r := a.metered(call)
	switch {
	case a.o.ctx.Err() != nil, call.ctx.Err() != nil && r.Code != abi.OK:
		call.drop() // if it stays open, it is executed again when the session is resumed
	case r.Code != abi.OK && r.Again && call.Attempt <= a.limits.Retries:
		wait := a.limits.Pause(call.Attempt, r.After)
		call.after(func() {
			if pause(call.ctx, wait) {
				a.enqueue(call)
			} else {
				call.drop()
			}
		})
	default:
		// Delivering waits for room in the inbox of the creature, so it must not keep a place.
		call.after(func() { call.end(r, a.limits.DeadLetter) })
	}
}

// metered is one attempt, within the budgets.
func (a *Access) metered(call *Call) capability.Result {
	if a.meter == nil {
		r, _ := a.try(call)
		return r
	}
	most, err := a.forecast(call.Request)
	if err != nil {
		return failed(err)
	}
	if err := call.Spend(a.o.ctx, Spending{a.ID(), a.limited, most}); err != nil {
		r := failed(err)
		if r.Again = r.Code == abi.Storage; r.Again {
			a.settle(call, most, nil)
		}
		return r
	}
	r, ended := a.try(call)
	if ended && (call.ctx.Err() == nil || r.Code == abi.OK) && a.o.ctx.Err() == nil {
		a.settle(call, most, r.Used)
	}
	return r
}

// settle replaces what was reserved by what an attempt has used. If the graph has ended, so
// has its budget.
func (a *Access) settle(call *Call, reserved, used map[string]int64) {
	if change := spending.Difference(reserved, used); len(change) > 0 {
		_ = call.Spend(a.o.ctx, Spending{Capability: a.ID(), Change: change})
	}
}

// try makes one attempt, and reports whether it ended. An attempt that does not end in time is
// abandoned: it counts as failed, whatever it does later. To bound the number of abandoned
// attempts, further attempts fail at once while there are as many of them as the grant may make
// at the same time.
func (a *Access) try(call *Call) (r capability.Result, ended bool) {
	a.mu.Lock()
	full := a.stuck >= a.limits.Concurrency
	a.mu.Unlock()
	if full {
		r = capability.Failure(abi.Unavailable, "earlier attempts of the capability "+a.ID()+" did not end in time, and use up its concurrency; restart the program")
		r.Again = true
		return r, true
	}
	ctx, cancel := context.WithTimeout(call.ctx, a.limits.Timeout)
	defer cancel()
	done := make(chan capability.Result, 1)
	a.o.count(a.ID(), 1)
	go func(call capability.Call) {
		done <- a.counted(ctx, call) // once it is here, it no longer counts
	}(call.Call)
	select {
	case r := <-done:
		return r, true
	case <-ctx.Done():
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case r := <-done:
		return r, true
	case <-t.C:
	}
	a.abandon(done)
	r = capability.Failure(abi.Deadline, "the capability "+a.ID()+" did not end the attempt within its timeout")
	r.Again = true
	return r, false
}

// abandon counts an attempt as stuck until it ends.
func (a *Access) abandon(done <-chan capability.Result) {
	add := func(n int) {
		a.mu.Lock()
		a.stuck += n
		a.mu.Unlock()
	}
	add(1)
	go func() {
		<-done
		add(-1)
	}()
}
