package engine_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// TestARefusalTellsTheIDs checks where a refused call shows: in the guest's error text,
// in the result of the operation, and in the log when the guest fails because of it.
func TestARefusalTellsTheIDs(t *testing.T) {
	h := operators()
	h.on("fragile", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		_, code := t.Tool([]byte("group_remove_node"), []byte(`{"creature": "lead"}`))
		return codeErr(t, code)
	})
	w := newWorld(t, engine.Options{Host: h})
	a := w.apply(crew("crew", func(d *deploy.Deployment) {
		d.Creatures[2].Module, d.Creatures[2].Wasm, d.Creatures[2].Privileged = "fragile", []byte("fragile"), true
		d.Creatures[2].Restart = deploy.RestartPolicy{Mode: deploy.RestartNever}
	}))
	lead, bob := a.Creatures["creature.lead"], a.Creatures["creature.bob"]
	r := w.ask(lead, toolCall{"group_remove_node", args{"creature": "lead"}})[0]
	if want := "tools cannot remove, stop, start or pause a privileged creature; the operator can do it (creature=" + string(lead) + ")"; r.Error != want {
		t.Errorf("the guest reads %q, want %q", r.Error, want)
	}
	r = w.ask(lead, toolCall{"group_add_node", args{"species": "clerk"}}, toolCall{"group_add_node", args{"species": "clerk"}})[1]
	if !strings.HasSuffix(r.Error, " (deployment=crew, limit=spawnable, species=clerk)") {
		t.Errorf("the guest reads %q", r.Error)
	}
	r = w.ask(lead, toolCall{"group_remove_node", args{"creature": "a, b=(c"}})[0]
	if !strings.HasSuffix(r.Error, ` (creature="a, b=(c")`) {
		t.Errorf("the guest reads %q", r.Error)
	}
	_, err := w.Tool(t.Context(), lead, "group_remove_node", []byte(`{"creature": "`+string(bob)+`"}`))
	var e *abi.Error
	if !errors.As(err, &e) || e.IDs["creature"] != string(bob) || e.IDs["caller"] != string(lead) || e.Remedy == "" {
		t.Errorf("the operation returns %+v", e)
	}
	w.tell(bob, "go")
	if l := w.letters(bob); len(l) != 1 || !strings.Contains(l[0].Error, "creature="+string(lead)) {
		t.Errorf("the dead letter says %+v", l)
	}
}

// TestARefusalOfAStartSaysWhichAndWhy covers a wrapped error.
func TestARefusalOfAStartSaysWhichAndWhy(t *testing.T) {
	h := operators()
	fails := false
	h.on("moody", func(abi.Turn, abi.Kind) error { return nil })
	h.inits["moody"] = func(t abi.Turn, _ abi.Kind) error {
		if !fails {
			return nil
		}
		t.Log(abi.LevelError, []byte("no mood"))
		return &abi.Error{Code: abi.Trapped, Message: "it trapped", Remedy: "cheer it up", IDs: map[string]string{"mood": "low"}}
	}
	w := newWorld(t, engine.Options{Host: h})
	lead := w.apply(crew("crew", func(d *deploy.Deployment) {
		d.Species[0].Spec.Module, d.Species[0].Spec.Wasm = "moody", []byte("moody")
	})).Creatures["creature.lead"]
	fails = true
	r := w.ask(lead, toolCall{"group_add_node", args{"species": "scribe", "name": "eve"}})[0]
	if want := "add_creature: starting eve: it trapped (it logged: no mood); cheer it up (mood=low)"; r.Code != "trapped" || r.Error != want {
		t.Errorf("%s %q, want %q", r.Code, r.Error, want)
	}
}

// TestErrorTextsAreCutBetweenCharacters uses long names with characters of several bytes,
// cut at every place within one.
func TestErrorTextsAreCutBetweenCharacters(t *testing.T) {
	w := newWorld(t, engine.Options{Host: operators()})
	lead := w.apply(crew("crew")).Creatures["creature.lead"]
	for shift := range 4 {
		for _, char := range []string{"é", "語", "🦎"} {
			long := strings.Repeat("x", shift) + strings.Repeat(char, 3000)
			for _, call := range []toolCall{
				{"group_remove_node", args{"creature": long}},
				{"group_wire", args{"action": "remove", "wire": long}},
				{"group_channel", args{"action": long}},
			} {
				r := w.ask(lead, call)[0]
				if r.Code == "" || len(r.Error) > 16<<10 || !utf8.ValidString(r.Error) || strings.ContainsAny(r.Error, "\uFFFD\\") {
					t.Errorf("%s with %d bytes before many %s: %s %.200q", call.Tool, shift, char, r.Code, r.Error)
				}
			}
		}
	}
}

// TestSpeciesOfOthersAreNotListed lets a creature that belongs to no recipe spawn. The call
// fails, and its error names no species of another recipe.
func TestSpeciesOfOthersAreNotListed(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	s.apply(crew("crew"))
	alone, err := s.AddCreature(t.Context(), deploy.CreatureSpec{Name: "alone", Module: "operator", Wasm: []byte("operator"), Privileged: true})
	if err != nil {
		t.Fatal(err)
	}
	r := s.ask(alone.Creature, toolCall{"group_add_node", args{"species": "dragon"}})[0]
	if r.Code != "not_found" || !strings.Contains(r.Error, "no species dragon may be spawned") || strings.Contains(r.Error, "scribe") {
		t.Errorf("%s: %s", r.Code, r.Error)
	}
}
