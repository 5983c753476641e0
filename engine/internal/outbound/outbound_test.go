package outbound

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/spending"
	"github.com/seed47132306/terrarium/engine/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kind is a capability whose attempts a test executes.
type kind struct {
	do     func(context.Context, capability.Call) capability.Result
	limits capability.Limits
	view   map[string]any
}

func (*kind) Name() string                                                  { return "test" }
func (*kind) Settings() []capability.Setting                                { return nil }
func (k *kind) Open(json.RawMessage) (capability.Grant, error)              { return k, nil }
func (*kind) Check(capability.Request) error                                { return nil }
func (k *kind) View(capability.Request) map[string]any                      { return k.view }
func (k *kind) Limits() capability.Limits                                   { return k.limits }
func (*kind) Allows() []string                                              { return nil }
func (*kind) Warnings() []capability.Warning                                { return nil }
func (k *kind) Do(ctx context.Context, c capability.Call) capability.Result { return k.do(ctx, c) }
func (*kind) Amend(r capability.Request, _ json.RawMessage) (capability.Request, error) {
	return r, nil
}

// open returns an access to a capability that is closed with the test.
func open(t *testing.T, k *kind) *Access {
	t.Helper()
	o := New(t.Context(), []capability.Kind{k}, time.Now)
	t.Cleanup(o.Close)
	held, err := o.Open("a", []deploy.Capability{{Kind: "test", Name: "main"}})
	if err != nil {
		t.Fatal(err)
	}
	return held["test.main"]
}

// request is a call that reports its result to events.
func request(a *Access, creature, body string, events chan<- string) *Call {
	return &Call{
		Call:  capability.Call{Creature: creature, Key: body, Request: capability.Request{Body: []byte(body)}},
		Begin: func(context.Context) *Access { return a },
		End:   func(_ context.Context, r capability.Result, _ bool) { events <- body + " " + r.Code.String() },
		Drop:  func() { events <- body + " dropped" },
	}
}

func expect(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, <-events)
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWaitingTakesNoPlace proves that two requests do not keep others from their attempts: one
// whose store is slow, and one whose creature has no room for the result.
func TestWaitingTakesNoPlace(t *testing.T) {
	k := &kind{limits: capability.Limits{Concurrency: 1}, do: func(context.Context, capability.Call) capability.Result { return capability.Result{} }}
	a, events, release := open(t, k), make(chan string, 8), make(chan struct{})
	slow := request(a, "slow", "slow", events)
	slow.Begin = func(context.Context) *Access {
		<-release
		return a
	}
	full := request(a, "full", "full", events)
	full.End = func(_ context.Context, r capability.Result, _ bool) {
		events <- "full has a result"
		<-release
		events <- "full " + r.Code.String()
	}
	a.Start(slow)
	a.Start(full)
	expect(t, events, "full has a result")
	a.Start(request(a, "other", "other", events))
	expect(t, events, "other ok")
	close(release)
	expect(t, events, "full ok", "slow ok")
}

// TestAnAttemptWithAResultHasEnded looks for attempts under way each time that there is a
// result. A shutdown that waits for results must not find any.
func TestAnAttemptWithAResultHasEnded(t *testing.T) {
	k := &kind{limits: capability.Limits{Concurrency: 1}, do: func(context.Context, capability.Call) capability.Result { return capability.Result{} }}
	a, left := open(t, k), make(chan []string)
	for range 5000 {
		c := request(a, "one", "one", nil)
		c.End = func(context.Context, capability.Result, bool) { left <- a.o.Attempts() }
		a.Start(c)
		if got := <-left; len(got) > 0 {
			t.Fatalf("attempts are under way after the result: %q", got)
		}
	}
}

// TestAttemptsThatDoNotEnd has attempts that ignore the end of their context. Each is abandoned,
// and the next request gets its place, until as many are stuck as may be made at the same time.
// When one of them ends, there is an attempt again.
func TestAttemptsThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		k := &kind{limits: capability.Limits{Concurrency: 2, Timeout: time.Second, Retries: 1}, do: func(_ context.Context, c capability.Call) capability.Result {
			if strings.HasPrefix(c.Key, "stuck") {
				<-release
			}
			return capability.Result{}
		}}
		o := New(t.Context(), []capability.Kind{k}, time.Now)
		held, err := o.Open("a", []deploy.Capability{{Kind: "test", Name: "main"}})
		if err != nil {
			t.Fatal(err)
		}
		a, events := held["test.main"], make(chan string, 16)
		a.Start(request(a, "a", "stuck", events))
		a.Start(request(a, "a", "works", events))
		expect(t, events, "works ok")
		expect(t, events, "stuck deadline") // after two attempts
		if got := o.Attempts(); !slices.Equal(got, []string{"2 attempts of the capability test.main"}) {
			t.Errorf("the attempts under way are %q", got)
		}
		a.Start(request(a, "b", "refused", events))
		expect(t, events, "refused unavailable")
		release <- struct{}{}
		synctest.Wait()
		a.Start(request(a, "b", "works again", events))
		expect(t, events, "works again ok")
		o.Close() // does not wait for the attempt that is stuck
		close(release)
		synctest.Wait()
		if got := o.Attempts(); len(got) > 0 {
			t.Errorf("the attempts under way are %q", got)
		}
	})
}

