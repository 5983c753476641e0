package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/topology"
)

// A creature is held so that its module can be replaced, and is stopped or removed meanwhile. It
// is handed over when its turn ends, whether the caller or a worker runs that turn.
func TestAHeldCreatureIsHandedOverAfterACallersTurn(t *testing.T) {
	needsInstances(t)
	for _, here := range []bool{false, true} {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprint(here, removed), func(t *testing.T) {
				h := newFakeHost()
				x := newClerk(h)
				h.onContext("clerk2", x.handle)
				w := newWorld(t, engine.Options{Host: h, Workers: 2})
				a := w.add("a", "clerk")
				w.wait()
				var all sync.WaitGroup
				all.Go(func() {
					if _, err := w.request(a, engine.Outgoing{Payload: []byte("block")}, here); err != nil && !removed {
						t.Errorf("the request: %v", err)
					}
				})
				<-x.blocked
				var replaced error
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				all.Go(func() {
					_, replaced = w.ReplaceModule(ctx, a, engine.Replacement{Module: "clerk2", Wasm: []byte("clerk2")})
				})
				for !w.Held(a) {
					time.Sleep(time.Millisecond)
				}
				want := abi.OK
				if removed {
					if _, err := w.RemoveCreature(t.Context(), a); err != nil {
						t.Fatal(err)
					}
					want = abi.NotFound
				} else {
					w.change(topology.SetStopped{ID: a, Stopped: true})
				}
				close(x.open)
				all.Wait()
				if abi.CodeOf(replaced) != want {
					t.Errorf("replacing the module: %v, want %s", replaced, want)
				}
				w.wait()
			})
		}
	}
}

// If the host panics, the turn fails and its caller gets the error. The creature and the engine
// continue.
func TestAPanicOfTheHostFailsTheTurn(t *testing.T) {
	needsInstances(t)
	for _, here := range []bool{false, true} {
		h := newFakeHost()
		h.fuel = 1001
		h.on("fragile", func(tn abi.Turn, kind abi.Kind) error {
			if kind != abi.KindRequest {
				return nil
			}
			if payload, _ := tn.Source(abi.SourcePayload); string(payload) == "panic" {
				panic("out of order")
			}
			return codeErr(tn, tn.Reply([]byte("well")))
		})
		w := newWorld(t, engine.Options{Host: h, Workers: 1})
		a := w.add("a", "fragile", func(s *deploy.CreatureSpec) { s.Restart.Attempts, s.Restart.Max = 1, 100 })
		w.wait()
		if _, err := w.request(a, engine.Outgoing{Payload: []byte("panic")}, here); abi.CodeOf(err) != abi.Internal {
			t.Errorf("the request: %v, want internal", err)
		}
		if reply, err := w.request(a, engine.Outgoing{Payload: []byte("more")}, here); string(reply) != "well" || err != nil {
			t.Errorf("the next request: %q, %v", reply, err)
		}
	}
}

// The reply is written to the caller's memory, even if a worker has run the turn. Callers do not
// run turns that a policy may judge, because such turns do not end with the caller's context.
func TestRepliesOfHandedOverTurns(t *testing.T) {
	needsInstances(t)
	h := newFakeHost()
	x := newClerk(h)
	close(x.open)
	w := newWorld(t, engine.Options{Host: h})
	a := w.add("a", "clerk", func(s *deploy.CreatureSpec) { s.Privileged = true })
	w.wait()
	x.awaitParked(w)
	into := make([]byte, 0, 1000)
	reply, err := w.Request(t.Context(), a, engine.Outgoing{Payload: []byte("tool"), Into: into}, 0)
	if err != nil || len(reply) == 0 || &reply[0] != &into[:1][0] {
		t.Errorf("the reply %q is not in the caller's memory; %v", reply, err)
	}
	if x.here.Load() != 1 || x.turns.Load() != 2 {
		t.Errorf("%d of %d turns were run by the caller, want 1 of 2", x.here.Load(), x.turns.Load())
	}

	judged := w.apply(team(2, judgedBy(asksAbout("c1", "never")), func(d *deploy.Deployment) {
		for i := range d.Creatures {
			d.Creatures[i].Module, d.Creatures[i].Wasm = "clerk", []byte("clerk")
		}
	}))
	w.wait()
	before := x.here.Load()
	for range 3 {
		if _, err := w.Request(t.Context(), judged.Creatures["creature.m0"], engine.Outgoing{Payload: []byte("x")}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if x.here.Load() != before {
		t.Error("a caller has run a turn that a policy judges")
	}
}

// TestARetriedTurnHasItsPayload fails a turn after its reply, which is written to the caller's memory
// at once. The next attempt must have the payload as it was, even if the caller gives the memory of
// the payload for the reply.
func TestARetriedTurnHasItsPayload(t *testing.T) {
	needsInstances(t)
	array := make([]byte, 1000)
	for name, into := range map[string][]byte{"none": nil, "apart": make([]byte, 0, 1000), "the payload's": array[:0], "its end": array[500:500]} {
		h := newFakeHost()
		x := newClerk(h)
		close(x.open)
		w := newWorld(t, engine.Options{Host: h})
		a := w.add("a", "clerk", func(s *deploy.CreatureSpec) {
			s.Restart.Attempts, s.Restart.Max, s.Restart.Backoff = 2, 1000, time.Microsecond
		})
		w.wait()
		x.awaitParked(w)
		payload := append(array[:0], "twice"...)
		reply, err := w.Request(t.Context(), a, engine.Outgoing{Payload: payload, Into: into}, 0)
		if err != nil || string(reply) != "re: twice" || x.here.Load() != 1 || x.turns.Load() != 2 {
			t.Errorf("with memory %s: the reply is %q, %v; %d of %d turns were run by the caller, want 1 of 2", name, reply, err, x.here.Load(), x.turns.Load())
		}
		empty, err := w.Request(t.Context(), a, engine.Outgoing{Payload: []byte("x"), Into: into}, 0)
		if err != nil || string(empty) != "re: x" {
			t.Errorf("with memory %s, the next reply is %q, %v", name, empty, err)
		}
	}
}
