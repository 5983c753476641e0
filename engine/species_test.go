package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// breeding is a deployment with one creature, and a species of which at most the given number
// may exist at a time.
func breeding(name string, spawnable int, more ...func(*deploy.Deployment)) *deploy.Deployment {
	return team(1, append([]func(*deploy.Deployment){func(d *deploy.Deployment) {
		d.Name = name
		d.Species = []deploy.SpeciesSpec{
			{Name: "helper", Spawnable: spawnable, Spec: deploy.CreatureSpec{
				Module: "config", Wasm: []byte("config"), Config: json.RawMessage(`{"a":1,"b":2}`), Limits: abi.Limits{Sends: 7},
			}},
			{Name: "fixed", Spec: deploy.CreatureSpec{Module: "sink", Wasm: []byte("sink")}},
		}
	}}, more...)...)
}

// configHost has a creature that keeps its configuration.
func configHost() *fakeHost {
	h := newFakeHost()
	h.on("config", func(t abi.Turn, _ abi.Kind) error {
		config, _ := t.Source(abi.SourceConfig)
		return codeErr(t, t.StateSet([]byte("config"), config))
	})
	return h
}

func (w *world) spawn(deployment, name string, near journal.CreatureID, more ...func(*deploy.CreatureSpec)) (journal.CreatureID, error) {
	w.t.Helper()
	spec := deploy.CreatureSpec{Name: name, Species: "helper", Deployment: deployment}
	if near != "" {
		g, err := w.FindGraph(string(near))
		if err != nil {
			w.t.Fatal(err)
		}
		spec.Join, spec.Parent = g, near
	}
	for _, f := range more {
		f(&spec)
	}
	added, err := w.AddCreature(w.t.Context(), spec)
	return added.Creature, err
}