// TestRequestsOfACreatureKeepTheirOrder has a store that is slow for the first request.
func TestRequestsOfACreatureKeepTheirOrder(t *testing.T) {
	var got []string // appended by one attempt at a time
	k := &kind{limits: capability.Limits{Concurrency: 1}, do: func(_ context.Context, c capability.Call) capability.Result {
		got = append(got, c.Key)
		return capability.Result{}
	}}
	a, events, release := open(t, k), make(chan string, 128), make(chan struct{})
	var want, ends []string
	for i := range 100 {
		body := string(rune('A' + i))
		call := request(a, "a", body, events)
		if i == 0 {
			call.Begin = func(context.Context) *Access {
				<-release
				return a
			}
		}
		a.Start(call)
		want, ends = append(want, body), append(ends, body+" ok")
	}
	close(release)
	expect(t, events, ends...)
	if !slices.Equal(got, want) {
		t.Errorf("the order of the attempts was %q", got)
	}
}

// TestInterrupt proves what happens to a call that is interrupted in each of its states.
func TestInterrupt(t *testing.T) {
	begun := make(chan struct{}, 8)
	k := &kind{limits: capability.Limits{Concurrency: 2, Retries: 1, Backoff: time.Hour, BackoffMax: time.Hour, Timeout: time.Hour}, do: func(ctx context.Context, c capability.Call) capability.Result {
		r := capability.Failure(abi.Unavailable, "")
		if strings.HasPrefix(c.Key, "again") {
			r.Again = true
			return r
		}
		begun <- struct{}{}
		<-ctx.Done()
		if c.Key == "success" {
			return capability.Result{}
		}
		return r
	}}
	a, events := open(t, k), make(chan string, 8)
	for _, tt := range []struct{ body, want string }{{"attempt", "attempt dropped"}, {"success", "success ok"}} {
		call := request(a, "a", tt.body, events)
		a.Start(call)
		<-begun
		call.Interrupt()
		expect(t, events, tt.want)
	}
	// A call is interrupted in the pause before another attempt, and while it waits for the
	// store.
	pausing := request(a, "a", "again", events)
	paused := make(chan struct{})
	pausing.Begin = func(context.Context) *Access {
		select {
		case <-paused:
		default:
			close(paused)
		}
		return a
	}
	a.Start(pausing)
	<-paused
	pausing.Interrupt()
	expect(t, events, "again dropped")
	storing := request(a, "a", "storing", events)
	storing.Begin = func(ctx context.Context) *Access {
		begun <- struct{}{}
		<-ctx.Done()
		return a
	}
	a.Start(storing)
	<-begun
	storing.Interrupt()
	expect(t, events, "storing dropped")
	// A call that was not started cannot be interrupted.
	(*Call)(nil).Interrupt()
	request(a, "a", "never", events).Interrupt()
	if len(events) > 0 {
		t.Errorf("an interrupted call that was not started reported %q", <-events)
	}
}

// closing is a kind whose grants are closed.
type closing struct {
	*kind
	closed chan struct{}
}

func (k *closing) Open(json.RawMessage) (capability.Grant, error) {
	return &closingGrant{k.kind, k}, nil
}

type closingGrant struct {
	*kind
	k *closing
}

func (g *closingGrant) Close() error {
	g.k.closed <- struct{}{}
	return nil
}

// TestGrantsAreClosed proves that a grant is closed when no creature has it any longer, and
// when the engine closes.
func TestGrantsAreClosed(t *testing.T) {
	k := &closing{&kind{}, make(chan struct{}, 8)}
	o := New(t.Context(), []capability.Kind{k}, time.Now)
	granted := func(settings string) map[string]*Access {
		held, err := o.Open("a", []deploy.Capability{{Kind: "test", Name: "main", Settings: json.RawMessage(settings)}})
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	granted(`{"first":1}`)
	second := granted(`{"second":2}`)
	for closed := false; !closed; {
		runtime.GC()
		select {
		case <-k.closed:
			closed = true
		default:
			runtime.Gosched()
		}
	}
	if len(k.closed) > 0 {
		t.Error("the grant that is in use was closed too")
	}
	runtime.KeepAlive(second)
	o.Close()
	if len(k.closed) != 1 {
		t.Errorf("%d grants were closed with the engine, want 1", len(k.closed))
	}
}

// TestBrief proves that a plan describes a request in one line, without secrets.
func TestBrief(t *testing.T) {
	a := open(t, &kind{view: map[string]any{"method": "GET\n    evil:", "host": "api.example.com", "path": "/bot123:swordfish/send"}})
	for secret, want := range map[bool]string{false: "GET evil: api.example.com/bot123:swordfish/send", true: "GET evil: api.example.com"} {
		if got := a.Brief(&journal.OutboundRequest{}, secret); got != want {
			t.Errorf("with secrets %t: %q, want %q", secret, got, want)
		}
	}
}

// TestHeldAlwaysHasWhatItAllows has a capability that does not say what it allows. That is
// different from a capability that lacks settings.
func TestHeldAlwaysHasWhatItAllows(t *testing.T) {
	a := open(t, &kind{})
	got := Held(map[string]*Access{"test.main": a, "test.other": {Capability: deploy.Capability{Lacking: true}}}, "c1", &spending.Ledger{})
	if len(got) != 2 || got[0].Allows == nil || got[1].Allows != nil {
		t.Errorf("the capabilities are %+v", got)
	}
}
