package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// inBoth runs a test in graphs without a store and in graphs with one.
func inBoth(t *testing.T, test func(t *testing.T, w *world)) {
	if fresh.Instances() {
		t.Skip("no instance outlives a turn")
	}
	off := func() *fakeHost {
		h := newFakeHost()
		h.on("timekeeper", timekeeper)
		h.on("asker", asker)
		h.on("answerer", answerer)
		return h
	}
	t.Run("volatile", func(t *testing.T) { test(t, newWorld(t, engine.Options{Host: off(), HibernateAfter: -1})) })
	t.Run("stored", func(t *testing.T) { test(t, newSaved(t, engine.Options{Host: off(), HibernateAfter: -1}).world) })
}

// hibernate makes all idle creatures hibernate: the second sweep finds that they have had no
// turn since the first one.
func (w *world) hibernate() {
	w.t.Helper()
	w.wait()
	w.Hibernate(w.t.Context())
	w.Hibernate(w.t.Context())
}

// wantAsleep checks which creatures hibernate, by name.
func (w *world) wantAsleep(want string) {
	w.t.Helper()
	var names []string
	for _, g := range w.status() {
		n := 0
		for _, c := range g.Creatures {
			if c.Hibernated {
				names = append(names, c.Name)
				n++
			}
		}
		if g.Hibernated != n {
			w.t.Errorf("%d creatures of a graph hibernate, but the graph counts %d", n, g.Hibernated)
		}
	}
	if got := strings.Join(names, " "); got != want {
		w.t.Errorf("%q hibernate, want %q", got, want)
	}
}

// TestAnIdleCreatureHibernates proves that a creature loses its instance at the second sweep
// without a turn, and continues with its state, and that no event records this.
func TestAnIdleCreatureHibernates(t *testing.T) {
	inBoth(t, func(t *testing.T, w *world) {
		starts := w.watch(journal.EventInstanceStarted)
		a, b := w.add("a", "sink"), w.add("b", "record")
		ch := w.connect(a, b, "news")
		w.send(ch, "one")
		w.wait()
		w.Hibernate(t.Context())
		w.wantAsleep("")
		w.send(ch, "two")
		w.wait()
		w.Hibernate(t.Context()) // b has had a turn since the first sweep
		w.wantAsleep("a")
		w.Hibernate(t.Context())
		w.Hibernate(t.Context())
		w.wantAsleep("a b")
		if n := w.host.open(); n != 0 {
			t.Errorf("%d instances are open, want none", n)
		}
		w.send(ch, "three")
		w.send(ch, "four")
		w.wait()
		w.wantAsleep("a")
		if got, want := w.state(b, "heard"), "news:one\nnews:two\nnews:three\nnews:four\n"; got != want {
			t.Errorf("b has heard %q, want %q", got, want)
		}
		if n := w.starts(b); n != 2 {
			t.Errorf("b has had %d instances, want 2", n)
		}
		if n := len(starts()); n != 2 {
			t.Errorf("there are %d events about instances, want only those of the first two", n)
		}
	})
}

// TestTimersAndRequestsWake wakes a creature by a timer, by the request of a creature and by
// that of a caller. The requests get their replies.
func TestTimersAndRequestsWake(t *testing.T) {
	inBoth(t, func(t *testing.T, w *world) {
		sub := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventOutput}}, 0)
		defer sub.Close()
		c, b := w.add("c", "timekeeper"), w.add("b", "answerer")
		a := w.add("a", "asker", func(s *deploy.CreatureSpec) { s.Config = []byte(`{"ask":"b"}`) })
		w.connect(a, b, "link")
		w.sayTo(c, "set soon 300 0")
		w.hibernate()
		w.outputs(sub, 1)
		if heard := w.state(c, "heard"); heard != "soon\n" {
			t.Errorf("the timekeeper noted %q", heard)
		}
		w.hibernate()
		w.wantAsleep("c b a")
		w.sayTo(a, "what")
		w.wait()
		before := w.state(a, "heard")
		w.hibernate()
		w.sayTo(a, "what")
		w.wait()
		if got := w.state(a, "heard"); before == "" || got != before+before {
			t.Errorf("the asker noted %q for the first question and %q for both", before, got)
		}
		reply := func() string {
			out, err := w.Request(t.Context(), b, engine.Outgoing{Payload: []byte("you")}, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			return string(out)
		}
		awake := reply()
		w.hibernate()
		if again := reply(); again != awake {
			t.Errorf("the answer after hibernation is %q, and was %q", again, awake)
		}
	})
}

