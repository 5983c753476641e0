package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/tools"
)

func describes(text string) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) { d.Channels[1].Description = text }
}

// described returns the description of the channel work in the awareness document of a creature.
func (s *saved) described(a journal.CreatureID) string {
	s.t.Helper()
	v, err := s.Awareness(a)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	for _, ch := range v.Document().Channels.Items {
		if ch.Name == "work" {
			return ch.Description
		}
	}
	s.t.Error("there is no channel work")
	return ""
}

// TestARecipeDescribesAChannelAgain applies a recipe with another description to a running
// session. The new description remains when the session is restored without the recipe. If the
// recipe is refused, the old one remains.
func TestARecipeDescribesAChannelAgain(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("crew", describes("to be done"))).Creatures["creature.lead"]
	s.reopen()
	if got := s.described(lead); got != "to be done" {
		t.Errorf("before the change, the channel is described as %q", got)
	}
	if _, err := s.Apply(t.Context(), crew("crew", describes("never"), func(d *deploy.Deployment) {
		d.Creatures[0].Outputs = []deploy.OutputSpec{{Name: "x", To: "creature.ann", When: "undeclared"}}
	})); err == nil || s.described(lead) != "to be done" {
		t.Errorf("after a recipe that was refused (%v), the channel is described as %q", err, s.described(lead))
	}
	s.apply(crew("crew", describes("done")))
	for _, when := range []string{"at once", "after a restart"} {
		if got := s.described(lead); got != "done" {
			t.Errorf("%s the channel is described as %q", when, got)
		}
		s.reopen()
	}
}

// TestDescriptionsAreReadWhileARecipeIsApplied lets many creatures look at their channel for the
// first time while a recipe changes its description. It is for the race detector.
func TestDescriptionsAreReadWhileARecipeIsApplied(t *testing.T) {
	const members = 60
	many := func(text string) *deploy.Deployment {
		return crew("crew", describes(text), func(d *deploy.Deployment) {
			for i := range members {
				c := d.Creatures[1]
				c.Name, c.Address = fmt.Sprint("m", i), fmt.Sprint("creature.m", i)
				d.Creatures = append(d.Creatures, c)
			}
		})
	}
	s := newSaved(t, engine.Options{Host: operators()})
	ids := s.apply(many("to be done")).Creatures
	s.reopen()
	begin := make(chan bool)
	var looking sync.WaitGroup
	for i := range members {
		looking.Go(func() {
			<-begin
			if got := s.described(ids[fmt.Sprint("creature.m", i)]); got != "to be done" && got != "done" {
				t.Errorf("the channel is described as %q", got)
			}
		})
	}
	close(begin)
	s.apply(many("done"))
	looking.Wait()
	if got := s.described(ids["creature.m0"]); got != "done" {
		t.Errorf("in the end the channel is described as %q", got)
	}
}

// TestARecipeDescribesACreatureAgain applies a recipe with other descriptions of creatures and
// species to a running session. No creature gets another instance because of that. A spawned
// creature keeps the description with which it was spawned. A restart without the recipe
// changes nothing.
func TestARecipeDescribesACreatureAgain(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	as := func(ann, scribe string) *deploy.Deployment {
		return crew("crew", func(d *deploy.Deployment) {
			d.Creatures[1].Description, d.Species[0].Description = ann, scribe
		})
	}
	made := s.apply(as("digs", strings.Repeat("writes ", 99))).Creatures
	lead, ann := made["creature.lead"], made["creature.ann"]
	replies := s.ask(lead, toolCall{"group_add_node", args{"species": "scribe", "name": "eve"}},
		toolCall{"group_add_node", args{"species": "scribe", "name": "own", "description": "writes letters"}})
	eve, own := answer[tools.AddNodeResult](t, replies[0]).Creature, answer[tools.AddNodeResult](t, replies[1]).Creature
	says := func(want ...string) {
		t.Helper()
		got := map[journal.CreatureID]string{}
		for _, c := range answer[tools.GroupStatus](t, s.ask(lead, toolCall{"group_status", nil})[0]).Creatures {
			got[c.ID] = c.Description
		}
		v, err := s.Awareness(lead)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range []journal.CreatureID{ann, eve, own} {
			if !strings.HasPrefix(got[id], want[i]) || len(got[id]) > outlook.MaxDescription+len("…") {
				t.Errorf("group_status describes %s as %q, want %q", id, got[id], want[i])
			}
			if !strings.Contains(string(v.Markdown()), got[id]) {
				t.Errorf("awareness does not describe %s as %q:\n%s", id, got[id], v.Markdown())
			}
			if self, err := s.Awareness(id); err != nil || self.Document().Self.Description != got[id] {
				t.Errorf("%s sees itself as %+v: %v", id, self.Document().Self, err)
			}
			if of, _ := s.creatureIn(id); !strings.HasPrefix(of.Description, want[i]) {
				t.Errorf("the status describes %s as %q", id, of.Description)
			}
		}
	}
	says("digs", "writes writes", "writes letters")
	starts := s.starts(ann)
	plan, err := s.Plan(t.Context(), as("plants", "copies"))
	if err != nil {
		t.Fatal(err)
	}
	want := []diff.PlanChange{{What: "description", Before: "digs", After: "plants"}}
	if i := slices.IndexFunc(plan.Creatures, func(c diff.CreaturePlan) bool { return c.Creature == ann }); i < 0 || !slices.Equal(plan.Creatures[i].Changes, want) {
		t.Errorf("the plan is %+v", plan.Creatures)
	}
	s.apply(as("plants", "copies"))
	says("plants", "writes writes", "writes letters")
	if now := s.starts(ann); now != starts {
		t.Errorf("a change of a description has started an instance: %d, before %d", now, starts)
	}
	v, err := s.Awareness(lead)
	if err != nil || !strings.Contains(string(v.Markdown()), "- `scribe`: 3 at most: `copies`") {
		t.Errorf("the species is described in\n%s\n%v", v.Markdown(), err)
	}
	s.reopen()
	says("plants", "writes writes", "writes letters")
	s.apply(as("plants", "copies"))
	says("plants", "writes writes", "writes letters")
	_, err = s.Apply(t.Context(), as(strings.Repeat("x", deploy.MaxDescription+1), ""))
	if abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("a description that is too long: %v", err)
	}
}
