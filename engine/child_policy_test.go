package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// below puts a creature into the graph of another, as its worker.
func (w *world) below(parent journal.CreatureID) func(*deploy.CreatureSpec) {
	return func(s *deploy.CreatureSpec) { s.Parent, s.Join = parent, w.graph(parent) }
}

func takesWorkers(s *deploy.CreatureSpec) { s.Workers = deploy.WorkersRemove }

// parentLinks reads the parent_link_changed events of a graph, by child.
func (w *world) parentLinks(c journal.CreatureID) map[journal.CreatureID]string {
	w.t.Helper()
	out := map[journal.CreatureID]string{}
	for _, ev := range w.events(c, journal.EventParentLinkChanged) {
		out[ev.Creature] = string(ev.Payload)
	}
	return out
}

// TestWorkersGoWithTheirParentInOneCut removes a creature whose workers hold the graph together.
func TestWorkersGoWithTheirParentInOneCut(t *testing.T) {
	s := newSaved(t, engine.Options{})
	boss := s.add("boss", "sink", takesWorkers)
	left, right := s.add("left", "record", s.below(boss)), s.add("right", "sink", s.below(boss))
	helper := s.add("helper", "sink", s.below(right))
	one, two := s.add("one", "sink"), s.add("two", "sink")
	s.connect(left, one, "west")
	s.connect(helper, two, "east")
	if n := len(s.status()); n != 1 {
		t.Fatalf("%d graphs, want 1", n)
	}
	out := s.change(topology.RemoveCreature{ID: boss})
	if out.Delta.Kind != "split" || len(out.Delta.NewGraphs) != 2 {
		t.Errorf("the change was %+v, want one split in two", out.Delta)
	}
	for range 2 {
		for _, id := range []journal.CreatureID{boss, left, right, helper} {
			if c, ok := s.creature(id); ok {
				t.Errorf("%s was not removed", c.Name)
			}
		}
		if s.graph(one) == s.graph(two) {
			t.Error("the remaining creatures are in one graph")
		}
		s.reopen()
	}
	var removed []journal.CreatureID
	for _, ev := range s.events(one, journal.EventCreatureStopped) {
		removed = append(removed, ev.Creature)
	}
	if want := []journal.CreatureID{boss, left, right, helper}; !sameMembers(removed, want) {
		t.Errorf("creature_stopped of %v, want %v", removed, want)
	}
	if n := len(s.parentLinks(one)); n > 0 {
		t.Errorf("%d parent links changed, although all creatures with a parent were removed", n)
	}
}

