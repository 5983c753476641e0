package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// onWires adds the modules that emit and catch outputs.
func onWires(h *fakeHost) *fakeHost {
	note := func(t abi.Turn, payload []byte) error {
		old, _ := t.StateGet([]byte("heard"))
		sender, _ := t.Source(abi.SourceSender)
		return codeErr(t, t.StateSet([]byte("heard"), []byte(string(old)+string(sender)+":"+string(payload)+"\n")))
	}
	// emit outputs what it gets; pass also outputs the outputs of others, and notes them.
	h.on("emit", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		payload, _ := t.Source(abi.SourcePayload)
		return codeErr(t, t.Output(payload))
	})
	h.on("catch", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindOutput {
			return nil
		}
		payload, _ := t.Source(abi.SourcePayload)
		var d struct{ Kind, Source, Wire string }
		detail, _ := t.Source(abi.SourceDetail)
		if err := json.Unmarshal(detail, &d); err != nil || d.Kind != "output" || d.Source == "" || d.Wire == "" {
			return fmt.Errorf("the detail of an output is %s: %w", detail, err)
		}
		return note(t, payload)
	})
	h.on("pass", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage && kind != abi.KindOutput {
			return nil
		}
		payload, _ := t.Source(abi.SourcePayload)
		if err := note(t, payload); err != nil {
			return err
		}
		return codeErr(t, t.Output(payload))
	})
	return h
}

// wired are an emitter and a catcher that share a channel.
func wired(t *testing.T, o engine.Options, wires ...journal.OutputWire) (w *world, from, to journal.CreatureID) {
	t.Helper()
	o.Host = onWires(newFakeHost())
	w = newWorld(t, o)
	from, to = w.add("from", "emit"), w.add("to", "catch")
	w.connect(from, to, "bond")
	for _, o := range wires {
		o.From, o.To = from, cmp.Or(o.To, to)
		w.wire(o)
	}
	return w, from, to
}

