package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

func describes(text string) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) { d.Channels[1].Description = text }
}

// described is the description of the channel work in the status and in an awareness
// document.
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
// session. The description stays when the recipe is no longer applied, and stays the
// old one when the recipe is refused.
func TestARecipeDescribesAChannelAgain(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("crew", describes("to be done"))).Creatures["creature.lead"]
	s.reopen()
	if got := s.described(lead); got != "to be done" {
		t.Errorf("before it is described as %q", got)
	}
	if _, err := s.Apply(t.Context(), crew("crew", describes("never"), func(d *deploy.Deployment) {
		d.Creatures[0].Outputs = []deploy.OutputSpec{{Name: "x", To: "creature.ann", When: "undeclared"}}
	})); err == nil || s.described(lead) != "to be done" {
		t.Errorf("a recipe that was refused (%v) has described it as %q", err, s.described(lead))
	}
	s.apply(crew("crew", describes("done")))
	for _, when := range []string{"at once", "after a restart"} {
		if got := s.described(lead); got != "done" {
			t.Errorf("%s it is described as %q", when, got)
		}
		s.reopen()
	}
}

// TestDescriptionsAreReadWhileARecipeIsApplied lets many creatures look at their channel
// for the first time while a recipe changes its description; the race detector says
// whether that is sound.
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
				t.Errorf("it is described as %q", got)
			}
		})
	}
	close(begin)
	s.apply(many("done"))
	looking.Wait()
	if got := s.described(ids["creature.m0"]); got != "done" {
		t.Errorf("in the end it is described as %q", got)
	}
}
