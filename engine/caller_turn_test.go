package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// clerk handles requests as their payloads say. It counts the turns, and those that callers have
// run.
type clerk struct {
	here, turns      atomic.Int64
	running, highest atomic.Int64
	replied          atomic.Bool   // a turn for "twice" has failed after its reply
	open             chan struct{} // closed: "block" no longer blocks
	blocked          chan struct{} // gets a value when a turn blocks
}

func newClerk(h *fakeHost) *clerk {
	c := &clerk{open: make(chan struct{}), blocked: make(chan struct{}, 100)}
	h.fuel = 1001
	h.onContext("clerk", c.handle)
	return c
}

func (x *clerk) handle(ctx context.Context, t abi.Turn, kind abi.Kind) error {
	now := x.running.Add(1)
	defer x.running.Add(-1)
	for old := x.highest.Load(); now > old && !x.highest.CompareAndSwap(old, now); old = x.highest.Load() {
	}
	if kind != abi.KindRequest {
		return nil
	}
	x.turns.Add(1)
	if bytes.Contains(debug.Stack(), []byte("requestHere")) {
		x.here.Add(1)
	}
	payload, _ := t.Source(abi.SourcePayload)
	switch what := string(payload); {
	case strings.HasPrefix(what, "block"):
		x.blocked <- struct{}{}
		select {
		case <-x.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	case strings.HasPrefix(what, "trap"):
		t.Log(abi.LevelError, payload)
		return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
	case strings.HasPrefix(what, "twice") && x.replied.CompareAndSwap(false, true):
		if code := t.Reply([]byte("a reply that does not count")); code != abi.OK {
			return codeErr(t, code)
		}
		return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
	case strings.HasPrefix(what, "send"):
		t.Send(abi.AllChannels, payload, nil)
	case strings.HasPrefix(what, "tool"):
		if _, code := t.Tool([]byte("group_status"), []byte("{}")); code != abi.OK {
			return codeErr(t, code)
		}
	case strings.HasPrefix(what, "silence"):
		return nil
	}
	old, _ := t.StateGet([]byte("heard"))
	headers, _ := t.Source(abi.SourceHeaders)
	line := fmt.Sprintf("%s %q\n", payload, headers)
	if code := t.StateSet([]byte("heard"), append(slices.Clone(old), line...)); code != abi.OK {
		return codeErr(t, code)
	}
	return codeErr(t, t.Reply(append([]byte("re: "), payload...)))
}

// awaitParked makes requests of another creature until a caller has run a turn, for which a worker
// must be parked. So the caller of the next request runs its turn too, however busy the machine is.
func (x *clerk) awaitParked(w *world) {
	w.t.Helper()
	probe := w.add("probe", "clerk")
	for x.here.Load() == 0 {
		w.wait()
		if _, err := w.request(probe, engine.Outgoing{Payload: []byte("x")}, true); err != nil {
			w.t.Fatal(err)
		}
	}
	x.here.Store(0)
	x.turns.Store(0)
}

func needsInstances(t *testing.T) {
	t.Helper()
	if fresh.Instances() {
		t.Skip("a creature without an instance is not served by callers")
	}
}

// TestACallersTurnIsLikeAWorkers proves that requests have the same replies and leave the same
// events, counters and state, whether callers or workers run them.
func TestACallersTurnIsLikeAWorkers(t *testing.T) {
	needsInstances(t)
	for seed := range uint64(20) {
		var outcome [2]string
		for way := range outcome {
			r := rand.New(rand.NewPCG(seed, 7))
			h := newFakeHost()
			x := newClerk(h)
			w := newWorld(t, engine.Options{Host: h, Workers: 2, Seed: &seed})
			a := w.add("a", "clerk", func(s *deploy.CreatureSpec) {
				s.Restart.Attempts, s.Restart.Max, s.Restart.Backoff = 2, 1000, time.Microsecond
				s.Limits.Message = 100
			})
			b := w.add("b", "record")
			w.wait() // so that both ways begin in the same state
			w.connect(a, b, "out")
			w.wait()
			events := w.Subscribe(engine.Filter{}, 10_000)
			var out strings.Builder
			for i := range 30 {
				words := []string{"x", "x", "trap", "send", "silence", strings.Repeat("long", 30)}
				payload := fmt.Appendf(nil, "%s %d", words[r.IntN(len(words))], i)
				sent := engine.Outgoing{Payload: payload}
				if r.IntN(3) == 0 {
					sent.Headers = map[string]string{"z": "1", "a": "2"}
				}
				reply, err := w.request(a, sent, way == 0)
				clear(payload) // it belongs to the caller again
				fmt.Fprintf(&out, "%s %v\n", reply, err)
				w.wait()
			}
			fmt.Fprintln(&out, w.state(a, "heard"), w.state(b, "heard"))
			for _, g := range w.status() {
				for _, c := range g.Creatures {
					fmt.Fprintf(&out, "%s %+v\n", c.Name, c.Counters)
				}
			}
			events.Close()
			for ob := range events.All(t.Context()) {
				ev := ob.Event
				ev.Time, ev.Graph = 0, ""
				fmt.Fprintf(&out, "%+v %s %q\n", ev.ID, ev.Kind, ev.Payload)
			}
			outcome[way] = out.String()
			if here := x.here.Load(); (here > 5) != (way == 0) {
				t.Fatalf("seed %d: callers have run %d of %d turns", seed, here, x.turns.Load())
			}
		}
		callers, workers := strings.Split(outcome[0], "\n"), strings.Split(outcome[1], "\n")
		for i := range min(len(callers), len(workers)) {
			if callers[i] != workers[i] {
				t.Fatalf("seed %d: run by callers\n%s\nrun by workers\n%s", seed, callers[i], workers[i])
			}
		}
		if len(callers) != len(workers) {
			t.Fatalf("seed %d: %d lines when run by callers, %d when run by workers", seed, len(callers), len(workers))
		}
	}
}

// TestACallersTurnLeavesToolsToWorkers proves that a worker runs a turn that calls a group tool,
// because it may wait for a change of the topology, and that the turn takes effect once.
func TestACallersTurnLeavesToolsToWorkers(t *testing.T) {
	needsInstances(t)
	h := newFakeHost()
	x := newClerk(h)
	w := newWorld(t, engine.Options{Host: h})
	a := w.add("a", "clerk", func(s *deploy.CreatureSpec) { s.Privileged = true })
	w.wait()
	x.awaitParked(w)
	for i := range 3 {
		reply, err := w.request(a, engine.Outgoing{Payload: fmt.Appendf(nil, "tool %d", i)}, true)
		if err != nil || string(reply) != fmt.Sprintf("re: tool %d", i) {
			t.Fatalf("the reply is %q, %v", reply, err)
		}
	}
	if x.here.Load() != 1 || x.turns.Load() != 4 || strings.Count(w.state(a, "heard"), "\n") != 3 {
		t.Errorf("of %d turns, callers have run %d; the creature has handled %s", x.turns.Load(), x.here.Load(), w.state(a, "heard"))
	}
}

// request makes a request. If here is set, its caller may run the turn; otherwise a worker does.
func (w *world) request(to journal.CreatureID, out engine.Outgoing, here bool) ([]byte, error) {
	if here {
		return w.Request(w.t.Context(), to, out, time.Minute)
	}
	call, err := w.Ask(w.t.Context(), to, out, time.Minute)
	if err != nil {
		return nil, err
	}
	return call.Reply(w.t.Context())
}

// TestACallerLeavesItsTurn proves that a caller whose context ends, or whose deadline
// passes, does not wait for the turn, and that a worker handles the request once, with the
// payload as it was sent.
func TestACallerLeavesItsTurn(t *testing.T) {
	needsInstances(t)
	for want, deadline := range map[abi.Code]time.Duration{abi.UnknownOutcome: time.Minute, abi.Deadline: 20 * time.Millisecond} {
		// On a busy machine, the worker may not be parked yet, or the deadline may pass too early.
		// Then the caller does not run the turn.
		for tries := 1; !leaveTurn(t, want, deadline); tries++ {
			if deadline = min(2*deadline, time.Minute); tries == 8 {
				t.Fatalf("%s: the caller has not run the turn", want)
			}
		}
	}
}

// leaveTurn lets a caller leave a turn that blocks. It reports whether the caller has run it.
func leaveTurn(t *testing.T, want abi.Code, deadline time.Duration) bool {
	t.Helper()
	h := newFakeHost()
	x := newClerk(h)
	w := newWorld(t, engine.Options{Host: h, Workers: 1})
	a := w.add("a", "clerk")
	w.wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if want == abi.UnknownOutcome {
		go func() {
			<-x.blocked
			cancel()
		}()
	}
	payload := []byte("block")
	_, err := w.Request(ctx, a, engine.Outgoing{Payload: payload}, deadline)
	copy(payload, "wrong")
	left := x.here.Load() == 1
	close(x.open)
	w.wait()
	if !left {
		return false
	}
	if abi.CodeOf(err) != want {
		t.Fatalf("the caller got %v, want %s", err, want)
	}
	if got := w.state(a, "heard"); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "block ") {
		t.Errorf("%s: the creature has handled %q", want, got)
	}
	return true
}

