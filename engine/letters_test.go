package engine_test

import (
	"context"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// If a split moves the target of a direct message into another graph during the turn, the
// message becomes a dead letter of the sender's graph. It can be redelivered, and is then
// removed.
func TestADirectMessageAcrossASplitCanBeRedelivered(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		o.Host = h
		sending, release := make(chan struct{}), make(chan struct{})
		h.onContext("sender", func(ctx context.Context, tn abi.Turn, kind abi.Kind) error {
			if kind != abi.KindMessage {
				return nil
			}
			code := tn.SendTo([]byte("b"), []byte("hello"))
			close(sending)
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
			return codeErr(tn, code)
		})
		w := newWorld(t, o)
		a, b := w.add("a", "sender"), w.add("b", "record")
		link := w.connect(a, b, "link")
		if _, err := w.SendTo(t.Context(), a, engine.Outgoing{}); err != nil {
			t.Fatal(err)
		}
		<-sending
		w.change(topology.SetEdge{Creature: b, Channel: link, Direction: journal.Listen})
		close(release)
		w.wait()

		ga := w.graph(a)
		letters, err := w.DeadLetters(t.Context(), ga, "", journal.EventID{}, 0)
		if err != nil || len(letters) != 1 {
			t.Fatalf("dead letters: %v, %v; want one", letters, err)
		}
		if l := letters[0]; l.Creature != b || l.Sender != a || l.Reason != journal.DeadNotConnected || string(l.Payload) != "hello" {
			t.Errorf("the dead letter is %+v", l)
		}
		if _, err := w.Redeliver(t.Context(), ga, letters[0].ID); err != nil {
			t.Fatal(err)
		}
		w.wait()
		if got := w.state(b, "heard"); got != "b:hello\n" {
			t.Errorf("b heard %q", got)
		}
		if letters, err = w.DeadLetters(t.Context(), ga, "", journal.EventID{}, 0); err != nil || len(letters) != 0 {
			t.Errorf("after redelivery there are %v, %v", letters, err)
		}
		if _, err := w.Redeliver(t.Context(), ga, journal.EventID{Seq: 1}); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("an unknown dead letter: %v, want not_found", err)
		}
	})
}

// A dead letter whose delivery has failed all its attempts gets as many attempts again.
func TestADeadLetterIsTriedAgain(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		o.Host = h
		broken := true
		h.on("fragile", func(tn abi.Turn, kind abi.Kind) error {
			if kind != abi.KindMessage {
				return nil
			}
			if broken {
				tn.Log(abi.LevelError, []byte("not today"))
				return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
			}
			payload, _ := tn.Source(abi.SourcePayload)
			return note(tn, string(payload))
		})
		w := newWorld(t, o)
		c := w.add("c", "fragile", func(s *deploy.CreatureSpec) { s.Restart.Mode = deploy.RestartNever })
		in := w.connect(c, c, "in")
		sent := w.send(in, "precious")
		w.wait()
		letters, err := w.DeadLetters(t.Context(), w.graph(c), c, journal.EventID{}, 0)
		if err != nil || len(letters) != 1 {
			t.Fatalf("dead letters: %v, %v; want one", letters, err)
		}
		if l := letters[0]; l.Message != sent.Message || l.Attempts != 1 || l.LastWords != "not today" || l.Reason != "trapped" {
			t.Errorf("the dead letter is %+v", l)
		}
		broken = false // no turn is running
		if _, err := w.Redeliver(t.Context(), w.graph(c), sent.Message); err != nil {
			t.Fatal(err)
		}
		w.wait()
		if got := w.state(c, "heard"); got != "precious\n" {
			t.Errorf("c heard %q", got)
		}
	})
}

// A send whose edge was removed during the turn becomes a dead letter. It is redelivered on the
// channel that the sender then calls by that alias.
func TestASendWithoutAnEdgeCanBeRedelivered(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		o.Host = h
		sending, release := make(chan struct{}, 1), make(chan struct{})
		h.onContext("sender", func(ctx context.Context, tn abi.Turn, kind abi.Kind) error {
			if kind != abi.KindMessage {
				return nil
			}
			err := status(tn, tn.Send(tn.Channel([]byte("out")), []byte("hello"), nil))
			sending <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
			return err
		})
		w := newWorld(t, o)
		a, b := w.add("a", "sender"), w.add("b", "record")
		out := w.connect(a, b, "out")
		w.connect(b, a, "back") // keeps them in one graph
		if _, err := w.SendTo(t.Context(), a, engine.Outgoing{}); err != nil {
			t.Fatal(err)
		}
		<-sending
		w.change(topology.SetEdge{Creature: a, Channel: out, Direction: journal.Send})
		close(release)
		w.wait()
		letters, err := w.DeadLetters(t.Context(), w.graph(a), "", journal.EventID{}, 0)
		if err != nil || len(letters) != 1 || letters[0].Alias != "out" {
			t.Fatalf("dead letters: %+v, %v; want one with the alias out", letters, err)
		}
		if _, err := w.Redeliver(t.Context(), w.graph(a), letters[0].ID); abi.CodeOf(err) != abi.NotConnected {
			t.Errorf("without an edge: %v, want not_connected", err)
		}
		w.change(topology.SetEdge{Creature: a, Channel: out, Direction: journal.Send, On: true})
		if _, err := w.Redeliver(t.Context(), w.graph(a), letters[0].ID); err != nil {
			t.Fatal(err)
		}
		w.wait()
		if got := w.state(b, "heard"); got != "out:hello\n" {
			t.Errorf("b heard %q", got)
		}
	})
}
