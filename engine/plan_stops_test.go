package engine_test

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
)

// TestAPlanTellsWhichRecipesStop plans conditions that do not hold, begin to hold, still hold
// and no longer hold. It compares each plan with the result of applying it, in running and in
// saved graphs.
func TestAPlanTellsWhichRecipesStop(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			a := s.apply(team(2))
			s.send(a.Channels["channel.c0"], "1")
			s.wait()
			s.apply(team(2, afterTurns(9))) // counting begins: 0 turns
			s.send(a.Channels["channel.c0"], "2")
			s.wait()
			for _, step := range []struct {
				more  func(*deploy.Deployment)
				want  diff.StopPlan
				empty bool
			}{
				{afterTurns(3), diff.StopPlan{}, true},
				{afterTurns(2), diff.StopPlan{Action: diff.StopBegins, Condition: "stop_when.enough", Reason: "turns 2 of 2"}, false},
				{afterTurns(2), diff.StopPlan{Action: diff.StopStays, Condition: "stop_when.enough", Reason: "turns 2 of 2"}, true},
				{afterTurns(4), diff.StopPlan{Action: diff.StopEnds, Condition: "stop_when.enough"}, false},
			} {
				if !running {
					s.reopen()
				}
				d := team(2, step.more)
				plan, err := s.Plan(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				var got diff.StopPlan
				for _, got = range plan.Stops {
					if got.Deployment != "team" || got.Graph != s.graph(a.Creatures["creature.m0"]) {
						t.Errorf("the plan lists a stop of another deployment or graph: %+v", got)
					}
					got.Deployment, got.Graph = "", ""
				}
				if got != step.want || len(plan.Stops) > 1 || running && plan.Empty() != step.empty {
					t.Errorf("the plan says %+v, empty %v; want %+v, %v", plan.Stops, plan.Empty(), step.want, step.empty)
				}
				if part := plan.About("other"); len(part.Stops) > 0 != (step.want.Action == diff.StopBegins || step.want.Action == diff.StopEnds) {
					t.Errorf("for another deployment, the plan says %+v", part.Stops)
				}
				if len(stops(s.status())) > 0 && running && step.want.Action == diff.StopBegins {
					t.Error("planning has stopped the recipe")
				}
				s.apply(d)
				s.wait()
				found := stops(s.status())
				if stopped := step.want.Reason != ""; stopped != (len(found) == 1) || stopped && found[0].Reason != step.want.Reason {
					t.Errorf("the plan said %+v, but the stops are %+v", step.want, found)
				}
			}
		})
	}
}

// TestAPlanTellsThatAMergeStopsAnotherRecipe plans a recipe that merges two graphs. In the
// merged graph, the creatures of another recipe have had as many turns as its condition says.
func TestAPlanTellsThatAMergeStopsAnotherRecipe(t *testing.T) {
	w := newWorld(t, engine.Options{})
	apart := func(name string, more ...func(*deploy.Deployment)) *deploy.Deployment {
		return team(2, append(more, func(d *deploy.Deployment) {
			d.Name, d.Creatures[0].Module, d.Creatures[0].Wasm, d.Creatures[0].Send = name, "record", []byte("record"), nil
		})...)
	}
	us, them := w.apply(apart("team")), w.apply(apart("other", afterTurns(5)))
	for i := range 2 {
		w.connect(us.Creatures[fmt.Sprint("creature.m", i)], them.Creatures[fmt.Sprint("creature.m", i)], "link")
		w.send(them.Channels[fmt.Sprint("channel.c", i)], "1")
		w.send(them.Channels[fmt.Sprint("channel.c", i)], "2")
	}
	w.wait()
	if graphs := w.status(); len(graphs) != 2 || len(stops(graphs)) > 0 {
		t.Fatalf("there are %d graphs, and the stops are %+v", len(graphs), stops(graphs))
	}
	plan, err := w.Plan(t.Context(), team(2))
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Stops) != 1 || plan.Stops[0].Deployment != "other" || plan.Stops[0].Action != diff.StopBegins || plan.Stops[0].Reason != "turns 6 of 5" {
		t.Errorf("the plan says %+v", plan.Stops)
	}
	w.apply(team(2))
	if found := stops(w.status()); len(found) != 1 || found[0].Deployment != "other" || found[0].Reason != "turns 6 of 5" {
		t.Errorf("the stops are %+v", found)
	}
}
