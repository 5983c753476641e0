package engine_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestGrowth measures what operations on a recipe of many creatures allocate. Four times as many
// creatures may take little more than four times as much: work that looks at all creatures for
// each creature would take sixteen times as much. An operation on one creature costs the same in
// any graph.
func TestGrowth(t *testing.T) {
	const few, times, most, constant = 200, 4, 5.5, 1.5
	small, large := growing(t, few), growing(t, few*times)
	for name, before := range small {
		most := most
		if name == oneOfMany {
			most = constant
		}
		if ratio := large[name] / before; ratio > most {
			t.Errorf("%s allocates %.1f times as much for %d times as many creatures", name, ratio, times)
		}
	}
}

const oneOfMany = "merging and parting one creature"

// growing returns the bytes that operations on n creatures allocate, by name.
func growing(t *testing.T, n int) map[string]float64 {
	w := newWorld(t, engine.Options{Durability: journal.Volatile})
	out := map[string]float64{}
	measure := func(name string, f func()) {
		w.wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		w.wait()
		runtime.ReadMemStats(&after)
		out[name] = float64(after.TotalAlloc - before.TotalAlloc)
	}
	plan := func(d *deploy.Deployment) {
		if _, err := w.Plan(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	measure("applying", func() { w.apply(team(n)) })
	measure("planning", func() { plan(team(n)) })
	measure("applying again", func() { w.apply(team(n)) })
	measure("planning a recipe with one creature more", func() { plan(team(n + 1)) })
	measure("applying it", func() { w.apply(team(n + 1)) })
	measure("a batch", func() {
		err := w.Batch(t.Context(), func(b *engine.Batch) error {
			for i := range n {
				if _, _, err := b.AddCreature(t.Context(), spec(fmt.Sprint("b", i), "sink")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	measure("status", func() {
		if _, err := w.Status(""); err != nil {
			t.Fatal(err)
		}
	})
	applied, lone := w.apply(team(n)), w.add("lone", "sink")
	measure(oneOfMany, func() {
		for range 50 {
			w.change(topology.RemoveChannel{ID: w.connect(applied.Creatures["creature.m1"], lone, "bridge")})
		}
	})
	hub := w.add("hub", "sink")
	var spokes []topology.Op
	for i := range n {
		spokes = append(spokes, topology.Connect{From: w.add(fmt.Sprint("leaf", i), "sink"), To: hub, Name: fmt.Sprint("spoke", i)})
	}
	measure("merging many graphs", func() {
		if _, err := w.Change(t.Context(), spokes...); err != nil {
			t.Fatal(err)
		}
	})
	measure("parting them", func() { w.change(topology.RemoveCreature{ID: hub}) })
	measure("removing all but one", func() { w.apply(team(1)) })
	return out
}

// TestOnlyWhatChangesIsTried applies a recipe again, and plans it: only the creature that
// gets another module is started on trial.
func TestOnlyWhatChangesIsTried(t *testing.T) {
	w := newWorld(t, engine.Options{Durability: journal.Volatile})
	started := func() int {
		w.wait()
		return w.host.started()
	}
	w.apply(team(5))
	before := started()
	w.apply(team(5))
	if _, err := w.Plan(t.Context(), team(5)); err != nil {
		t.Fatal(err)
	}
	if n := started() - before; n != 0 {
		t.Errorf("%d instances were started, although nothing changes", n)
	}
	other := team(5, func(d *deploy.Deployment) { d.Creatures[2].Module, d.Creatures[2].Wasm = "sink", []byte("sink") })
	if _, err := w.Plan(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if n := started() - before; n != 1 {
		t.Errorf("%d instances were started to plan one change, want 1", n)
	}
	w.apply(other)
	if n := started() - before; n != 2 {
		t.Errorf("%d instances were started to plan and to make one change, want 2", n)
	}
	w.apply(team(6))
	if n := started() - before; n != 5 { // the new creature, the one before it, and the one that changes back
		t.Errorf("%d instances were started with one creature more, want 5", n)
	}
}

// picky gives a host the module picky, whose configuration is refused while *refuses is true.
func picky(h *fakeHost, refuses *atomic.Bool) func(*deploy.Deployment) {
	h.on("picky", func(abi.Turn, abi.Kind) error { return nil })
	h.inits["picky"] = func(abi.Turn, abi.Kind) error {
		if refuses.Load() {
			return &abi.Error{Code: abi.InvalidArgument, Op: abi.ExportInit, Message: "there is no key"}
		}
		return nil
	}
	return func(d *deploy.Deployment) { d.Creatures[1].Module, d.Creatures[1].Wasm = "picky", []byte("picky") }
}

// A creature that has never started is tried when the recipe starts it.
func TestWhatWasStoppedIsTried(t *testing.T) {
	w := newWorld(t, engine.Options{Durability: journal.Volatile})
	var refuses atomic.Bool
	refuses.Store(true)
	module := picky(w.host, &refuses)
	w.apply(team(3, module, func(d *deploy.Deployment) { d.Creatures[1].Stopped = true }))
	_, planned := w.Plan(t.Context(), team(3, module))
	_, applied := w.Apply(t.Context(), team(3, module))
	if planned == nil || applied == nil {
		t.Errorf("a creature that cannot start: planned with %v, applied with %v", planned, applied)
	}
}

// Plan and Apply try a creature that could not be restored.
func TestWhatStaysStoppedIsTried(t *testing.T) {
	h := newFakeHost()
	var refuses atomic.Bool
	module := picky(h, &refuses)
	s := newSaved(t, engine.Options{Host: h})
	s.apply(team(3, module))
	s.wait()
	s.shut()
	refuses.Store(true)
	s.open()
	if _, problems, err := s.Restore(t.Context()); err != nil || len(problems) != 1 {
		t.Fatalf("restored with %v, %v", problems, err)
	}
	_, planned := s.Plan(t.Context(), team(3, module))
	_, applied := s.Apply(t.Context(), team(3, module))
	if planned == nil || applied == nil {
		t.Errorf("a creature that cannot start: planned with %v, applied with %v", planned, applied)
	}
}
