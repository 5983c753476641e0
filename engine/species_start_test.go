package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// TestASpeciesThatNeverStartsIsADiagnostic applies three recipes with a species that does not
// start: its module traps, its limits are too small for the module, or it refuses its
// configuration. Only the last one is accepted, because a spawn may set another configuration.
func TestASpeciesThatNeverStartsIsADiagnostic(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     *abi.Error
		refused bool
	}{
		{"a trap", &abi.Error{Code: abi.Trapped, Op: "_initialize", Message: "unreachable"}, true},
		{"a limit", &abi.Error{Code: abi.LimitExceeded, Op: "instantiate", Message: "the limit memory is 1"}, true},
		{"the configuration", &abi.Error{Code: abi.InvalidArgument, Op: abi.ExportInit, Message: "there is no key"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := operators()
			h.on("picky", func(abi.Turn, abi.Kind) error { return nil })
			h.inits["picky"] = func(t abi.Turn, _ abi.Kind) error {
				if _, code := t.Config([]byte("key")); code == abi.OK {
					return nil
				}
				return c.err
			}
			w := newWorld(t, engine.Options{Host: h})
			d := crew("crew", func(d *deploy.Deployment) {
				d.Species[0] = deploy.SpeciesSpec{Name: "scribe", Where: "crew.hcl:7", Spawnable: 3, Spec: deploy.CreatureSpec{Module: "picky", Wasm: []byte("picky"), Stopped: true}}
			})
			a, err := w.Apply(t.Context(), d)
			if c.refused {
				if !errors.Is(err, &abi.Error{Code: c.err.Code}) || !strings.Contains(err.Error(), `crew.hcl:7: species "scribe"`) || !strings.Contains(err.Error(), c.err.Message) {
					t.Errorf("Apply: %v", err)
				}
				if len(w.status()) != 0 {
					t.Error("something was applied")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			lead := a.Creatures["creature.lead"]
			replies := w.ask(lead, toolCall{"group_add_node", args{"species": "scribe"}}, toolCall{"group_add_node", args{"species": "scribe", "config": args{"key": "k"}}})
			if replies[1].Code != "" {
				t.Errorf("the reply to a spawn with a configuration is %+v", replies[1])
			}
			if n := h.open(); n > 4 {
				t.Errorf("%d instances are open, want at most 4", n)
			}
		})
	}
}

// TestATriedInstanceIsDiscarded checks that the instance of a trial is closed, and does not
// count for the limit of its species.
func TestATriedInstanceIsDiscarded(t *testing.T) {
	h := configHost()
	w := newWorld(t, engine.Options{Host: h})
	w.apply(breeding("pond", 1))
	w.wait()
	if n := h.open(); n > 1 { // at most the instance of the only creature, which may not be running
		t.Errorf("%d instances are open", n)
	}
	one := w.mustSpawn("pond", "one", "")
	w.wait()
	var config map[string]int
	if err := json.Unmarshal([]byte(w.state(one, "config")), &config); err != nil || config["a"] != 1 {
		t.Errorf("the configuration of the spawned creature is %v, %v", config, err)
	}
}
