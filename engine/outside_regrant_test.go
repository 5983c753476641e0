package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// TestASpawnedCreatureGetsItsSecretsAgain resumes a spawned creature with the topology of the
// last run. Its capability has a secret setting, which no store keeps and the recipe provides
// again.
func TestASpawnedCreatureGetsItsSecretsAgain(t *testing.T) {
	k, h := newEcho(), newFakeHost()
	h.on("caller", caller)
	recipe := func(settings string, secret ...string) *deploy.Deployment {
		return team(1, func(d *deploy.Deployment) {
			s := deploy.CreatureSpec{Module: "caller", Wasm: []byte("caller"), Config: json.RawMessage(`{"reach":"echo.main"}`)}
			if settings != "" {
				s.Capabilities = []deploy.Capability{{Kind: "echo", Name: "main", Settings: json.RawMessage(settings), Secret: secret, From: map[string][]string{"forbid": {"var.word"}}}}
			}
			d.Name, d.Species = "team", []deploy.SpeciesSpec{{Name: "helper", Spawnable: 2, Spec: s}}
		})
	}
	s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}})
	first := recipe(`{"forbid":"swordfish"}`, "forbid")
	boss := s.apply(first).Creatures["creature.m0"]
	id := s.mustSpawn("team", "a", boss)
	say := func(text, want string) {
		t.Helper()
		s.tell(id, text)
		s.wait()
		if got := s.state(id, "heard"); !strings.Contains(got, want) {
			t.Errorf("after %q the creature has heard %q, want %q", text, got, want)
		}
	}
	say("swordfish 1", "denied: it is forbidden")
	resume := func(d *deploy.Deployment) error {
		s.shut()
		s.open()
		d.Last = first
		_, err := s.Apply(t.Context(), d)
		return err
	}
	if err := resume(recipe(`{}`)); abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), "var.word") {
		t.Fatalf("without a value for the variable: %v", err)
	}
	if err := resume(recipe(`{"forbid":"sword"}`, "forbid")); err != nil {
		t.Fatal(err)
	}
	say("sword", "denied: it is forbidden")
	say("fish", "re: fish")
	// If the recipe no longer grants the capability to the species, the creature remains
	// without it.
	if err := resume(recipe("")); err != nil {
		t.Fatal(err)
	}
	say("fish 2", "lacks its sensitive settings (forbid), which are not stored")
	if got := s.state(id, "heard"); !strings.Contains(got, "with var.word") {
		t.Errorf("the creature has heard %q, which does not name the variable", got)
	}
}
