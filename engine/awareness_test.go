package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// newAwareWorld is a world whose creatures look around.
func newAwareWorld(t testing.TB, o engine.Options) (*world, *witness) {
	seen := &witness{}
	h := newFakeHost()
	seen.on(h)
	o.Host = h
	return newWorld(t, o), seen
}

func privileged(s *deploy.CreatureSpec) { s.Privileged = true }

// poke gives a creature a turn.
func (w *world) poke(c journal.CreatureID) {
	w.t.Helper()
	if _, err := w.SendTo(w.t.Context(), c, engine.Outgoing{}); err != nil {
		w.t.Fatal(err)
	}
	w.wait()
}

func TestWorkersSeeNoMembers(t *testing.T) {
	w, seen := newAwareWorld(t, engine.Options{})
	boss, worker, other := w.add("boss", "looker", privileged), w.add("worker", "looker"), w.add("other", "looker")
	ch := w.connect(boss, worker, "work")
	w.change(topology.SetEdge{Creature: other, Channel: ch, Direction: journal.Listen, On: true})
	for _, c := range []journal.CreatureID{boss, worker} {
		w.poke(c)
	}
	b, k := seen.last(boss).document, seen.last(worker)
	if b.Graph.Members == nil || b.Graph.Members.Total != 3 || len(b.Channels.Items[0].Listeners.Items) != 2 {
		t.Errorf("the privileged creature does not see all members and listeners: %+v", b)
	}
	if g := k.document.Graph; g.Members != nil || g.Channels != nil || g.Spawnable != nil {
		t.Errorf("a worker sees more of its graph than it may: %+v", g)
	}
	peers := k.document.Channels.Items[0]
	if l := peers.Listeners; l.Total != 1 || len(l.Items) != 0 || l.Truncated != 0 {
		t.Errorf("a worker sees among the listeners %+v", l)
	}
	if s := peers.Senders; len(s.Items) != 1 || s.Items[0].ID != boss {
		t.Errorf("a worker sees among the senders %+v", s)
	}
	if strings.Contains(k.markdown, string(other)) {
		t.Errorf("the Markdown for a worker mentions another worker:\n%s", k.markdown)
	}
	w.change(topology.SetPrivileged{ID: worker, Privileged: true})
	w.poke(worker)
	if now := seen.last(worker); now.document.Graph.Members == nil || now.revision != k.revision+1 {
		t.Errorf("after its promotion, the worker sees %+v", now.document)
	}
}

// TestWatchersAreNotified counts deliveries: one for all changes since the last, and none
// while nothing changes.
func TestWatchersAreNotified(t *testing.T) {
	w, seen := newAwareWorld(t, engine.Options{})
	a, b := w.add("a", "watcher"), w.add("b", "looker")
	w.wait()
	count := func(want ...abi.Kind) {
		t.Helper()
		w.wait()
		var got []abi.Kind
		for _, r := range seen.of(a) {
			got = append(got, r.kind)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the watcher got %v, want %v", got, want)
		}
	}
	count(abi.KindStart)
	w.poke(a)
	count(abi.KindStart, abi.KindMessage)
	w.try(func(batch *engine.Batch) error {
		for _, name := range []string{"one", "two", "three"} {
			if _, err := batch.Do(t.Context(), topology.Connect{From: b, To: a, Name: name}); err != nil {
				return err
			}
		}
		return nil
	})
	count(abi.KindStart, abi.KindMessage, abi.KindGraphChanged)
	w.change(topology.SetStopped{ID: b, Stopped: true}) // a worker does not see this
	count(abi.KindStart, abi.KindMessage, abi.KindGraphChanged)

	// While the watcher is stopped, changes collect. Afterwards it gets one notification.
	w.change(topology.SetStopped{ID: a, Stopped: true})
	for _, name := range []string{"four", "five"} {
		w.connect(b, a, name)
	}
	w.SendTo(t.Context(), a, engine.Outgoing{})
	count(abi.KindStart, abi.KindMessage, abi.KindGraphChanged)
	w.change(topology.SetStopped{ID: a})
	count(abi.KindStart, abi.KindMessage, abi.KindGraphChanged, abi.KindGraphChanged, abi.KindMessage)
}

