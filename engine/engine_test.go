package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/internal/ramdisk"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(ramdisk.Tests(m)) }

// world is an engine under test.
type world struct {
	*engine.Engine
	t    testing.TB
	host *fakeHost
}

func newWorld(t testing.TB, o engine.Options) *world {
	t.Helper()
	h, ok := o.Host.(*fakeHost)
	if !ok {
		h = newFakeHost()
		o.Host = h
	}
	o.FreshInstances = o.FreshInstances || fresh.Instances()
	o.UnaccountedMemory = -1 // other tests may grow the heap
	e, err := engine.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{e, t, h}
	t.Cleanup(func() { w.close() })
	return w
}

func (w *world) close() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		w.t.Errorf("Close: %v", err)
	}
	if w.host.open() != 0 {
		w.t.Errorf("%d instances are still open after Close", w.host.open())
	}
	if w.host.openModules() != 0 {
		w.t.Errorf("%d modules are still open after Close", w.host.openModules())
	}
}

func (w *world) add(name, module string, more ...func(*deploy.CreatureSpec)) journal.CreatureID {
	w.t.Helper()
	spec := deploy.CreatureSpec{Name: name, Module: module, Wasm: []byte(module)}
	for _, f := range more {
		f(&spec)
	}
	added, err := w.AddCreature(w.t.Context(), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return added.Creature
}

func (w *world) connect(from, to journal.CreatureID, name string) journal.ChannelID {
	w.t.Helper()
	return w.change(topology.Connect{From: from, To: to, Name: name}).Channel
}

func (w *world) change(op topology.Op) engine.Outcome {
	w.t.Helper()
	out, err := w.Change(w.t.Context(), op)
	if err != nil {
		w.t.Fatal(err)
	}
	return out[0]
}

func (w *world) send(ch journal.ChannelID, payload string) engine.Sent {
	w.t.Helper()
	sent, err := w.Send(w.t.Context(), ch, engine.Outgoing{Payload: []byte(payload)})
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

func (w *world) wait() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	if err := w.WaitIdle(ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) state(c journal.CreatureID, key string) string {
	w.t.Helper()
	entries, err := w.State(w.t.Context(), c, key)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Key == key {
			return string(e.Value)
		}
	}
	return ""
}

func (w *world) graph(c journal.CreatureID) journal.GraphID {
	w.t.Helper()
	g, err := w.FindGraph(w.name(c))
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) name(c journal.CreatureID) string {
	for _, g := range w.status() {
		for _, s := range g.Creatures {
			if s.ID == c {
				return s.Name
			}
		}
	}
	w.t.Fatalf("no creature %s", c)
	return ""
}

func (w *world) status() []inspect.GraphStatus {
	w.t.Helper()
	s, err := w.Status("")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestMessagesMoveAlongAChain(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a, b, c := w.add("a", "relay"), w.add("b", "relay"), w.add("c", "record")
	in := w.connect(a, a, "in")
	w.change(topology.SetEdge{Creature: a, Channel: in, Direction: journal.Send})
	w.connect(a, b, "middle")
	w.connect(b, c, "out")
	var want string
	for i := range 1000 {
		w.send(in, fmt.Sprint(i))
		want += fmt.Sprintf("out:%d\n", i)
	}
	w.wait()
	if got := w.state(c, "heard"); got != want {
		t.Errorf("the last creature heard %d bytes, want %d", len(got), len(want))
	}
	if n := len(w.status()); n != 1 {
		t.Errorf("there are %d graphs, want 1", n)
	}
}

func TestAFailedTurnLeavesNothingButADeadLetter(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a, b := w.add("a", "count", func(s *deploy.CreatureSpec) { s.Restart.Backoff = time.Millisecond }), w.add("b", "record")
	in := w.connect(b, a, "in")
	w.connect(a, b, "out")
	events := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventDeadLetter, journal.EventTurnFailed, journal.EventLog}}, 0)
	defer events.Close()
	for _, p := range []string{"one", "trap", "two"} {
		w.send(in, p)
	}
	w.wait()
	if got := w.state(a, "n"); got != "2" {
		t.Errorf("the counter is %q, want 2", got)
	}
	if got := w.state(b, "heard"); got != "" {
		t.Errorf("b heard %q from a failed turn, want nothing", got)
	}
	var kinds []string
	for range 7 {
		ob, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, ob.Event.Kind.String())
	}
	want := []string{"log", "turn_failed", "log", "turn_failed", "log", "turn_failed", "dead_letter"}
	if !slices.Equal(kinds, want) {
		t.Errorf("events: %v, want %v", kinds, want)
	}
	if w.DeadLetterCount() != 1 {
		t.Errorf("%d dead letters, want 1", w.DeadLetterCount())
	}
}

func TestASenderNeverHearsItself(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a, b := w.add("a", "relay"), w.add("b", "record")
	ch := w.connect(a, a, "talk")
	w.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen, On: true})
	w.send(ch, "hello")
	w.wait()
	if got, want := w.state(b, "heard"), "talk:hello\ntalk:hello\n"; got != want {
		t.Errorf("b heard %q, want %q", got, want)
	}
}

func TestStopKeepsWhatWaitsAndStartGoesOn(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.add("a", "count")
	in := w.connect(a, a, "in")
	w.send(in, "1")
	w.wait()
	w.change(topology.SetStopped{ID: a, Stopped: true})
	w.send(in, "2")
	w.send(in, "3")
	w.wait()
	if got := w.state(a, "n"); got != "1" {
		t.Errorf("the stopped creature counted to %s", got)
	}
	w.change(topology.SetStopped{ID: a})
	w.wait()
	if got := w.state(a, "n"); got != "3" {
		t.Errorf("after its start the creature counted to %s, want 3", got)
	}
}

func TestMergeAndSplitKeepMessagesInOrder(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a, b := w.add("a", "relay"), w.add("b", "record")
	in := w.connect(a, a, "in")
	w.change(topology.SetEdge{Creature: a, Channel: in, Direction: journal.Send})
	out := w.connect(a, b, "out")
	other := w.add("x", "relay")
	var want string
	for i := range 300 {
		w.send(in, fmt.Sprint(i))
		want += fmt.Sprintf("out:%d\n", i)
		if i%10 == 5 {
			d := w.change(topology.SetEdge{Creature: other, Channel: out, Direction: journal.Listen, On: true})
			if d.Delta.Kind != "merge" {
				t.Fatalf("kind %s, want merge", d.Delta.Kind)
			}
		}
		if i%10 == 8 {
			d := w.change(topology.SetEdge{Creature: other, Channel: out, Direction: journal.Listen})
			if d.Delta.Kind != "split" {
				t.Fatalf("kind %s, want split", d.Delta.Kind)
			}
		}
	}
	w.wait()
	if got := w.state(b, "heard"); got != want {
		t.Errorf("b heard\n%s", got)
	}
}

func TestClosedEngineAnswersStopped(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.add("a", "sink")
	in := w.connect(a, a, "in")
	w.close()
	if _, err := w.Send(t.Context(), in, engine.Outgoing{}); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Send: %v, want stopped", err)
	}
	if _, err := w.AddCreature(t.Context(), deploy.CreatureSpec{Name: "b", Wasm: []byte("sink")}); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("AddCreature: %v, want stopped", err)
	}
}
