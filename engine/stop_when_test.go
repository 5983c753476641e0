package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// stopping gives a deployment conditions.
func stopping(list ...deploy.StopWhen) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) { d.StopWhen = list }
}

func afterTurns(n int64) func(*deploy.Deployment) {
	return stopping(deploy.StopWhen{Name: "enough", Turns: n})
}

// stops lists why recipes have stopped, in all graphs.
func stops(graphs []inspect.GraphStatus) (out []journal.RecipeStop) {
	for i := range graphs {
		out = append(out, graphs[i].Stopped...)
	}
	return out
}

// turns returns how many turns the history of a creature's graph has.
func (d *onDisk) turns(c journal.CreatureID) int64 {
	d.Helper()
	events, err := d.History(d.T.Context(), string(d.graphOf(c)), journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventTurnEnded}})
	if err != nil {
		d.Fatal(err)
	}
	return int64(len(events))
}

// TestARecipeStopsAfterItsTurns proves that a recipe stops after exactly the number of turns in
// its condition, that waiting deliveries are handled when it continues, and what a caller sees
// meanwhile.
func TestARecipeStopsAfterItsTurns(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		w := newWorld(t, o)
		a := w.apply(team(3, afterTurns(8)))
		for i := range 4 {
			w.send(a.Channels["channel.c0"], fmt.Sprint(i))
		}
		w.wait()
		found := stops(w.status())
		if len(found) != 1 || found[0].Deployment != "team" || found[0].Condition != "stop_when.enough" || found[0].Reason != "turns 8 of 8" || found[0].Counters.Turns != 8 {
			t.Fatalf("the stops are %+v", found)
		}
		var turns, waiting uint64
		for _, c := range w.status()[0].Creatures {
			if turns += c.Counters.Turns; c.State != journal.Paused {
				t.Errorf("%s is %s", c.Name, c.State)
			}
			for _, cursor := range c.Cursors {
				waiting += cursor.Pending
			}
		}
		if turns != 8 || waiting == 0 {
			t.Errorf("there were %d turns, want 8; %d deliveries wait", turns, waiting)
		}
		w.send(a.Channels["channel.c0"], "late")
		w.wait()
		w.apply(team(3, afterTurns(9))) // continues for one turn
		w.wait()
		if found := stops(w.status()); len(found) != 1 || found[0].Counters.Turns != 9 {
			t.Errorf("with a higher limit, the stops are %+v", found)
		}
		w.apply(team(3))
		w.wait()
		if found := stops(w.status()); len(found) != 0 {
			t.Errorf("without conditions, the stops are %+v", found)
		}
		if got := w.state(a.Creatures["creature.m2"], "heard"); got != "c2:0\nc2:1\nc2:2\nc2:3\nc2:late\n" {
			t.Errorf("m2 heard %q", got)
		}
	})
}

// TestAStopIsInTheLog proves that the log records a stop and its end, and that a stop outlives
// the engine, even without the recipe.
func TestAStopIsInTheLog(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(2, afterTurns(3)))
	first := a.Creatures["creature.m0"]
	s.send(a.Channels["channel.c0"], "1")
	s.wait()
	s.reopen() // without the recipe
	s.send(a.Channels["channel.c0"], "2")
	s.wait()
	if found := stops(s.status()); len(found) != 1 || found[0].Counters.Turns != 3 {
		t.Fatalf("restored, the stops are %+v", found)
	}
	s.reopen()
	s.apply(team(2, afterTurns(3), func(d *deploy.Deployment) { d.Last = team(2, afterTurns(3)) }))
	s.wait()
	s.shut()
	s.open()
	s.apply(team(2, afterTurns(5)))
	s.wait()
	var got []string
	for _, ev := range s.events(first, journal.EventRecipeStopped, journal.EventRecipeContinued) {
		var p struct{ Condition, Reason string }
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			t.Fatal(err)
		}
		got = append(got, ev.Kind.String()+" "+p.Condition+" "+p.Reason)
	}
	if text := strings.Join(got, "; "); text != "recipe_stopped stop_when.enough turns 3 of 3; recipe_continued stop_when.enough ; recipe_stopped stop_when.enough turns 5 of 5" {
		t.Errorf("the log has %s", text)
	}
}

