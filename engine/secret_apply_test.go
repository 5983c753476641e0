package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// TestSecretsForACreatureThatCannotRun applies a recipe when the module of a spawned creature
// is not available: the creature stays stopped, as after Restore, and the others get their
// secrets.
func TestSecretsForACreatureThatCannotRun(t *testing.T) {
	h := newFakeHost()
	h.on("teller", teller)
	h.on("other", teller)
	s := newSaved(t, engine.Options{Host: h})
	recipe := func() *deploy.Deployment { return tellers(`{"token":"swordfish"}`) }
	boss := s.apply(recipe()).Creatures["creature.m0"]
	a, b := s.mustSpawn("team", "a", boss), s.mustSpawn("team", "b", boss)
	if _, err := s.ReplaceModule(t.Context(), a, engine.Replacement{Module: "other"}); err != nil {
		t.Fatal(err)
	}
	s.shut()
	delete(h.behaviours, "other")
	s.open()
	if _, problems, err := s.Restore(t.Context()); err != nil || len(problems) != 1 {
		t.Fatalf("%v, %v", problems, err)
	}
	if _, err := s.Apply(t.Context(), recipe()); err != nil {
		t.Fatal(err)
	}
	s.stays(a, "a stays stopped", "other")
	s.heard(b, "1", "1 with SWORDFISH")
	h.on("other", teller)
	s.apply(recipe())
	s.heard(a, "2", "2 with SWORDFISH")
	starts := func() (n uint64) {
		for _, g := range s.status() {
			for i := range g.Creatures {
				n += uint64(g.Creatures[i].InstanceStarts)
			}
		}
		return n
	}
	before := starts()
	s.apply(recipe())
	s.heard(a, "3", "3 with SWORDFISH")
	s.heard(b, "4", "4 with SWORDFISH")
	if n := starts(); n != before && !fresh.Instances() {
		t.Errorf("a recipe that changes nothing started %d instances", n-before)
	}
	s.reopen()
	s.heard(a, "5", "5 with NO TOKEN")
}

// TestPlansKnowTheSecretsOfRunningCreatures applies a recipe whose sensitive variable no longer
// has a value, while creatures with the earlier value run. Neither Plan nor Apply refuses the
// recipe.
func TestPlansKnowTheSecretsOfRunningCreatures(t *testing.T) {
	k, h := newEcho(), newFakeHost()
	h.on("caller", caller)
	recipe := func(settings string, secret ...string) *deploy.Deployment {
		return team(1, func(d *deploy.Deployment) {
			c := deploy.CreatureSpec{Module: "caller", Wasm: []byte("caller"), Config: json.RawMessage(`{"reach":"echo.main"}`)}
			c.Capabilities = []deploy.Capability{{Kind: "echo", Name: "main", Settings: json.RawMessage(settings), Secret: secret, From: map[string][]string{"forbid": {"var.forbid"}}}}
			d.Name, d.Species = "team", []deploy.SpeciesSpec{{Name: "caller", Spawnable: 2, Spec: c}}
		})
	}
	s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}})
	first := recipe(`{"forbid":"swordfish"}`, "forbid")
	boss := s.apply(first).Creatures["creature.m0"]
	id, err := s.spawn("team", "a", boss, func(c *deploy.CreatureSpec) { c.Species = "caller" })
	if err != nil {
		t.Fatal(err)
	}
	s.heard(id, "1", "ok 200 echo re: 1")
	_, perr := s.Plan(t.Context(), recipe(`{}`))
	_, aerr := s.Apply(t.Context(), recipe(`{}`))
	if abi.CodeOf(perr) != abi.CodeOf(aerr) || aerr != nil {
		t.Errorf("Plan returns %v, and Apply %v", perr, aerr)
	}
}

// TestASensitiveAttributeThatNeverHadAValue resumes a spawned creature whose species had null
// for a sensitive attribute, because the variable may be left out.
func TestASensitiveAttributeThatNeverHadAValue(t *testing.T) {
	h := newFakeHost()
	h.on("teller", teller)
	s := newSaved(t, engine.Options{Host: h})
	first := tellers(`{"token":null}`)
	id := s.mustSpawn("team", "a", s.apply(first).Creatures["creature.m0"])
	s.tellNow(id, "1")
	s.wait()
	said := s.state(id, "heard")
	for _, config := range []string{`{"token":null}`, `{}`} {
		s.shut()
		s.open()
		d := tellers(config)
		d.Last = first
		if _, err := s.Apply(t.Context(), d); err != nil {
			t.Fatalf("with %s: %v", config, err)
		}
		said += strings.ReplaceAll(said[:strings.Index(said, "\n")+1], "1 with", "2 with")
		s.heard(id, "2", strings.TrimSuffix(said, "\n"))
	}
	s.reopen()
	s.apply(first)
	s.wait()
}

// TestAReplacedModuleLetsACreatureRunAgain replaces the module of a creature that stays stopped
// because its module is not available, and that of a creature that a caller has stopped.
func TestAReplacedModuleLetsACreatureRunAgain(t *testing.T) {
	h := newFakeHost()
	h.on("teller", teller)
	h.on("other", teller)
	s := newSaved(t, engine.Options{Host: h})
	boss := s.apply(tellers(`{"token":"swordfish"}`)).Creatures["creature.m0"]
	a := s.mustSpawn("team", "a", boss)
	replace := func(module string) {
		t.Helper()
		if _, err := s.ReplaceModule(t.Context(), a, engine.Replacement{Module: module}); err != nil {
			t.Fatal(err)
		}
	}
	without := func() {
		t.Helper()
		s.shut()
		delete(h.behaviours, "other")
		s.open()
		if _, problems, err := s.Restore(t.Context()); err != nil || len(problems) != 1 {
			t.Fatalf("%v, %v", problems, err)
		}
		h.on("other", teller)
		replace("teller")
	}
	replace("other")
	without()
	s.heard(a, "1", "1 with NO TOKEN")
	s.reopen()
	s.heard(a, "2", "2 with NO TOKEN")
	replace("other")
	s.change(topology.SetStopped{ID: a, Stopped: true})
	without()
	s.heard(a, "3", "2 with NO TOKEN")
}
