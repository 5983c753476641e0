package engine_test

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestAttemptsEndWithWhatGrantsThem proves that an attempt under way is interrupted when its
// creature is removed, and when a recipe no longer grants its capability.
func TestAttemptsEndWithWhatGrantsThem(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		k, h := newEcho(), newFakeHost()
		h.on("caller", caller)
		k.hold, k.held = make(chan struct{}), make(chan struct{}, 8) // hold is never closed
		o.Host, o.Capabilities = h, []capability.Kind{k}
		w := newWorld(t, o)
		a := w.add("a", "caller", reaching(`{}`))
		w.tellNow(a, "hold me")
		<-k.held
		w.change(topology.RemoveCreature{ID: a})
		w.wait() // which would not return during the attempt
		recipe := func(list ...deploy.Capability) *deploy.Deployment {
			return team(1, func(d *deploy.Deployment) {
				d.Creatures[0].Module, d.Creatures[0].Wasm = "caller", []byte("caller")
				d.Creatures[0].Config, d.Creatures[0].Capabilities = []byte(`{"reach":"echo.main"}`), list
			})
		}
		granted := deploy.Capability{Kind: "echo", Name: "main", Settings: []byte(`{}`)}
		b := w.apply(recipe(granted)).Creatures["creature.m0"]
		w.tellNow(b, "hold me too")
		<-k.held
		w.apply(recipe())
		w.wait()
		if got := w.state(b, "heard"); !strings.Contains(got, "denied") || !strings.Contains(got, "no longer grants the capability echo.main") {
			t.Errorf("b heard %q, want that its attempt was denied", got)
		}
	})
}