func sameMembers(a, b []journal.CreatureID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestParentLinksChangeWithAnEvent covers the workers that stay: the event names the
// creature and the reason.
func TestParentLinksChangeWithAnEvent(t *testing.T) {
	s := newSaved(t, engine.Options{})
	keeper, other := s.add("keeper", "sink"), s.add("other", "sink", takesWorkers)
	s.connect(keeper, other, "together")
	kept, promoted := s.add("kept", "sink", s.below(keeper)), s.add("promoted", "sink", s.below(other))
	away, declared := s.add("away", "sink", s.below(other)), s.add("declared", "sink", s.below(other), func(c *deploy.CreatureSpec) { c.Address = "creature.declared" })
	for _, c := range []journal.CreatureID{kept, promoted, declared} {
		s.change(topology.SetEdge{Creature: c, Channel: s.connect(keeper, c, "to "+string(c)), Direction: journal.Send, On: true})
	}
	s.change(topology.SetPrivileged{ID: promoted, Privileged: true})
	s.change(topology.Disconnect{From: other, To: away})
	link := func(child, old journal.CreatureID, reason string) string {
		return fmt.Sprintf(`{"child":%q,"old":%q,"new":"","reason":%q,"call":"change"}`, child, old, reason)
	}
	if got, want := s.parentLinks(away)[away], link(away, other, "split"); got != want {
		t.Errorf("split: %s, want %s", got, want)
	}
	s.change(topology.RemoveCreature{ID: other})
	if got, want := s.parentLinks(promoted), map[journal.CreatureID]string{promoted: link(promoted, other, "removed"), declared: link(declared, other, "removed")}; !maps.Equal(got, want) {
		t.Errorf("removed: %v, want %v", got, want)
	}
	s.change(topology.RemoveCreature{ID: keeper})
	if got, want := s.parentLinks(kept)[kept], link(kept, keeper, "removed"); got != want {
		t.Errorf("kept: %s, want %s", got, want)
	}
	for range 2 {
		for _, id := range []journal.CreatureID{kept, promoted, away, declared} {
			if c, ok := s.creature(id); !ok || c.Parent != "" {
				t.Errorf("%s exists: %v; its parent is %q, want none", id, ok, c.Parent)
			}
		}
		s.reopen()
	}
}

func TestWorkersStayWhenTheRemovalFails(t *testing.T) {
	d := newOnDisk(t)
	boss := d.add("boss", "sink", stopped, takesWorkers)
	d.sendTo(boss, "one")
	g, err := d.FindGraph(string(boss))
	if err != nil {
		t.Fatal(err)
	}
	d.add("worker", "sink", func(c *deploy.CreatureSpec) { c.Parent, c.Join = boss, g })
	d.disk.Broken = true
	if _, err := d.RemoveCreature(t.Context(), boss); abi.CodeOf(err) != abi.Storage {
		t.Errorf("RemoveCreature returns %v on a broken disk, want storage", err)
	}
	if creatures, _, _ := d.Members(); len(creatures) != 2 {
		t.Fatalf("there are %d creatures after a removal that failed, want 2", len(creatures))
	}
	d.disk.Broken = false
	d.change(topology.RemoveCreature{ID: boss})
	d.reboot()
	if creatures, _, _ := d.Members(); len(creatures) > 0 {
		t.Errorf("after a restart there are %d creatures, want none", len(creatures))
	}
}

func TestABatchTakesWorkersAlongThatItAdds(t *testing.T) {
	w := newWorld(t, engine.Options{})
	boss := w.add("boss", "sink", takesWorkers)
	w.connect(boss, w.add("other", "sink"), "x")
	g := w.graph(boss)
	w.try(func(b *engine.Batch) error {
		worker := spec("worker", "sink")
		worker.Join, worker.Parent = g, boss
		if _, _, err := b.AddCreature(t.Context(), worker); err != nil {
			return err
		}
		_, err := b.Do(t.Context(), topology.RemoveCreature{ID: boss})
		return err
	})
	if g := w.status(); len(g) != 1 || len(g[0].Creatures) != 1 || g[0].Creatures[0].Name != "other" {
		t.Errorf("the remaining graphs are %+v", g)
	}
}

// TestAnEditedRecipeTakesWorkersAlong covers creatures that are no longer in the recipe. Their
// setting for workers still applies.
func TestAnEditedRecipeTakesWorkersAlong(t *testing.T) {
	s := newSaved(t, engine.Options{})
	full := func(d *deploy.Deployment) { d.Creatures[0].Workers = deploy.WorkersRemove }
	a := s.apply(team(2, full))
	boss, keeper := a.Creatures["creature.m0"], a.Creatures["creature.m1"]
	one := s.add("one", "sink", s.below(boss))
	kept := s.add("two", "sink", func(c *deploy.CreatureSpec) {
		c.Parent, c.Listen = keeper, []deploy.WireSpec{{Channel: string(a.Channels["channel.c1"])}}
	})
	s.reopen()
	edited := s.apply(team(2, func(d *deploy.Deployment) {
		d.Creatures, d.Channels = d.Creatures[1:], d.Channels[1:]
	}))
	var gone []string
	for _, r := range edited.Removed {
		gone = append(gone, r.Address)
	}
	if want := []string{"creature.m0", "one", "channel.c0"}; !slices.Equal(gone, want) {
		t.Errorf("removed: %v, want %v", gone, want)
	}
	if _, ok := s.creature(one); ok {
		t.Error("the worker of the removed creature was not removed")
	}
	if c, ok := s.creature(kept); !ok || c.Parent != keeper {
		t.Errorf("the worker of the remaining creature: %v, parent %q", ok, c.Parent)
	}
}

// familyModel is a naive model of parents and their workers.
type familyModel struct {
	parent              map[journal.CreatureID]journal.CreatureID
	takes, stays, alive map[journal.CreatureID]bool
}

// remove returns the creatures that are removed with a creature, including itself.
func (k *familyModel) remove(c journal.CreatureID) {
	gone := map[journal.CreatureID]bool{c: true}
	for grown := k.takes[c]; grown; {
		grown = false
		for id, parent := range k.parent {
			if gone[parent] && k.alive[id] && !k.stays[id] && !gone[id] {
				gone[id], grown = true, true
			}
		}
	}
	for id := range gone {
		delete(k.alive, id)
	}
	for id, parent := range k.parent {
		if gone[parent] {
			delete(k.parent, id)
		}
	}
}

func TestRandomFamiliesAgainstAModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, engine.Options{})
		hub := w.add("hub", "sink")
		common := w.connect(hub, hub, "common") // so that no removal splits the graph
		k := familyModel{map[journal.CreatureID]journal.CreatureID{}, map[journal.CreatureID]bool{}, map[journal.CreatureID]bool{}, map[journal.CreatureID]bool{hub: true}}
		ids := []journal.CreatureID{hub}
		for i := range 25 {
			parent := ids[r.IntN(len(ids))]
			takes, stays := r.IntN(2) == 0, r.IntN(5) == 0
			id := w.add(fmt.Sprint(i), "sink", func(s *deploy.CreatureSpec) {
				s.Parent, s.Listen, s.Privileged = parent, []deploy.WireSpec{{Channel: string(common)}}, stays
				if takes {
					s.Workers = deploy.WorkersRemove
				}
			})
			ids = append(ids, id)
			k.parent[id], k.takes[id], k.stays[id], k.alive[id] = parent, takes, stays, true
		}
		for range 8 {
			c := ids[1+r.IntN(len(ids)-1)]
			if !k.alive[c] {
				continue
			}
			w.change(topology.RemoveCreature{ID: c})
			k.remove(c)
			alive := map[journal.CreatureID]bool{}
			for _, s := range w.status()[0].Creatures {
				alive[s.ID] = true
				if s.Parent != k.parent[s.ID] {
					t.Fatalf("seed %d: the parent of %s is %q, want %q", seed, s.Name, s.Parent, k.parent[s.ID])
				}
			}
			if !maps.Equal(alive, k.alive) {
				t.Fatalf("seed %d: alive are %v, want %v", seed, alive, k.alive)
			}
		}
		w.close()
	}
}

func TestWorkersAreWrittenAsWords(t *testing.T) {
	for _, word := range []string{"keep", "remove"} {
		if got, ok := deploy.ParseWorkers(word); !ok || got.String() != word {
			t.Errorf("%s: %v, %v", word, got, ok)
		}
	}
	if got, ok := deploy.ParseWorkers("sell"); ok {
		t.Errorf("sell: %v", got)
	}
}