func TestWatchersAreNotifiedAfterARestartIfSomethingChanged(t *testing.T) {
	seen, h := &witness{}, newFakeHost()
	seen.on(h)
	s := newSaved(t, engine.Options{Host: h})
	a, b := s.add("a", "watcher", privileged), s.add("b", "sink")
	s.wait() // otherwise a may already see the link when it starts
	s.connect(a, b, "link")
	s.wait()
	before := seen.last(a)
	if before.kind != abi.KindGraphChanged {
		t.Fatalf("the last delivery of the watcher was %v, want graph_changed", before.kind)
	}
	turns := len(seen.of(a))
	s.reopen()
	s.wait()
	if n := len(seen.of(a)); n != turns {
		t.Fatalf("the watcher had %d turns after a restart, although nothing had changed", n-turns)
	}
	s.poke(a)
	if now := seen.last(a); now.revision != before.revision || string(mustJSON(t, now.document)) != string(mustJSON(t, before.document)) {
		t.Errorf("after a restart revision %d became %d, or the document has changed", before.revision, now.revision)
	}
	// The watcher misses a change while it is stopped. It is notified in the next run of the
	// engine.
	s.change(topology.SetStopped{ID: a, Stopped: true})
	s.connect(a, b, "another")
	s.reopen()
	s.change(topology.SetStopped{ID: a})
	s.wait()
	if now := seen.last(a); now.kind != abi.KindGraphChanged || now.revision <= before.revision {
		t.Errorf("after the change, the watcher got %v at revision %d", now.kind, now.revision)
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestATurnSeesTheGraphAsItWasWhenItBegan changes the graph between the beginning of a
// turn and the creature's first look ever.
func TestATurnSeesTheGraphAsItWasWhenItBegan(t *testing.T) {
	h := newFakeHost()
	w := newWorld(t, engine.Options{Host: h})
	begun, changed := make(chan bool), make(chan bool)
	var attempts []string
	h.on("late", func(turn abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		if len(attempts) == 0 {
			begun <- true
			<-changed
		}
		first, _ := turn.Source(abi.SourceAwarenessRevision)
		doc, _ := turn.Source(abi.SourceAwarenessJSON)
		attempts = append(attempts, string(first))
		return codeErr(turn, turn.StateSet([]byte("doc"), doc))
	})
	a, b := w.add("a", "late"), w.add("b", "sink")
	w.wait()
	w.connect(a, b, "link")
	if _, err := w.SendTo(t.Context(), a, engine.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	<-begun
	out := w.connect(a, b, "meanwhile")
	close(changed)
	w.wait()
	if len(attempts) != 2 {
		t.Fatalf("the turn was run %d times, want 2", len(attempts))
	}
	// The second run began after the change, so it sees the change and could use it.
	if doc := w.state(a, "doc"); !strings.Contains(doc, string(out)) {
		t.Errorf("the turn saw %s", doc)
	}
	// The creature has looked once. From now on, what it sees is fixed when its turn begins.
	w.poke(a)
	if len(attempts) != 3 {
		t.Errorf("a turn was run again although nothing had changed: %v", attempts)
	}
}

// TestTheDocumentDoesNotChangeWithinATurn changes the graph between two reads of one turn, in
// several turns.
func TestTheDocumentDoesNotChangeWithinATurn(t *testing.T) {
	h := newFakeHost()
	w := newWorld(t, engine.Options{Host: h})
	going, gone := make(chan bool), make(chan bool)
	h.on("reader", func(turn abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			_, code := turn.Source(abi.SourceAwarenessRevision)
			return codeErr(turn, code)
		}
		read := func() string {
			r, _ := turn.Source(abi.SourceAwarenessRevision)
			revision := string(r)
			doc, _ := turn.Source(abi.SourceAwarenessJSON)
			text, _ := turn.Source(abi.SourceAwarenessMarkdown)
			return revision + string(doc) + string(text)
		}
		before := read()
		going <- true
		<-gone
		if read() != before {
			turn.StateSet([]byte("moved"), []byte("yes"))
		}
		return nil
	})
	a, b := w.add("a", "reader"), w.add("b", "sink")
	w.wait()
	for i := range 5 {
		if _, err := w.SendTo(t.Context(), a, engine.Outgoing{}); err != nil {
			t.Fatal(err)
		}
		<-going
		w.connect(a, b, fmt.Sprint("link", i))
		gone <- true
		w.wait()
	}
	if w.state(a, "moved") != "" {
		t.Error("the document changed within a turn")
	}
}

func TestQuarantineIsAChange(t *testing.T) {
	w, seen := newAwareWorld(t, engine.Options{})
	a := w.add("a", "watcher", privileged)
	b := w.add("b", "count", func(s *deploy.CreatureSpec) {
		s.Restart = deploy.RestartPolicy{Mode: deploy.RestartNever, Max: 1, Within: time.Hour}
	})
	in := w.connect(a, b, "in")
	for range 2 {
		w.send(in, "trap")
	}
	w.wait()
	last := seen.last(a)
	if m := last.document.Graph.Members; last.kind != abi.KindGraphChanged || m.Items[1].State != "quarantined" {
		t.Errorf("on %v the watcher sees %+v", last.kind, m)
	}
}

// TestAFailingWatcherIsNotTriedForEver proves that a notification that keeps failing is dropped
// without a dead letter, and that the next change brings another one.
func TestAFailingWatcherIsNotTriedForEver(t *testing.T) {
	h := newFakeHost()
	w := newWorld(t, engine.Options{Host: h})
	var mu sync.Mutex
	tries := 0
	h.exports["grumpy"] = []string{abi.ExportGraphChanged}
	h.on("grumpy", func(_ abi.Turn, kind abi.Kind) error {
		mu.Lock()
		defer mu.Unlock()
		if kind == abi.KindGraphChanged {
			tries++
			return &abi.Error{Code: abi.Trapped, Message: "no"}
		}
		return nil
	})
	a := w.add("a", "grumpy", func(s *deploy.CreatureSpec) {
		s.Restart = deploy.RestartPolicy{Attempts: 3, Max: 100, Backoff: time.Microsecond}
	})
	b := w.add("b", "sink")
	w.wait() // otherwise a may already see the first link when it starts
	for i := range 2 {
		w.connect(a, b, fmt.Sprint("link", i))
		w.wait()
		mu.Lock()
		if want := 3 * (i + 1); tries != want {
			t.Errorf("after change %d the watcher was tried %d times, want %d", i+1, tries, want)
		}
		mu.Unlock()
	}
	if n := w.DeadLetterCount(); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
}

func TestTheTurnRecordsTheRevisionThatItRead(t *testing.T) {
	seen, h := &witness{}, newFakeHost()
	seen.on(h)
	s := newSaved(t, engine.Options{Host: h})
	a, b := s.add("a", "looker"), s.add("b", "count")
	s.connect(a, b, "link")
	s.poke(a)
	s.poke(b)
	last := map[journal.CreatureID]uint64{}
	for _, ev := range s.events(a, journal.EventTurnEnded) {
		var detail struct{ Awareness uint64 }
		if err := json.Unmarshal(ev.Payload, &detail); err != nil {
			t.Fatal(err)
		}
		last[ev.Creature] = detail.Awareness
	}
	if got, want := last[a], seen.last(a).revision; got != want || want == 0 {
		t.Errorf("the turn records revision %d, but has read %d", got, want)
	}
	if last[b] != 0 {
		t.Errorf("a turn that did not read its document records revision %d", last[b])
	}
}

func TestALargeGraphMakesABoundedDocument(t *testing.T) {
	w, seen := newAwareWorld(t, engine.Options{})
	boss := w.add("boss", "looker", privileged)
	const members = 10_000
	w.try(func(b *engine.Batch) error {
		var ch journal.ChannelID
		for i := range members - 1 {
			added, _, err := b.AddCreature(t.Context(), deploy.CreatureSpec{Name: fmt.Sprint("worker", i), Module: "sink", Wasm: []byte("sink"), Stopped: true})
			if err != nil {
				return err
			}
			op := topology.Op(topology.Connect{From: boss, To: added.Creature, Name: "work"})
			if ch != "" {
				op = topology.SetEdge{Creature: added.Creature, Channel: ch, Direction: journal.Listen, On: true}
			}
			out, err := b.Do(t.Context(), op)
			if err != nil {
				return err
			}
			if ch == "" {
				ch = out.Channel
			}
		}
		return nil
	})
	w.poke(boss)
	r := seen.last(boss)
	m := r.document.Graph.Members
	if m.Total != members || len(m.Items) != 256 || m.Truncated != members-256 || m.Items[0].ID != boss {
		t.Errorf("of %d members %d are shown and %d are not", m.Total, len(m.Items), m.Truncated)
	}
	l := r.document.Channels.Items[0].Listeners
	if l.Total != members-1 || len(l.Items) != 16 || l.Truncated != members-17 {
		t.Errorf("of %d listeners %d are shown and %d are not", l.Total, len(l.Items), l.Truncated)
	}
	if !strings.Contains(r.markdown, fmt.Sprintf("- truncated: %d\n", members-256)) {
		t.Error("the Markdown does not say what is missing")
	}
	if n := len(mustJSON(t, r.document)); n > 100_000 {
		t.Errorf("the document has %d bytes", n)
	}
}

// TestLookingWhileTheGraphChanges is for the race detector. It also checks that the
// documents read are complete.
func TestLookingWhileTheGraphChanges(t *testing.T) {
	w, seen := newAwareWorld(t, engine.Options{Workers: 4})
	var all []journal.CreatureID
	for i := range 6 {
		all = append(all, w.add(fmt.Sprint("c", i), []string{"looker", "watcher"}[i%2], func(s *deploy.CreatureSpec) { s.Privileged = i%3 == 0 }))
	}
	var done sync.WaitGroup
	done.Go(func() {
		for i := range 200 {
			a, b := all[i%6], all[(i*5+1)%6]
			if i%3 == 2 {
				w.Change(t.Context(), topology.Disconnect{From: all[(i-1)%6], To: all[((i-1)*5+1)%6]})
			} else if a != b {
				w.Change(t.Context(), topology.Connect{From: a, To: b})
			}
		}
	})
	done.Go(func() {
		for i := range 600 {
			w.SendTo(t.Context(), all[i%6], engine.Outgoing{})
			if v, err := w.Awareness(all[(i+3)%6]); err != nil || len(v.JSON()) == 0 || len(v.Markdown()) == 0 {
				t.Errorf("Awareness: %v", err)
			}
		}
	})
	done.Wait()
	w.wait()
	graphs := w.status()
	for _, c := range all {
		w.poke(c)
		last := seen.last(c)
		bare := *last.document
		bare.Revision = 0
		if got, want := string(mustJSON(t, &bare)), string(mustJSON(t, expected(graphs, c))); got != want {
			t.Errorf("in the end a creature sees\n%s\nwant\n%s", got, want)
		}
	}
	for c, reads := range seen.reads {
		documents := map[uint64]string{}
		for _, r := range reads {
			doc := string(mustJSON(t, r.document))
			if old, ok := documents[r.revision]; ok && old != doc {
				t.Errorf("%s: revision %d stands for two documents", c, r.revision)
			}
			documents[r.revision] = doc
		}
	}
}
