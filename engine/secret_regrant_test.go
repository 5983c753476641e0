package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// teller notes the token of its configuration with each message.
func teller(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindMessage {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	token, code := t.Config([]byte("token"))
	if code != abi.OK {
		token = []byte("no token")
	}
	return note(t, string(payload)+" with "+strings.ToUpper(string(token)))
}

// tellers is a recipe with a species of tellers.
func tellers(config string) *deploy.Deployment {
	return team(1, func(d *deploy.Deployment) {
		d.Name, d.Species = "team", []deploy.SpeciesSpec{{Name: "helper", Spawnable: 9, Spec: deploy.CreatureSpec{
			Module: "teller", Wasm: []byte("teller"), Config: json.RawMessage(config), Secret: []string{"token"},
		}}}
	})
}

func (s *saved) heard(id journal.CreatureID, message, want string) {
	s.t.Helper()
	s.tellNow(id, message)
	s.wait()
	if got := s.state(id, "heard"); !strings.HasSuffix(got, want+"\n") {
		s.t.Errorf("after %q the creature has heard %q, want %q", message, got, want)
	}
}

// TestASpawnedCreatureGetsItsSecretConfigurationAgain resumes spawned creatures with the
// topology of the last run. The recipe provides the secret attributes of their configuration
// again. Without a value, either nothing is resumed or the creature waits.
func TestASpawnedCreatureGetsItsSecretConfigurationAgain(t *testing.T) {
	h := newFakeHost()
	h.on("teller", teller)
	s := newSaved(t, engine.Options{Host: h})
	first := tellers(`{"token":"swordfish","open":1}`)
	boss := s.apply(first).Creatures["creature.m0"]
	id := s.mustSpawn("team", "a", boss)
	own, err := s.spawn("team", "b", boss, func(c *deploy.CreatureSpec) { c.Config = json.RawMessage(`{"token":"pufferfish"}`) })
	if err != nil {
		t.Fatal(err)
	}
	s.heard(id, "1", "1 with SWORDFISH")
	s.heard(own, "1", "1 with PUFFERFISH")
	resume := func(config string) error {
		s.shut()
		s.open()
		d := tellers(config)
		d.Last = first
		_, err := s.Apply(t.Context(), d)
		return err
	}
	if err := resume(`{"token":"swordfish","open":1}`); err != nil {
		t.Fatal(err)
	}
	s.heard(id, "2", "2 with SWORDFISH")
	// No recipe has the value of the creature b, so b waits, and keeps everything.
	s.heard(own, "2", "1 with PUFFERFISH")
	s.stays(own, "b stays stopped", "token", "remove it, and add it again")
	if err := resume(`{"token":null,"open":1}`); abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), "token") {
		t.Fatalf("without a value for the variable: %v", err)
	}
	if err := resume(`{"token":"stonefish","open":2}`); err != nil {
		t.Fatal(err)
	}
	s.heard(id, "3", "3 with STONEFISH")
	if err := resume(`{"open":1}`); err != nil {
		t.Fatal(err)
	}
	s.heard(id, "4", "3 with STONEFISH")
	s.stays(id, "a stays stopped", "token", "add the attribute to the species again")
	if err := resume(`{"token":"swordfish"}`); err != nil {
		t.Fatal(err)
	}
	s.wait()
	s.heard(id, "5", "4 with SWORDFISH\n5 with SWORDFISH")
	s.shut()
	files, err := filepath.Glob(filepath.Join(s.dir, "stores", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no store files: %v", err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("swordfish")) || bytes.Contains(b, []byte("pufferfish")) || bytes.Contains(b, []byte("stonefish")) {
			t.Errorf("%s contains a secret, or cannot be read: %v", f, err)
		}
	}
}

// stays proves that a creature stays stopped, and what a plan says about it.
func (s *saved) stays(id journal.CreatureID, says ...string) {
	s.t.Helper()
	for _, g := range s.status() {
		for i := range g.Creatures {
			if c := &g.Creatures[i]; c.ID == id && c.State != journal.Stopped {
				s.t.Errorf("%s is %s", c.Name, c.State)
			}
		}
	}
	reason := engine.Staying(s.Engine, id)
	for _, text := range says {
		if reason == nil || !strings.Contains(reason.Error(), text) {
			s.t.Errorf("the creature stays stopped because of %v, which does not say %q", reason, text)
		}
	}
}

// TestARecipeAppliedAfterRestoringGivesSecrets restores a session as it was, and then applies
// its recipe, as an embedder may. Declared and spawned creatures get their secrets again: those
// of capabilities, and those of configurations.
func TestARecipeAppliedAfterRestoringGivesSecrets(t *testing.T) {
	k, h := newEcho(), newFakeHost()
	h.on("caller", caller)
	h.on("teller", teller)
	recipe := func() *deploy.Deployment {
		return team(1, func(d *deploy.Deployment) {
			s := deploy.CreatureSpec{Module: "caller", Wasm: []byte("caller"), Config: json.RawMessage(`{"reach":"echo.main"}`)}
			s.Capabilities = []deploy.Capability{{Kind: "echo", Name: "main", Settings: json.RawMessage(`{"forbid":"swordfish"}`), Secret: []string{"forbid"}}}
			d.Name, d.Species = "team", append(tellers(`{"token":"swordfish"}`).Species, deploy.SpeciesSpec{Name: "caller", Spawnable: 2, Spec: s})
			c := &d.Creatures[0]
			c.Module, c.Wasm, c.Config, c.Capabilities = s.Module, s.Wasm, s.Config, s.Capabilities
		})
	}
	s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}})
	boss := s.apply(recipe()).Creatures["creature.m0"]
	told := s.mustSpawn("team", "a", boss)
	called, err := s.spawn("team", "b", boss, func(c *deploy.CreatureSpec) { c.Species = "caller" })
	if err != nil {
		t.Fatal(err)
	}
	s.reopen()
	s.heard(told, "1", "1 with NO TOKEN")
	for _, c := range []journal.CreatureID{boss, called} {
		s.tellNow(c, "early")
		s.wait()
		if got := s.state(c, "heard"); !strings.Contains(got, "lacks its sensitive settings") {
			t.Errorf("before the recipe is applied, a creature has heard %q", got)
		}
	}
	s.apply(recipe())
	s.heard(told, "2", "2 with SWORDFISH")
	for _, c := range []journal.CreatureID{boss, called} {
		s.heard(c, "late", "4 ok 200 echo re: late")
		s.tellNow(c, "swordfish")
		s.wait()
		if got := s.state(c, "heard"); !strings.Contains(got, "denied: it is forbidden") {
			t.Errorf("a creature has heard %q, want that swordfish is forbidden", got)
		}
	}
}