// TestChangesOfAHibernatedCreature replaces, stops, starts, pauses, merges, splits and removes
// creatures that hibernate.
func TestChangesOfAHibernatedCreature(t *testing.T) {
	if fresh.Instances() {
		t.Skip("no instance outlives a turn")
	}
	s, c, ch := replacing(t)
	hear := func(text string) {
		t.Helper()
		s.send(ch, text)
		s.wait()
	}
	hear("one")
	s.hibernate()
	before := len(s.events(c, journal.EventInstanceStarted))
	s.replace(c, "loud")
	s.wantAsleep("from")
	hear("two")
	starts := s.events(c, journal.EventInstanceStarted)
	if len(starts) != before+1 || !strings.Contains(string(starts[before].Payload), `"replaced"`) {
		t.Errorf("the replacement left %d events about instances, want %d", len(starts), before+1)
	}
	s.hibernate()
	s.change(topology.SetStopped{ID: c, Stopped: true})
	s.wantAsleep("from")
	s.send(ch, "three")
	s.wait()
	s.change(topology.SetStopped{ID: c})
	s.wait()

	other := s.add("other", "sink")
	s.hibernate()
	link := s.connect(c, other, "link")
	s.wantAsleep("from counter other")
	hear("four")
	s.hibernate()
	s.change(topology.RemoveChannel{ID: link})
	if n := len(s.status()); n != 2 {
		t.Fatalf("there are %d graphs after the split", n)
	}
	s.wantAsleep("from counter other")
	hear("five")
	want := "news:one\nTWO\nTHREE\nFOUR\nFIVE\n"
	if got := s.state(c, "heard"); got != want {
		t.Errorf("the creature has heard %q, want %q", got, want)
	}
	s.hibernate()
	s.change(topology.SetStopped{ID: c, Stopped: true, Paused: true})
	s.change(topology.RemoveCreature{ID: other})
	s.reopen()
	s.change(topology.SetStopped{ID: c})
	hear("six")
	if got := s.state(c, "heard"); got != want+"SIX\n" {
		t.Errorf("after a restart the creature has heard %q", got)
	}
	s.hibernate() // shutting down closes no instance twice
}

// TestNoCreatureInATurnHibernates sweeps in the middle of a turn.
func TestNoCreatureInATurnHibernates(t *testing.T) {
	inBoth(t, func(t *testing.T, w *world) {
		w.host.on("sweeper", func(turn abi.Turn, kind abi.Kind) error {
			if kind == abi.KindMessage {
				w.Hibernate(t.Context())
				w.Hibernate(t.Context())
				turn.StateSet([]byte("done"), []byte("yes"))
			}
			return nil
		})
		a, b := w.add("a", "sweeper"), w.add("b", "sink")
		w.connect(a, b, "link")
		w.wait()
		w.sayTo(a, "go")
		w.wait()
		w.wantAsleep("b")
		if w.state(a, "done") != "yes" || w.starts(a) != 1 {
			t.Errorf("the turn left the state %q, after %d instances", w.state(a, "done"), w.starts(a))
		}
	})
}

