package engine_test

import (
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/diff"
)

// membersOf are the creatures of a plan, by deployment and address.
func membersOf(p *diff.Plan) (out []string) {
	for _, c := range p.Creatures {
		out = append(out, c.Deployment+" "+c.Address)
	}
	return out
}

// TestAPlanAboutOneDeployment leaves out the members of another deployment, unless the graph
// that they share is cut.
func TestAPlanAboutOneDeployment(t *testing.T) {
	s := newSaved(t, engine.Options{})
	other := team(2)
	other.Name = "other"
	a, b := s.apply(team(2)), s.apply(other)
	d := team(2, configured(1, `{"v":1}`))
	about := func() *diff.Plan {
		plan, err := s.Plan(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return plan.About(d.Name)
	}
	own := []string{d.Name + " creature.m0", d.Name + " creature.m1"}
	apart := about()
	if got := membersOf(apart); !slices.Equal(got, own) {
		t.Errorf("while the graphs are separate, the plan lists %v", got)
	}
	for _, ch := range apart.Channels {
		if ch.Deployment != d.Name {
			t.Errorf("the plan lists the channel %s of %s", ch.Name, ch.Deployment)
		}
	}

	s.connect(a.Creatures["creature.m1"], b.Creatures["creature.m0"], "bridge")
	if got := membersOf(about()); !slices.Equal(got, own) {
		t.Errorf("while the graphs are and remain merged, the plan lists %v", got)
	}
	s.shut()
	s.open() // of saved graphs, the recipe alone decides: the bridge is removed
	cut := about()
	if got := membersOf(cut); !slices.Equal(got, append([]string{"other creature.m0", "other creature.m1"}, own...)) {
		t.Errorf("when the graphs will be split, the plan lists %v", got)
	}
	for _, c := range cut.Creatures {
		if !c.Cut {
			t.Errorf("the plan does not say that %s of %s is in a graph that splits", c.Address, c.Deployment)
		}
	}
}