// TestCloseInterruptsACallersTurn proves that Close interrupts a turn that a caller runs and
// that does not end by itself.
func TestCloseInterruptsACallersTurn(t *testing.T) {
	needsInstances(t)
	h := newFakeHost()
	x := newClerk(h)
	w := newWorld(t, engine.Options{Host: h, Workers: 1, ShutdownTimeout: 300 * time.Millisecond})
	a := w.add("a", "clerk")
	w.wait()
	got := make(chan error, 1)
	go func() {
		_, err := w.Request(context.Background(), a, engine.Outgoing{Payload: []byte("block")}, 0)
		got <- err
	}()
	<-x.blocked
	w.close()
	if err := <-got; abi.CodeOf(err) != abi.UnknownOutcome {
		t.Errorf("the caller got %v, want unknown_outcome", err)
	}
}

// TestWorkersBoundCallersTurns proves that no more turns run at a time than the engine has
// workers, although callers run some of them.
func TestWorkersBoundCallersTurns(t *testing.T) {
	needsInstances(t)
	for _, workers := range []int{1, 2} {
		h := newFakeHost()
		x := newClerk(h)
		w := newWorld(t, engine.Options{Host: h, Workers: workers})
		var creatures []journal.CreatureID
		for i := range 4 {
			creatures = append(creatures, w.add(fmt.Sprint("c", i), "clerk"))
		}
		w.wait()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				into := make([]byte, 0, 64)
				for n := range 200 {
					payload := fmt.Appendf(nil, "x %d %d", i, n)
					reply, err := w.Request(t.Context(), creatures[(i+n)%4], engine.Outgoing{Payload: payload, Into: into}, 0)
					if err != nil || string(reply) != "re: "+string(payload) || &reply[0] != &into[:1][0] {
						t.Errorf("%s is answered with %q, %v", payload, reply, err)
						return
					}
				}
			})
		}
		all.Wait()
		if got := x.highest.Load(); got > int64(workers) {
			t.Errorf("%d turns ran at a time with %d workers", got, workers)
		}
		if x.here.Load() == 0 {
			t.Error("callers have run no turn")
		}
		w.wait()
	}
}