// TestStopsAreExactOverKills kills the process at random moments, and applies the recipe again.
// When the recipe has stopped, the history has exactly as many turns as the condition says, and
// it never has more.
func TestStopsAreExactOverKills(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 77))
		d := newOnDisk(t)
		limit := 5 + r.Int64N(12)
		recipe := team(3, afterTurns(limit))
		a, err := d.Apply(t.Context(), recipe)
		if err != nil {
			t.Fatal(err)
		}
		done := false
		for step := 0; !done; step++ {
			if step == 2000 {
				t.Fatalf("seed %d: the recipe has not stopped", seed)
			}
			switch n := r.IntN(10); {
			case n < 2:
				d.send(a.Channels["channel.c0"], fmt.Sprint(step))
			case n < 4:
				d.disk.Write(r.IntN(4), 1+r.IntN(3), false)
				continue
			case n < 5:
				d.disk.Kill()
				d.start()
				if a, err = d.Apply(t.Context(), team(3, afterTurns(limit))); err != nil {
					t.Fatal(err)
				}
			default:
				d.Serve(t.Context(), func(n int) int { return r.IntN(n) })
			}
			if done = len(stops(d.status())) > 0; !done && r.IntN(8) > 0 {
				continue // what is not written yet may be lost
			}
			d.disk.Flush()
			if turns := d.turns(a.Creatures["creature.m0"]); turns > limit || (turns == limit) != done {
				t.Fatalf("seed %d: the history has %d turns of %d, and the recipe has stopped: %v", seed, turns, limit, done)
			}
		}
	}
}

func (d *onDisk) status() []inspect.GraphStatus {
	d.Helper()
	list, err := d.Status("")
	if err != nil {
		d.Fatal(err)
	}
	return list
}

// TestCountersFollowGraphs proves what a condition counts after a split and after a merge: each
// turn once, including the turns of the graph before it was split.
func TestCountersFollowGraphs(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		w := newWorld(t, o)
		two := func(limit int64) *deploy.Deployment { // two creatures without a channel between them
			return team(2, afterTurns(limit), func(d *deploy.Deployment) {
				d.Creatures[0].Module, d.Creatures[0].Wasm, d.Creatures[0].Send = "record", []byte("record"), nil
			})
		}
		a := w.apply(two(9))
		m0, m1 := a.Creatures["creature.m0"], a.Creatures["creature.m1"]
		say := func(n int, channels ...string) {
			for _, ch := range channels {
				for i := range n {
					w.send(a.Channels["channel."+ch], fmt.Sprint(i))
				}
			}
			w.wait()
		}
		say(2, "c0", "c1") // each has had 3 turns, with its start
		link := w.connect(m0, m1, "link")
		say(1, "c0") // 7 together
		w.change(topology.RemoveChannel{ID: link})
		say(1, "c1") // both graphs count the 7, and their own since then
		if found := stops(w.status()); len(found) != 0 {
			t.Fatalf("the stops are %+v", found)
		}
		say(1, "c0")
		if found := stops(w.status()); len(found) != 0 {
			t.Fatalf("the stops are %+v", found)
		}
		w.connect(m0, m1, "link") // 9 together
		found := stops(w.status())
		if len(found) != 1 || found[0].Counters.Turns != 9 {
			t.Fatalf("after the merge, the stops are %+v", found)
		}
		say(1, "c0", "c1")
		if got := strings.Count(w.state(m0, "heard")+w.state(m1, "heard"), "\n"); got != 7 {
			t.Errorf("m0 and m1 have heard %d messages together, want 7", got)
		}
	})
}

// TestAStopAfterATime proves when a condition about time holds, whether or not the process runs
// at that time.
func TestAStopAfterATime(t *testing.T) {
	d := newOnDisk(t)
	recipe := func(after time.Duration) *deploy.Deployment {
		return team(2, stopping(deploy.StopWhen{Name: "late", After: after}, deploy.StopWhen{Name: "busy", After: time.Minute, Turns: 100}))
	}
	apply := func(after time.Duration) {
		t.Helper()
		if _, err := d.Apply(t.Context(), recipe(after)); err != nil {
			t.Fatal(err)
		}
		d.Ring()
	}
	want := func(n int) {
		t.Helper()
		if found := stops(d.status()); len(found) != n || n > 0 && found[0].Condition != "stop_when.late" {
			t.Fatalf("the stops are %+v, want %d", found, n)
		}
	}
	apply(time.Hour)
	d.serve()
	d.clock.Advance(59 * time.Minute)
	d.Ring()
	want(0)
	d.disk.Flush()
	d.disk.Kill()
	d.start()
	apply(time.Hour)
	want(0)
	d.clock.Advance(time.Minute)
	d.Ring()
	want(1)
	d.disk.Flush()
	d.disk.Kill()
	d.start()
	apply(2 * time.Hour)
	want(0)
	d.disk.Flush()
	d.disk.Kill()
	d.clock.Advance(time.Hour) // meanwhile
	d.start()
	apply(2 * time.Hour)
	want(1)
}