func (w *world) wire(o journal.OutputWire) journal.OutputWire {
	w.t.Helper()
	added, err := w.AddWire(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return added
}

func (w *world) tell(c journal.CreatureID, payload string) {
	w.t.Helper()
	if _, err := w.SendTo(w.t.Context(), c, engine.Outgoing{Payload: []byte(payload)}); err != nil {
		w.t.Fatal(err)
	}
	w.wait()
}

func (w *world) letters(c journal.CreatureID) []journal.DeadLetterRow {
	w.t.Helper()
	letters, err := w.DeadLetters(w.t.Context(), w.graph(c), "", journal.EventID{}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return letters
}

func TestWireDelivers(t *testing.T) {
	for _, c := range []struct {
		name string
		wire journal.OutputWire
		want string
	}{
		{"content", journal.OutputWire{WithContent: true}, "from:out\n"},
		{"prompt", journal.OutputWire{WithContent: true, Prompt: "{{{source}}} on {channel}: {output}{output}"}, "from:{from} on from: outout\n"},
		{"prompt without content", journal.OutputWire{Prompt: "{source} is done"}, "from:from is done\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, from, to := wired(t, engine.Options{}, c.wire)
			w.tell(from, "out")
			if got := w.state(to, "heard"); got != c.want {
				t.Errorf("heard %q, want %q", got, c.want)
			}
		})
	}
	t.Run("metadata", func(t *testing.T) {
		w, from, to := wired(t, engine.Options{}, journal.OutputWire{})
		w.send(w.connect(to, from, "tasks"), "four")
		w.wait()
		_, text, _ := strings.Cut(w.state(to, "heard"), ":")
		var got struct {
			Source, Channel, Message string
			Size                     int
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Source != "from" || got.Channel != "tasks" || got.Message == "" || got.Size != 4 {
			t.Errorf("heard %s: %+v, %v", text, got, err)
		}
	})
}

func TestWireErrors(t *testing.T) {
	w, from, to := wired(t, engine.Options{})
	alone := w.add("alone", "catch")
	boss := w.add("boss", "catch")
	w.change(topology.Connect{From: from, To: boss})
	w.assignRoot(boss)
	for _, c := range []struct {
		name string
		wire journal.OutputWire
		code abi.Code
		says string
	}{
		{"unknown source", journal.OutputWire{From: "nobody", To: to}, abi.NotFound, "nobody"},
		{"unknown target", journal.OutputWire{From: from, To: "nobody"}, abi.NotFound, "nobody"},
		{"other graph", journal.OutputWire{From: from, To: alone}, abi.NotConnected, "different graphs"},
		{"itself", journal.OutputWire{From: from, To: from}, abi.InvalidArgument, "itself"},
		{"the root to itself", journal.OutputWire{From: boss, To: journal.ToRoot}, abi.InvalidArgument, "the same creature"},
		{"unknown predicate", journal.OutputWire{From: from, To: to, When: "done"}, abi.NotFound, "done"},
		{"unknown placeholder", journal.OutputWire{From: from, To: to, Prompt: "{in}"}, abi.InvalidArgument, "{in}"},
		{"single brace", journal.OutputWire{From: from, To: to, Prompt: "a } b"}, abi.InvalidArgument, "brace"},
		{"output without content", journal.OutputWire{From: from, To: to, Prompt: "{output}"}, abi.InvalidArgument, "content"},
		{"not text", journal.OutputWire{From: from, To: to, Prompt: "\xff"}, abi.InvalidArgument, "UTF-8"},
		{"long prompt", journal.OutputWire{From: from, To: to, Prompt: strings.Repeat("x", journal.MaxPrompt+1)}, abi.TooLarge, "prompt"},
		{"bad name", journal.OutputWire{From: from, To: to, Name: "a\nb"}, abi.InvalidArgument, "name"},
	} {
		_, err := w.AddWire(t.Context(), c.wire)
		var typed *abi.Error
		if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || !errors.As(err, &typed) || typed.Remedy == "" {
			t.Errorf("%s: %v (%s), want the code %s, %q and a remedy", c.name, err, abi.CodeOf(err), c.code, c.says)
		}
	}
	first := w.wire(journal.OutputWire{From: from, To: to, Name: "one"})
	for _, twice := range []journal.OutputWire{{From: from, To: boss, Name: "one"}, {From: from, To: to}} {
		if _, err := w.AddWire(t.Context(), twice); abi.CodeOf(err) != abi.AlreadyExists {
			t.Errorf("%+v twice: %v", twice, err)
		}
	}
	for n := range journal.MaxWires - 1 {
		w.wire(journal.OutputWire{From: from, To: to, Prompt: fmt.Sprint(n)})
	}
	if _, err := w.AddWire(t.Context(), journal.OutputWire{From: from, To: to, Prompt: "more"}); abi.CodeOf(err) != abi.LimitExceeded {
		t.Errorf("one wire too many: %v", err)
	}
	if _, err := w.RemoveWire(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	if _, err := w.RemoveWire(t.Context(), first.ID); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("removing the wire again: %v, want not_found", err)
	}
}

// A batch that fails leaves no trace of its wires. A batch that succeeds sees its wires step by
// step.
func TestWiresInBatches(t *testing.T) {
	w, from, to := wired(t, engine.Options{})
	kept := w.wire(journal.OutputWire{From: from, To: to, Name: "kept"})
	errStop := errors.New("stop")
	err := w.Batch(t.Context(), func(b *engine.Batch) error {
		if _, err := b.RemoveWire(t.Context(), kept.ID); err != nil {
			return err
		}
		if _, err := b.AddWire(t.Context(), journal.OutputWire{From: from, To: to, Name: "kept"}); err != nil {
			return err
		}
		return errStop
	})
	if list, _ := w.Wires(""); err != errStop || len(list) != 1 || list[0] != kept {
		t.Errorf("after a batch that failed with %v: %+v", err, list)
	}
	var events []string
	sub := w.watch(journal.EventWireAdded, journal.EventWireRemoved)
	err = w.Batch(t.Context(), func(b *engine.Batch) error {
		passing, err := b.AddWire(t.Context(), journal.OutputWire{From: from, To: to, Name: "passing", WithContent: true})
		if err != nil {
			return err
		}
		if found, err := b.FindWire(from, "passing"); err != nil || found != passing {
			return fmt.Errorf("found %+v, %w", found, err)
		}
		if _, err := b.RemoveWire(t.Context(), passing.ID); err != nil {
			return err
		}
		added, _, err := b.AddCreature(t.Context(), deploy.CreatureSpec{Name: "new", Wasm: []byte("emit"), Join: b.GraphOf(from),
			Outputs: []deploy.OutputSpec{{Name: "up", To: "to", WithContent: true}}})
		if err != nil {
			return err
		}
		_, err = b.AddWire(t.Context(), journal.OutputWire{From: added.Creature, To: from, Name: "side"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range sub() {
		events = append(events, ev.Kind.String()+" "+wireName(ev))
	}
	if got, want := strings.Join(events, ", "), "output_wire_added up, output_wire_added side"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	c, err := w.FindCreature("", "new")
	if err != nil {
		t.Fatal(err)
	}
	w.tell(c, "hello")
	if got := w.state(to, "heard"); got != "new:hello\n" {
		t.Errorf("heard %q", got)
	}
	out, in, err := w.WiresOf(from)
	if err != nil || len(out) != 1 || out[0].Name != "kept" || len(in) != 1 || in[0].Name != "side" {
		t.Errorf("out %+v, in %+v, %v", out, in, err)
	}
}

func wireName(ev journal.Event) string {
	var detail struct{ Name, Reason string }
	_ = json.Unmarshal(ev.Payload, &detail)
	return strings.TrimSpace(detail.Name + " " + detail.Reason)
}

// watch collects events of some kinds until the function is called.
func (w *world) watch(kinds ...journal.EventKind) (seen func() []journal.Event) {
	w.t.Helper()
	sub := w.Subscribe(engine.Filter{Kinds: kinds}, 1000)
	return func() (out []journal.Event) {
		sub.Close()
		for {
			ev, err := sub.Next(context.Background())
			if err != nil {
				return out
			}
			out = append(out, ev.Event)
		}
	}
}

func TestWireTargets(t *testing.T) {
	t.Run("stopped", func(t *testing.T) {
		w, from, to := wired(t, engine.Options{}, journal.OutputWire{WithContent: true})
		w.change(topology.SetStopped{ID: to, Stopped: true})
		w.tell(from, "1")
		w.tell(from, "2")
		w.change(topology.SetStopped{ID: to})
		w.wait()
		if got := w.state(to, "heard"); got != "from:1\nfrom:2\n" {
			t.Errorf("heard %q", got)
		}
	})
	t.Run("missing", func(t *testing.T) {
		w, from, to := wired(t, engine.Options{}, journal.OutputWire{WithContent: true})
		w.change(topology.RemoveCreature{ID: to})
		w.tell(from, "1")
		l := w.letters(from)
		if len(l) != 1 || l[0].Reason != "not_connected" || l[0].Creature != to || l[0].Kind != journal.EventWiredOutput || string(l[0].Payload) != "1" {
			t.Errorf("letters %+v", l)
		}
		if list, _ := w.Wires(""); len(list) != 1 {
			t.Errorf("the wire was removed with its target: %+v", list)
		}
	})
	t.Run("source removed", func(t *testing.T) {
		w, from, _ := wired(t, engine.Options{}, journal.OutputWire{Name: "w"})
		seen := w.watch(journal.EventWireRemoved)
		w.change(topology.RemoveCreature{ID: from})
		if list, _ := w.Wires(""); len(list) != 0 {
			t.Errorf("wires %+v", list)
		}
		if got := seen(); len(got) != 1 || wireName(got[0]) != "w creature_removed" {
			t.Errorf("events %+v", got)
		}
	})
	t.Run("root", func(t *testing.T) {
		w, from, to := wired(t, engine.Options{}, journal.OutputWire{To: journal.ToRoot, WithContent: true})
		w.tell(from, "1")
		l := w.letters(from)
		if len(l) != 1 || l[0].Reason != "not_connected" || l[0].Alias != "root" {
			t.Fatalf("without a root: %+v", l)
		}
		if _, err := w.Redeliver(t.Context(), w.graph(from), l[0].ID); abi.CodeOf(err) != abi.NotConnected {
			t.Errorf("redelivering without a root: %v", err)
		}
		w.assignRoot(to)
		w.tell(from, "2")
		if _, err := w.Redeliver(t.Context(), w.graph(from), l[0].ID); err != nil {
			t.Error(err)
		}
		w.wait()
		if got := w.state(to, "heard"); got != "from:2\nfrom:1\n" {
			t.Errorf("heard %q", got)
		}
		w.assignRoot(from)
		w.tell(from, "3")
		if l := w.letters(from); len(l) != 1 || l[0].Reason != "denied" {
			t.Errorf("an output of the root to the root: %+v", l)
		}
	})
	t.Run("too large", func(t *testing.T) {
		w, from, to := wired(t, engine.Options{}, journal.OutputWire{WithContent: true, Prompt: strings.Repeat("{output}", 1000)})
		w.tell(from, strings.Repeat("x", 2000))
		l := w.letters(from)
		if len(l) != 1 || l[0].Reason != "too_large" || l[0].Creature != to || !strings.Contains(l[0].Error, "limit message") || len(l[0].Payload) > 1000 {
			t.Errorf("letters %+v", l)
		}
	})
}

func TestHopLimitNamesTheLoop(t *testing.T) {
	w := newWorld(t, engine.Options{Host: onWires(newFakeHost())})
	a, b, c := w.add("a", "pass"), w.add("b", "pass"), w.add("c", "pass")
	w.connect(a, b, "ab")
	w.connect(b, c, "bc")
	for _, o := range []journal.OutputWire{{From: a, To: b}, {From: b, To: c}, {From: c, To: a}} {
		o.WithContent = true
		w.wire(o)
	}
	w.tell(a, "x")
	heard := 0
	for _, c := range []journal.CreatureID{a, b, c} {
		heard += strings.Count(w.state(c, "heard"), "\n")
	}
	if heard != 1+journal.MaxHops {
		t.Errorf("%d turns, want %d", heard, 1+journal.MaxHops)
	}
	l := w.letters(a)
	if len(l) != 1 || l[0].Reason != "limit" || !strings.Contains(l[0].Error, "b → c → a → b") {
		t.Errorf("letters %+v", l)
	}
	// A new message starts with its own count of hops.
	w.tell(a, "y")
	if l := w.letters(a); len(l) != 2 {
		t.Errorf("%d letters, want 2", len(l))
	}
}

func TestSelfTrigger(t *testing.T) {
	w := newWorld(t, engine.Options{Host: onWires(newFakeHost())})
	a := w.add("a", "pass")
	w.wire(journal.OutputWire{From: a, To: a, AllowSelf: true, WithContent: true})
	w.tell(a, "x")
	if n := strings.Count(w.state(a, "heard"), "\n"); n != 1+journal.MaxHops {
		t.Errorf("%d turns, want %d", n, 1+journal.MaxHops)
	}
	if l := w.letters(a); len(l) != 1 || !strings.Contains(l[0].Error, "a → a") {
		t.Errorf("letters %+v", l)
	}
}

func TestFailedTurnPutsNothingOnWires(t *testing.T) {
	h := onWires(newFakeHost())
	h.on("trap", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		t.Output([]byte("half"))
		return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
	})
	w := newWorld(t, engine.Options{Host: h})
	a, b := w.add("a", "trap", func(s *deploy.CreatureSpec) { s.Restart.Mode = deploy.RestartNever }), w.add("b", "catch")
	w.connect(a, b, "ab")
	w.wire(journal.OutputWire{From: a, To: b, WithContent: true})
	w.tell(a, "x")
	if got := w.state(b, "heard"); got != "" {
		t.Errorf("heard %q", got)
	}
}

// predicate is a predicate in Go.
type predicate func(e *deploy.OutputEvent) (bool, error)

func (c predicate) Holds(_ context.Context, e *deploy.OutputEvent) (bool, error) { return c(e) }

func TestWirePredicates(t *testing.T) {
	s := newSaved(t, engine.Options{Host: onWires(newFakeHost())})
	calls := 0
	d := &deploy.Deployment{Name: "d", Creatures: []deploy.CreatureSpec{
		{Address: "creature.a", Name: "a", Module: "emit", Wasm: []byte("emit"), Send: []deploy.WireSpec{{Channel: "channel.c"}}, Outputs: []deploy.OutputSpec{
			{Name: "one", To: "creature.b", WithContent: true, When: "short"}, {Name: "two", To: "root", WithContent: true, When: "short", Prompt: "again {output}"},
		}},
		{Address: "creature.b", Name: "b", Module: "catch", Wasm: []byte("catch"), Listen: []deploy.WireSpec{{Channel: "channel.c"}}},
	}, Channels: []deploy.ChannelSpec{{Address: "channel.c", Name: "c"}}, Root: "creature.b", Predicates: map[string]deploy.Predicate{
		"short": predicate(func(e *deploy.OutputEvent) (bool, error) {
			calls++
			if len(e.Output) == 0 {
				return true, errors.New("nothing to see")
			}
			return len(e.Output) < 3 && e.Source == "a" && e.Channel == "a" && e.Time > 0, nil
		}),
	}}
	apply := func() *engine.Applied {
		t.Helper()
		a, err := s.Apply(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		s.wait()
		return a
	}
	a := apply()
	from, to := a.Creatures["creature.a"], a.Creatures["creature.b"]
	logs := s.watch(journal.EventLog)
	for _, text := range []string{"no!", "ok", ""} {
		s.tell(from, text)
	}
	if got := s.state(to, "heard"); got != "a:ok\na:again ok\n" {
		t.Errorf("heard %q", got)
	}
	if calls != 3 {
		t.Errorf("the predicate was called %d times for 3 outputs", calls)
	}
	if got := logs(); len(got) != 1 || !strings.Contains(string(got[0].Payload), "nothing to see") || !strings.Contains(string(got[0].Payload), "warn") {
		t.Errorf("log %+v", got)
	}
	before, _ := s.Wires("")

	// After a restore without the recipe, the predicate short is unknown.
	s.reopen()
	if got, _ := s.Wires(""); !slices.Equal(got, before) || len(got) != 2 {
		t.Errorf("restored %+v, want %+v", got, before)
	}
	s.tell(from, "ok")
	if got := s.state(to, "heard"); got != "a:ok\na:again ok\n" {
		t.Errorf("heard %q without the predicate", got)
	}
	// With the predicate, its wires continue under their ids. Edited wires are made again.
	s.shut()
	s.open()
	d.Creatures[0].Outputs[0].Prompt = "edited {output}"
	d.Creatures[0].Outputs[0], d.Creatures[0].Outputs[1] = d.Creatures[0].Outputs[1], d.Creatures[0].Outputs[0]
	apply()
	after, _ := s.Wires("")
	if len(after) != 2 || after[0].ID != before[1].ID || after[1].ID == before[0].ID || after[1].Prompt != "edited {output}" {
		t.Errorf("applied %+v, before %+v", after, before)
	}
	s.tell(from, "ok")
	if got := s.state(to, "heard"); got != "a:ok\na:again ok\na:again ok\na:edited ok\n" {
		t.Errorf("heard %q", got)
	}
	s.shut()
	s.open()
	d.Predicates = nil
	if _, err := s.Apply(t.Context(), d); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("Apply of a recipe without its predicate: %v, want not_found", err)
	}
	d.Creatures[0].Outputs = nil
	apply()
	if got, _ := s.Wires(""); len(got) != 0 {
		t.Errorf("wires %+v of a recipe without any", got)
	}
}

func (w *world) assignRoot(id journal.CreatureID) {
	w.t.Helper()
	if _, err := w.AssignRoot(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
}

func TestASecondWireThatDiffersByNameOnly(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a, b := w.add("a", "sink"), w.add("b", "sink")
	w.connect(a, b, "in")
	for name, want := range map[string]string{"first": "use another name", "second": "use that one"} {
		_, _ = w.AddWire(t.Context(), journal.OutputWire{From: a, To: b, Name: "first", WithContent: true})
		_, err := w.AddWire(t.Context(), journal.OutputWire{From: a, To: b, Name: name, WithContent: true})
		if abi.CodeOf(err) != abi.AlreadyExists || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: AddWire returns %v, want an error that says %q", name, err, want)
		}
	}
}
