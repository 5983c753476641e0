package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// slow adds a behaviour that records. In each turn that handles a message, it first puts a token
// into begun, and waits for let.
func (h *fakeHost) slow(name string) (begun, let chan struct{}) {
	begun, let = make(chan struct{}, 1024), make(chan struct{})
	record := h.behaviours["record"]
	h.on(name, func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			begun <- struct{}{}
			<-let
		}
		return record(t, kind)
	})
	return begun, let
}

func bounded(n int, o deploy.Overflow) func(*deploy.CreatureSpec) {
	return func(c *deploy.CreatureSpec) { c.Limits.Mailbox, c.Overflow = n, o }
}

func TestOverflowPolicies(t *testing.T) {
	for _, test := range []struct {
		policy deploy.Overflow
		want   string
		dead   int64
	}{
		{deploy.OverflowDropOldest, "in:0\nin:3\nin:4\n", 0},
		{deploy.OverflowDeadLetter, "in:0\nin:1\nin:2\n", 2},
	} {
		t.Run(test.policy.String(), func(t *testing.T) {
			h := newFakeHost()
			begun, let := h.slow("slow")
			w := newWorld(t, engine.Options{Host: h})
			a := w.add("a", "slow", bounded(2, test.policy))
			in := w.connect(a, a, "in")
			w.send(in, "0")
			<-begun // it is being handled, and the mailbox is empty
			for i := range 4 {
				w.send(in, fmt.Sprint(i+1))
			}
			close(let)
			w.wait()
			if got := w.state(a, "heard"); got != test.want || w.DeadLetterCount() != test.dead {
				t.Errorf("the creature heard %q with %d dead letters, want %q with %d", got, w.DeadLetterCount(), test.want, test.dead)
			}
		})
	}
}

// full makes a creature whose mailbox is full, and a publisher that waits.
func full(t *testing.T, w *world, begun chan struct{}) (a journal.CreatureID, in journal.ChannelID, sent chan error) {
	a = w.add("a", "slow", bounded(2, deploy.OverflowBlock))
	in = w.connect(a, a, "in")
	w.send(in, "0")
	<-begun
	w.send(in, "1")
	w.send(in, "2")
	w.connect(w.add("other", "sink"), a, "elsewhere")
	other, err := w.FindChannel("", "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	sent = make(chan error, 1)
	go func() {
		_, err := w.Send(context.Background(), other, engine.Outgoing{Payload: []byte("3")})
		sent <- err
	}()
	synctest.Wait()
	select {
	case err := <-sent:
		t.Fatalf("the publisher did not wait: %v", err)
	default:
	}
	return a, in, sent
}

// TestAFullMailboxHoldsPublishersUntil covers the events that end the wait of an outside
// publisher for a full mailbox.
func TestAFullMailboxHoldsPublishersUntil(t *testing.T) {
	for name, release := range map[string]func(w *world, a journal.CreatureID, in journal.ChannelID, let chan struct{}){
		"it is half empty": func(_ *world, _ journal.CreatureID, _ journal.ChannelID, let chan struct{}) { let <- struct{}{} },
		"its channel is removed": func(w *world, _ journal.CreatureID, in journal.ChannelID, _ chan struct{}) {
			w.change(topology.RemoveChannel{ID: in})
		},
		"it is stopped": func(w *world, a journal.CreatureID, _ journal.ChannelID, _ chan struct{}) {
			w.change(topology.SetStopped{ID: a, Stopped: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newFakeHost()
				begun, let := h.slow("slow")
				w := newWorld(t, engine.Options{Host: h})
				a, in, sent := full(t, w, begun)
				release(w, a, in, let)
				if err := <-sent; err != nil {
					t.Errorf("Send: %v", err)
				}
				close(let)
				w.wait()
			})
		})
	}
}

func TestAWaitingPublisherLearnsThatTheEngineCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost()
		begun, let := h.slow("slow")
		w := newWorld(t, engine.Options{Host: h})
		_, _, sent := full(t, w, begun)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			w.close()
		}()
		if err := <-sent; abi.CodeOf(err) != abi.Stopped {
			t.Errorf("Send: %v, want stopped", err)
		}
		close(let)
		<-closed
	})
}