// TestCallersTurnsBesideChanges proves that every request gets its own reply or an expected
// error, whatever changes meanwhile.
func TestCallersTurnsBesideChanges(t *testing.T) {
	needsInstances(t)
	for seed := range uint64(4) {
		h := newFakeHost()
		x := newClerk(h)
		w := newWorld(t, engine.Options{Host: h, Workers: 1 + int(seed%2)})
		add := func(i int, n int) journal.CreatureID {
			return w.add(fmt.Sprintf("c%d_%d", i, n), "clerk", func(s *deploy.CreatureSpec) { s.Restart.Backoff = time.Microsecond })
		}
		var names [3]atomic.Value
		for i := range names {
			names[i].Store(add(i, 0))
		}
		var requests atomic.Int64
		stop := make(chan struct{})
		var callers sync.WaitGroup
		for i := range 4 {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			callers.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					word := []string{"x", "x", "x", "send", "silence", "block"}[r.IntN(6)]
					payload := fmt.Appendf(nil, "%s %d %d", word, i, n)
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(2000))*time.Microsecond)
					reply, err := w.Request(ctx, names[r.IntN(3)].Load().(journal.CreatureID), engine.Outgoing{Payload: payload}, time.Minute)
					cancel()
					requests.Add(1)
					switch code := abi.CodeOf(err); code {
					case abi.OK:
						if string(reply) != "re: "+string(payload) {
							t.Errorf("the reply to %s is %q", payload, reply)
						}
					case abi.UnknownOutcome, abi.NotFound, abi.NotConnected, abi.Unavailable, abi.Stopped:
					default:
						t.Errorf("the request %s failed with %v", payload, err)
					}
				}
			})
		}
		close(x.open)
		r := rand.New(rand.NewPCG(seed, 99))
		for n := 0; n < 60 || requests.Load() < 500; n++ {
			i := r.IntN(3)
			a, b := names[i].Load().(journal.CreatureID), names[(i+1)%3].Load().(journal.CreatureID)
			switch r.IntN(4) {
			case 0:
				w.change(topology.Connect{From: a, To: b, Name: fmt.Sprint("ch", n)})
			case 1:
				names[i].Store(add(i, n+1))
				if _, err := w.RemoveCreature(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			case 2:
				w.change(topology.SetStopped{ID: a, Stopped: true})
				w.change(topology.SetStopped{ID: a})
			case 3:
				if _, err := w.Status(""); err != nil {
					t.Fatal(err)
				}
			}
		}
		if seed%2 == 0 {
			w.close() // while the callers make requests
		}
		close(stop)
		callers.Wait()
		if seed%2 == 1 {
			w.wait()
		}
		if x.here.Load() == 0 {
			t.Error("callers have run no turn")
		}
	}
}