func (w *world) mustSpawn(deployment, name string, near journal.CreatureID) journal.CreatureID {
	w.t.Helper()
	id, err := w.spawn(deployment, name, near)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// full checks that no more can be spawned.
func (w *world) full(deployment string, limit int) {
	w.t.Helper()
	_, err := w.spawn(deployment, "one too many", "")
	var e *abi.Error
	if !errors.As(err, &e) || e.Code != abi.LimitExceeded || e.IDs["limit"] != "spawnable" || !strings.Contains(e.Message, fmt.Sprintf("spawnable: %d", limit)) {
		w.t.Errorf("beyond %d: %v, want the limit spawnable", limit, err)
	}
}

func (w *world) creature(id journal.CreatureID) (inspect.CreatureStatus, bool) {
	for _, g := range w.status() {
		for _, c := range g.Creatures {
			if c.ID == id {
				return c, true
			}
		}
	}
	return inspect.CreatureStatus{}, false
}

func TestASpawnedCreatureIsWhatItsSpeciesSays(t *testing.T) {
	w := newWorld(t, engine.Options{Host: configHost()})
	boss := w.apply(breeding("team", 2)).Creatures["creature.m0"]
	compiled := w.host.compiled
	id, err := w.spawn("", "h", boss, func(s *deploy.CreatureSpec) { s.Config = json.RawMessage(`{"b":3,"c":4}`) })
	if err != nil {
		t.Fatal(err)
	}
	w.wait()
	if got, want := w.state(id, "config"), `{"a":1,"b":3,"c":4}`; got != want {
		t.Errorf("the configuration of the spawned creature is %s, want %s", got, want)
	}
	c, _ := w.creature(id)
	if c.Species != "helper" || c.Deployment != "team" || c.Address != "" || c.Parent != boss || c.Limits.Sends != 7 || c.Privileged {
		t.Errorf("the spawned creature is %+v", c)
	}
	if w.host.compiled != compiled {
		t.Error("the module of the species was compiled again")
	}
}

func TestSpawnableBoundsHowManyAreAlive(t *testing.T) {
	w := newWorld(t, engine.Options{Host: configHost()})
	boss := w.apply(breeding("team", 2)).Creatures["creature.m0"]
	first := w.mustSpawn("team", "a", boss)
	w.mustSpawn("team", "b", "")
	w.full("team", 2)
	replace := func(n int) error {
		return w.Batch(t.Context(), func(b *engine.Batch) error {
			if _, err := b.Do(t.Context(), topology.RemoveCreature{ID: first}); err != nil {
				return err
			}
			for i := range n {
				added, _, err := b.AddCreature(t.Context(), deploy.CreatureSpec{Name: fmt.Sprint(i), Species: "helper"})
				if err != nil {
					return err
				}
				first = added.Creature
			}
			return nil
		})
	}
	before := first
	if err := replace(2); abi.CodeOf(err) != abi.LimitExceeded {
		t.Errorf("replacing one creature by two: %v, want limit", err)
	}
	if first = before; w.name(first) != "a" {
		t.Error("a was removed by a change that failed")
	}
	if err := replace(1); err != nil {
		t.Errorf("replacing one creature by another: %v", err)
	}
	w.full("team", 2)
	w.change(topology.RemoveCreature{ID: first})
	w.mustSpawn("team", "c", boss)
	w.full("team", 2)
}

func TestManyMaySpawnAtATime(t *testing.T) {
	const limit, tries = 4, 16
	w := newWorld(t, engine.Options{Host: configHost()})
	w.apply(breeding("team", limit))
	codes := make([]abi.Code, tries)
	var wg sync.WaitGroup
	for i := range tries {
		wg.Go(func() {
			_, err := w.AddCreature(t.Context(), deploy.CreatureSpec{Name: fmt.Sprint(i), Species: "helper"})
			codes[i] = abi.CodeOf(err)
		})
	}
	wg.Wait()
	n := map[abi.Code]int{}
	for _, c := range codes {
		n[c]++
	}
	if n[abi.OK] != limit || n[abi.LimitExceeded] != tries-limit {
		t.Errorf("%v; want %d to succeed", n, limit)
	}
}

func TestARestartCountsWhoWasSpawned(t *testing.T) {
	s := newSaved(t, engine.Options{Host: configHost()})
	boss := s.apply(breeding("team", 2)).Creatures["creature.m0"]
	a := s.mustSpawn("team", "a", boss)
	s.mustSpawn("team", "b", boss)
	s.reopen()
	if _, err := s.spawn("", "c", boss); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("spawning without the recipe: %v, want not_found", err)
	}
	s.apply(breeding("team", 2))
	s.full("team", 2)
	s.change(topology.RemoveCreature{ID: a})
	s.mustSpawn("team", "c", boss)
	s.full("team", 2)

	// Applying a recipe to a saved session removes what the recipe does not declare.
	s.shut()
	s.open()
	again := s.apply(breeding("team", 2))
	if len(again.Removed) != 2 || again.Removed[0].Address != "b" || again.Removed[1].Address != "c" {
		t.Errorf("removed: %v, want b and c", again.Removed)
	}
	s.mustSpawn("team", "d", boss)
	s.mustSpawn("team", "e", boss)
	s.full("team", 2)
}

func TestAGraphThatCannotBeWokenCountsNobody(t *testing.T) {
	s := newSaved(t, engine.Options{Host: configHost()})
	boss := s.apply(breeding("team", 2)).Creatures["creature.m0"]
	s.mustSpawn("team", "a", boss)
	s.mustSpawn("team", "b", boss)
	s.shut()
	s.open()
	loose := breeding("team", 2, func(d *deploy.Deployment) {
		d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel.loose", Name: "loose"})
	})
	if _, err := s.Apply(t.Context(), loose); abi.CodeOf(err) != abi.InvalidArgument {
		t.Fatalf("a channel without edges: %v", err)
	}
	s.restore()
	s.apply(breeding("team", 3))
	s.mustSpawn("team", "c", boss)
	s.full("team", 3)
}

func TestEachDeploymentCountsItsOwn(t *testing.T) {
	s := newSaved(t, engine.Options{Host: configHost()})
	one, two := s.apply(breeding("one", 1)), s.apply(breeding("two", 2))
	a, b := one.Creatures["creature.m0"], two.Creatures["creature.m0"]
	if _, err := s.spawn("", "x", ""); abi.CodeOf(err) != abi.Ambiguous {
		t.Errorf("spawning without a deployment: %v, want ambiguous", err)
	}
	child := s.mustSpawn("one", "x", a)
	merge := topology.Connect{From: a, To: b, Channel: two.Channels["channel.c0"]}
	s.change(merge)
	s.full("one", 1)
	s.mustSpawn("two", "y", b)
	s.mustSpawn("two", "z", a) // whatever its parent
	s.full("two", 2)
	s.change(topology.Disconnect{From: a, To: b})
	s.change(topology.RemoveCreature{ID: child})
	s.full("two", 2)
	s.mustSpawn("one", "x", a)
	s.full("one", 1)
}

