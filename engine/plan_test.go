package engine_test

import (
	"fmt"
	"iter"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
)

// planSeeds is how many programs the tests of plans draw with TERRARIUM_EVERY, unless
// TERRARIUM_SEEDS is set.
const planSeeds = 15

// seeds yields n seeds in make test-every, half as many in make test, or as many as
// TERRARIUM_SEEDS says.
func seeds(t *testing.T, n uint64) iter.Seq[uint64] {
	t.Helper()
	if !seeded.Part(1, 2) {
		n = (n + 1) / 2
	}
	if testing.Short() {
		n /= 5
	}
	if more, err := strconv.ParseUint(os.Getenv("TERRARIUM_SEEDS"), 10, 64); err == nil {
		n = more
	}
	return func(yield func(uint64) bool) {
		for first, i := seeded.First(), uint64(0); i < n && yield(first-1+i); i++ {
		}
	}
}

// shapeOf returns a plan without what changes by itself while graphs run.
func shapeOf(p *diff.Plan) diff.Plan {
	out := diff.Plan{Graphs: p.Graphs, Channels: p.Channels}
	for i := range out.Channels {
		out.Channels[i].Messages = 0
	}
	for _, c := range p.Creatures {
		c.Waiting, c.Buried = diff.Waiting{}, 0
		out.Creatures = append(out.Creatures, c)
	}
	return out
}

// TestAPlanSaysWhatApplyThenDoes draws deployments, changes them while they run, and edits
// them. It compares the plan with the stores before and after the edited deployments are
// applied. Every other program keeps the changes made while running.
func TestAPlanSaysWhatApplyThenDoes(t *testing.T) {
	for seed := range seeds(t, planSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { planProgram(t, seed) })
	}
}

// TestAPlanAfterADirectChannelWasHeardByOthers repeats programs in which a recipe removes
// a creature on whose direct channel a creature of another recipe listens.
func TestAPlanAfterADirectChannelWasHeardByOthers(t *testing.T) {
	for _, seed := range []uint64{160, 166} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { planProgram(t, seed) })
	}
}

// TestAPlanOfADeploymentOfWhichNothingIsLeft repeats a program in which operations remove a part
// of a deployment, and an edited recipe removes the rest.
func TestAPlanOfADeploymentOfWhichNothingIsLeft(t *testing.T) {
	planProgram(t, 3063366759958265397)
}

func planProgram(t *testing.T, seed uint64) {
	r, keep := newDrafts(seed), seed%2 == 1
	s := newSaved(t, engine.Options{})
	old := []*deploy.Deployment{r.deployment("d0", true), r.deployment("d1", true)}
	for _, d := range old {
		s.apply(d)
	}
	r.disturb(s, r.IntN(12), true)
	s.wait()
	before := s.rest()
	var edited []*deploy.Deployment
	for _, d := range old {
		e := r.edit(d, true)
		if keep {
			e.Last = d
		}
		edited = append(edited, e)
	}
	plan, perr := s.Plan(t.Context(), edited...)
	if _, err := s.ApplyAll(t.Context(), edited...); err != nil {
		if perr == nil || perr.Error() != err.Error() {
			t.Fatalf("Apply returns %v, but Plan returned %v", err, perr)
		}
		return
	}
	if perr != nil {
		t.Fatalf("the plan failed: %v", perr)
	}
	s.wait()
	after := s.rest()
	if diff := cmp.Diff(shapeOf(compare(before, after)), shapeOf(plan)); diff != "" {
		t.Errorf("what Apply did (-), and what was planned (+):\n%s", diff)
	}
	there := map[string]bool{}
	for _, g := range s.status() {
		for _, c := range g.Creatures {
			there[c.Deployment] = there[c.Deployment] || c.Address != ""
		}
	}
	var applied []*deploy.Deployment
	for _, d := range edited {
		again := *d
		if keep {
			again.Last = d
		}
		if keep && !there[d.Name] {
			continue // a deployment without members starts over: its store may have been lost
		}
		applied = append(applied, &again)
	}
	nothingLeft(t, s, applied)
}

// nothingLeft checks that planning deployments that are applied already yields no changes.
func nothingLeft(t *testing.T, s *saved, applied []*deploy.Deployment) {
	t.Helper()
	again, err := s.Plan(t.Context(), applied...)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Empty() {
		t.Errorf("the plan after applying still has changes: %s", cmp.Diff(diff.Plan{}, *again))
	}
}

func compare(before, after []journal.SavedGraph) *diff.Plan {
	plan, _ := diff.Compare(before, after, diff.Hidden{})
	return plan
}
