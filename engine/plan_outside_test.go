package engine_test

import (
	"testing"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
)

// TestAPlanListsOpenRequests ends an engine while requests to capabilities are open. A plan to
// resume lists what becomes of each request, and executes none.
func TestAPlanListsOpenRequests(t *testing.T) {
	k, h := newEcho(), newFakeHost()
	k.hold, k.held = make(chan struct{}), make(chan struct{}, 9)
	h.on("caller", caller)
	recipe := func(settings string, secret ...string) *deploy.Deployment {
		return team(1, func(d *deploy.Deployment) {
			c := &d.Creatures[0]
			c.Module, c.Wasm, c.Config = "caller", []byte("caller"), []byte(`{"reach":"echo.main"}`)
			if settings != "" {
				c.Capabilities = []deploy.Capability{{Kind: "echo", Name: "main", Settings: []byte(settings), Secret: secret}}
			}
			d.Name = "team"
		})
	}
	s := newSaved(t, engine.Options{Host: h, Capabilities: []capability.Kind{k}})
	first := recipe(`{"forbid":"swordfish"}`, "forbid")
	id := s.apply(first).Creatures["creature.m0"]
	s.tellNow(id, "hold 1")
	<-k.held
	if plan, err := s.Plan(t.Context(), first); err != nil || len(plan.Outside) != 0 {
		t.Errorf("the plan for a running engine is %+v, %v", plan, err)
	}
	s.shut()
	s.open()
	for name, c := range map[string]struct {
		recipe *deploy.Deployment
		want   diff.OutsidePlan
		sent   diff.RequestFuture
	}{
		"as before":      {first, diff.OutsidePlan{Reaches: []string{"everything"}}, diff.RequestSent},
		"not granted":    {recipe(""), diff.OutsidePlan{Revoked: true}, diff.RequestDenied},
		"without recipe": {nil, diff.OutsidePlan{Lacking: true}, diff.RequestWaits},
	} {
		var list []*deploy.Deployment
		if c.recipe != nil {
			list = append(list, c.recipe)
		}
		plan, err := s.PlanResume(t.Context(), list...)
		if err != nil {
			t.Fatal(name, err)
		}
		if len(plan.Outside) != 1 || len(plan.Outside[0].Requests) != 1 {
			t.Errorf("%s: %+v", name, plan.Outside)
			continue
		}
		got := plan.Outside[0]
		if q := got.Requests[0]; q.Becomes != c.sent || q.ID == "" {
			t.Errorf("%s: the request is %+v, want %s", name, q, c.sent)
		}
		if got.Creature != id || got.Capability != "echo.main" || len(got.Reaches) != len(c.want.Reaches) || got.Lacking != c.want.Lacking || got.Revoked != c.want.Revoked {
			t.Errorf("%s: %+v", name, got)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tries["hold 1"] != 1 {
		t.Errorf("the request was executed %d times", k.tries["hold 1"])
	}
}