func TestWhatCannotBeSpawned(t *testing.T) {
	w := newWorld(t, engine.Options{Host: configHost()})
	w.apply(breeding("team", 2))
	for _, test := range []struct {
		name string
		spec deploy.CreatureSpec
		code abi.Code
		says string
	}{
		{"not spawnable", deploy.CreatureSpec{Species: "fixed"}, abi.NotFound, "these may be spawned: helper"},
		{"no such species", deploy.CreatureSpec{Species: "helpr"}, abi.NotFound, "these may be spawned: helper"},
		{"no such deployment", deploy.CreatureSpec{Species: "helper", Deployment: "other"}, abi.NotFound, "applied: team"},
		{"with an address", deploy.CreatureSpec{Species: "helper", Address: "creature.x"}, abi.InvalidArgument, "address"},
		{"with limits", deploy.CreatureSpec{Species: "helper", Limits: abi.Limits{Sends: 1}}, abi.InvalidArgument, "those of the species"},
		{"with grants", deploy.CreatureSpec{Species: "helper", Grants: journal.Grants{Clock: true}}, abi.InvalidArgument, "those of the species"},
		{"a list for a configuration", deploy.CreatureSpec{Species: "helper", Config: json.RawMessage(`[]`)}, abi.InvalidArgument, "JSON object"},
	} {
		test.spec.Name = "x"
		_, err := w.AddCreature(t.Context(), test.spec)
		if abi.CodeOf(err) != test.code || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: %v, want %v and %q", test.name, err, test.code, test.says)
		}
	}
	if n := len(w.status()); n != 1 {
		t.Errorf("%d graphs, want 1", n)
	}
}

func TestADeploymentWithABrokenSpeciesIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*deploy.Deployment)
		code  abi.Code
		says  string
	}{
		"no such module": {func(d *deploy.Deployment) { d.Species[0].Spec.Wasm = []byte("nothing") }, abi.InvalidArgument, `a.hcl:7: species "helper"`},
		"too many": {func(d *deploy.Deployment) {
			for i := range deploy.MaxSpecies {
				d.Species = append(d.Species, deploy.SpeciesSpec{Name: fmt.Sprint(i), Spawnable: 1, Spec: spec("", "sink")})
			}
		}, abi.LimitExceeded, "more than 256"},
		"named twice":         {func(d *deploy.Deployment) { d.Species[1].Name = "helper" }, abi.AlreadyExists, "another species"},
		"without a name":      {func(d *deploy.Deployment) { d.Species[0].Name = "" }, abi.InvalidArgument, "needs a name"},
		"negative":            {func(d *deploy.Deployment) { d.Species[0].Spawnable = -1 }, abi.InvalidArgument, "spawnable is -1"},
		"negative limit":      {func(d *deploy.Deployment) { d.Species[0].Spec.Limits.Fuel = -1 }, abi.InvalidArgument, "fuel"},
		"bad configuration":   {func(d *deploy.Deployment) { d.Species[0].Spec.Config = json.RawMessage(`1`) }, abi.InvalidArgument, "configuration of helper"},
		"a creature is wrong": {func(d *deploy.Deployment) { d.Creatures[0].Wasm = []byte("nothing") }, abi.InvalidArgument, "m0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, engine.Options{Host: configHost()})
			d := breeding("team", 2, func(d *deploy.Deployment) { d.Species[0].Where = "a.hcl:7" }, test.spoil)
			_, err := w.Apply(t.Context(), d)
			if abi.CodeOf(err) != test.code || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("%v, want %v and %q", err, test.code, test.says)
			}
			if len(w.status()) > 0 || w.host.openModules() > 0 {
				t.Errorf("%d graphs and %d modules are left", len(w.status()), w.host.openModules())
			}
			w.apply(breeding("team", 2))
		})
	}
}