// TestAwarenessOutlivesHibernation proves that a document keeps its revision if nothing changes
// during hibernation, and gets another one if something does.
func TestAwarenessOutlivesHibernation(t *testing.T) {
	if fresh.Instances() {
		t.Skip("no instance outlives a turn")
	}
	w, seen := newAwareWorld(t, engine.Options{})
	a, b := w.add("a", "watcher"), w.add("b", "sink")
	w.poke(a)
	first := seen.last(a).revision
	w.hibernate()
	w.poke(a)
	if got := seen.last(a); got.revision != first || got.kind != abi.KindMessage {
		t.Errorf("after hibernation the watcher sees revision %d by a %v, want %d", got.revision, got.kind, first)
	}
	w.hibernate()
	w.connect(b, a, "link")
	w.wait()
	if got := seen.last(a); got.revision != first+1 || got.kind != abi.KindGraphChanged {
		t.Errorf("after a change the watcher sees revision %d by a %v, want %d", got.revision, got.kind, first+1)
	}
}

// TestSweepsBesideTurns sweeps without a break while messages and requests are handled and the
// graph changes.
func TestSweepsBesideTurns(t *testing.T) {
	const members, rounds = 20, 300
	inBoth(t, func(t *testing.T, w *world) {
		w.host.on("number", func(turn abi.Turn, kind abi.Kind) error {
			if kind != abi.KindMessage && kind != abi.KindRequest {
				return nil
			}
			old, _ := turn.StateGet([]byte("n"))
			n, _ := strconv.Atoi(string(old))
			turn.StateSet([]byte("n"), strconv.AppendInt(nil, int64(n)+1, 10))
			if kind == abi.KindRequest {
				return codeErr(turn, turn.Reply(strconv.AppendInt(nil, int64(n)+1, 10)))
			}
			return nil
		})
		heads := make([]journal.ChannelID, members)
		ids := make([]journal.CreatureID, members)
		last := w.add("last", "record")
		for i := range members {
			ids[i] = w.add(fmt.Sprint("n", i), "number")
			heads[i] = w.connect(last, ids[i], fmt.Sprint("in", i))
		}
		toLast := w.connect(ids[0], last, "out")
		quit := make(chan struct{})
		var sweeps sync.WaitGroup
		sweeps.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
					w.Hibernate(t.Context())
				}
			}
		})
		want := ""
		for i := range rounds {
			w.send(heads[i%members], "x")
			w.send(toLast, fmt.Sprint(i))
			want += fmt.Sprintf("out:%d\n", i)
			if i%50 == 0 { // cuts, if there are stores
				extra := w.add(fmt.Sprint("extra", i), "sink")
				w.change(topology.RemoveChannel{ID: w.connect(ids[0], extra, "more")})
			}
		}
		w.wait()
		for i := range members {
			out, err := w.Request(t.Context(), ids[i], engine.Outgoing{}, time.Minute)
			if err != nil || string(out) != strconv.Itoa(rounds/members+1) {
				t.Errorf("the reply of creature %d is %q, %v", i, out, err)
			}
		}
		close(quit)
		sweeps.Wait()
		if got := w.state(last, "heard"); got != want {
			t.Errorf("the listener heard %d lines, which are not all messages in order", strings.Count(got, "\n"))
		}
	})
}

// TestCreaturesHibernateByThemselves proves that an engine with the real clock sweeps by
// itself. With another clock, it does not.
func TestCreaturesHibernateByThemselves(t *testing.T) {
	if fresh.Instances() {
		t.Skip("no instance outlives a turn")
	}
	for name, o := range map[string]engine.Options{
		"after a while":        {HibernateAfter: time.Millisecond},
		"under pressure":       {HibernateAfter: -1, ProcessMemory: 1},
		"not by another clock": {HibernateAfter: time.Millisecond, Clock: sim.NewClock()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, o)
			a := w.add("a", "sink")
			w.wait()
			if o.Clock != nil {
				w.Hibernate(t.Context())
				w.wantAsleep("")
				return
			}
			late := time.After(5 * time.Minute)
			for w.host.open() > 0 {
				select {
				case <-w.host.closed:
				case <-late:
					t.Fatal("the instance is still open after five minutes")
				}
			}
			w.sayTo(a, "x")
			w.wait()
			if n := w.starts(a); n < 2 {
				t.Errorf("the creature has had %d instances, want at least 2", n)
			}
		})
	}
}
