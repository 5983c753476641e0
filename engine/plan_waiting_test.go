package engine_test

import (
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestAPlanCountsWhatWaits removes a stopped creature with its backlog: the plan, the report of
// Apply and the dead letters agree.
func TestAPlanCountsWhatWaits(t *testing.T) {
	s := newSaved(t, engine.Options{})
	stopped := func(d *deploy.Deployment) { d.Creatures[1].Stopped = true }
	a := s.apply(team(2, stopped))
	for range 7 {
		s.send(a.Channels["channel.c1"], "hello")
	}
	s.wait()
	s.rest()
	plan, err := s.Plan(t.Context(), team(2, stopped))
	if err != nil {
		t.Fatal(err)
	}
	if c := planned(t, plan, "creature.m1"); c.Action != diff.PlanResume || c.Waiting.Deliveries != 7 || c.Buried != 0 {
		t.Errorf("m1 would be resumed as %+v, want 7 deliveries waiting", c)
	}
	gone := team(2, func(d *deploy.Deployment) {
		d.Creatures = d.Creatures[:1]
	})
	if plan, err = s.Plan(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if c := planned(t, plan, "creature.m1"); c.Action != diff.PlanRemove || c.Buried != 7 {
		t.Errorf("m1 would be removed as %+v, want 7 deliveries buried", c)
	}
	applied := s.apply(gone)
	if len(applied.Removed) != 1 || applied.Removed[0].Pending != 7 {
		t.Errorf("removed: %+v, want 7 deliveries pending", applied.Removed)
	}
	letters, err := s.DeadLetters(t.Context(), s.graph(applied.Creatures["creature.m0"]), "", journal.EventID{}, 0)
	if err != nil || len(letters) != 7 {
		t.Errorf("%d dead letters, %v; want 7", len(letters), err)
	}
}

func planned(t *testing.T, p *diff.Plan, address string) diff.CreaturePlan {
	t.Helper()
	for _, c := range p.Creatures {
		if c.Address == address {
			return c
		}
	}
	t.Fatalf("the plan has no %s", address)
	return diff.CreaturePlan{}
}

// TestAPlanAgainstWhatRuns covers an engine with running graphs: a plan for another
// deployment leaves them alone.
func TestAPlanAgainstWhatRuns(t *testing.T) {
	s := newSaved(t, engine.Options{})
	s.apply(team(2))
	other := team(1)
	other.Name = "other"
	plan, err := s.Plan(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Graphs) != 1 || plan.Graphs[0].Kind != "begin" || len(s.status()) != 1 {
		t.Errorf("the plan is %+v with %d graphs running, want that one more begins", plan.Graphs, len(s.status()))
	}
	if plan, err := s.Plan(t.Context(), team(2)); err != nil || !plan.Empty() {
		t.Errorf("the plan would change a deployment that is applied already: %+v, %v", plan, err)
	}
}