func TestAFullMailboxOfAVolatileGraphIsNoneWithAStore(t *testing.T) {
	h := newFakeHost()
	begun, let := h.slow("slow")
	s := newSaved(t, engine.Options{Host: h})
	none := journal.Volatile
	slow := spec("a", "slow")
	slow.Address, slow.Limits.Mailbox = "creature.a", 2
	slow.Listen = []deploy.WireSpec{{Channel: "channel.in"}}
	a := s.apply(&deploy.Deployment{
		Name: "d", Session: deploy.SessionSettings{Durability: &none},
		Channels:  []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}},
		Creatures: []deploy.CreatureSpec{slow},
	})
	in := a.Channels["channel.in"]
	s.send(in, "0")
	<-begun
	s.send(in, "1")
	s.send(in, "2") // full
	sent := make(chan error, 1)
	go func() {
		_, err := s.Send(t.Context(), in, engine.Outgoing{Payload: []byte("3")})
		sent <- err
	}()
	s.connect(s.add("durable", "sink"), a.Creatures["creature.a"], "bridge")
	if err := <-sent; err != nil {
		t.Errorf("Send: %v", err)
	}
	close(let)
	s.wait()
	want := ""
	for i := range 4 {
		want += fmt.Sprintf("in:%d\n", i)
	}
	if got := s.state(a.Creatures["creature.a"], "heard"); got != want {
		t.Errorf("the creature heard %q, want %q", got, want)
	}
}

func TestRemovalLeavesADeadLetterForEveryDelivery(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			h := newFakeHost()
			begun, let := h.slow("slow")
			var w *world
			if durable {
				w = newSaved(t, engine.Options{Host: h}).world
			} else {
				w = newWorld(t, engine.Options{Host: h})
			}
			a, b := w.add("a", "slow", bounded(2, deploy.OverflowBlock)), w.add("b", "sink")
			in := w.connect(b, a, "in")
			n := 3
			if durable {
				n = 20 // more than the window
			}
			events := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventDeadLetter}, Creatures: []journal.CreatureID{a}}, 0)
			w.send(in, "0")
			<-begun
			for i := 1; i < n; i++ {
				w.send(in, fmt.Sprint(i))
			}
			w.change(topology.RemoveCreature{ID: a})
			close(let)
			w.wait()
			events.Close()
			seen := map[uint64]bool{}
			for ob := range events.All(t.Context()) {
				if seen[ob.Event.Seq] || !strings.Contains(string(ob.Event.Payload), "creature_removed") {
					t.Errorf("%d: %s", ob.Event.Seq, ob.Event.Payload)
				}
				seen[ob.Event.Seq] = true
			}
			if len(seen) != n || w.DeadLetterCount() != int64(n) {
				t.Errorf("%d dead letters for %d messages, %d counted", len(seen), n, w.DeadLetterCount())
			}
		})
	}
}

func TestARemovedCreatureThatWaitedIsClosedWithTheEngine(t *testing.T) {
	h := newFakeHost()
	begun, let := h.slow("slow")
	w := newWorld(t, engine.Options{Host: h, Workers: 1})
	a, b := w.add("a", "slow"), w.add("b", "sink")
	w.wait()
	in, to := w.connect(a, a, "in"), w.connect(b, b, "to")
	w.send(in, "0")
	<-begun // the only worker is busy
	w.send(to, "1")
	w.change(topology.RemoveCreature{ID: b})
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		w.close() // counts instances
	}()
	for {
		if _, err := w.Send(t.Context(), in, engine.Outgoing{}); err != nil {
			break // it has begun to close
		}
	}
	close(let)
	<-closed
}

func TestACreatureMayWriteToItself(t *testing.T) {
	h := newFakeHost()
	h.on("thinker", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		b, _ := t.Source(abi.SourcePayload)
		if len(b) < 4 {
			self, _ := t.Source(abi.SourceSelf)
			return codeErr(t, t.SendTo([]byte(string(self)), append([]byte("x"), b...)))
		}
		return codeErr(t, t.StateSet([]byte("done"), b))
	})
	w := newWorld(t, engine.Options{Host: h})
	a := w.add("a", "thinker")
	if _, err := w.SendTo(t.Context(), a, engine.Outgoing{Payload: []byte("y")}); err != nil {
		t.Fatal(err)
	}
	w.wait()
	if got := w.state(a, "done"); got != "xxxy" {
		t.Errorf("done is %q", got)
	}
}

func TestCloseInterruptsAHangingTurnAsIfItHadNotBegun(t *testing.T) {
	h := newFakeHost()
	begun := make(chan struct{}, 1)
	hang := true
	h.onContext("hang", func(ctx context.Context, t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage && hang {
			begun <- struct{}{}
			<-ctx.Done()
			return &abi.Error{Code: abi.Deadline, Message: "interrupted"}
		}
		return h.behaviours["record"](t, kind)
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.add("a", "hang")
	in := s.connect(a, a, "in")
	s.send(in, "1")
	s.send(in, "2")
	<-begun
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	hang = false
	s.reopen()
	s.wait()
	if got, want := s.state(a, "heard"), "in:1\nin:2\n"; got != want {
		t.Errorf("the creature heard %q, want %q", got, want)
	}
	if n := len(s.events(a, journal.EventTurnFailed)); n != 0 {
		t.Errorf("%d failed turns", n)
	}
}
