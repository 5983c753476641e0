package reconcile_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
	"github.com/seed47132306/terrarium/engine/topology"
)

func rooted(root string, edits ...func(*deploy.Deployment)) *deploy.Deployment {
	d := crew(edits...)
	d.Root = root
	return d
}

// TestRoot proves which edges a root gets, and which own edges it keeps when
// it stops being the root.
func TestRoot(t *testing.T) {
	s := newScene(t, rooted("creature.lead"))
	s.check(
		"lead root privileged", "hand", "#tasks", "#notes", "#report_to_root",
		"lead sends tasks", "hand listens tasks", "hand sends notes", "lead listens notes",
		"lead listens tasks", "lead listens report_to_root", "hand sends report_to_root",
	)
	if own := s.members[s.lead].Own.List(); !slices.Equal(own, []draft.OwnEdge{{Channel: s.notes, Direction: journal.Listen}}) {
		t.Errorf("the root's own are %v", own)
	}
	before := s.picture()
	s.apply(rooted("creature.hand"))
	want := []string{
		"- hand", "- hand sends report_to_root", "- lead listens report_to_root", "- lead listens tasks", "- lead root privileged",
		"+ hand listens notes", "+ hand listens report_to_root", "+ hand root privileged", "+ lead", "+ lead sends report_to_root",
	}
	if diff := cmp.Diff(want, changes(before, s.picture())); diff != "" {
		t.Errorf("another root (-want +got):\n%s", diff)
	}
	before = s.picture()
	s.apply(crew())
	want = []string{
		"- #report_to_root", "- hand listens notes", "- hand listens report_to_root", "- hand root privileged", "- lead sends report_to_root", "+ hand",
	}
	if diff := cmp.Diff(want, changes(before, s.picture())); diff != "" {
		t.Errorf("no root (-want +got):\n%s", diff)
	}
}

// TestOwnEdgesOfARoot proves that edges that a root got at run time are still
// its own after the deployment is applied again.
func TestOwnEdgesOfARoot(t *testing.T) {
	last := rooted("creature.lead")
	s := newScene(t, last)
	s.do(listens(s.lead, s.tasks)) // which it has as the root anyway
	want := []draft.OwnEdge{{Channel: s.tasks, Direction: journal.Listen}, {Channel: s.notes, Direction: journal.Listen}}
	for range 2 {
		if own := s.members[s.lead].Own.List(); !slices.Equal(own, want) {
			t.Errorf("the root's own are %v", own)
		}
		s.update(rooted("creature.lead"), last)
	}
	s.apply(rooted("creature.lead")) // which decides alone
	if own := s.members[s.lead].Own.List(); !slices.Equal(own, want[1:]) {
		t.Errorf("the root's own are %v", own)
	}
}

// TestRootAssignedMeanwhile assigns another root at run time: it stays the root
// and listens on new channels, unless the recipe's root has changed.
func TestRootAssignedMeanwhile(t *testing.T) {
	more := func(d *deploy.Deployment) {
		d.Channels = append(d.Channels, channelSpec("more"))
		lead(d).Send = on("tasks", "more")
	}
	for name, c := range map[string]struct {
		to    *deploy.Deployment
		alone bool
		want  []string
	}{
		"stays":    {rooted("creature.lead"), false, nil},
		"hears it": {rooted("creature.lead", more), false, []string{"+ #more", "+ hand listens more", "+ lead sends more"}},
		"decided alone": {rooted("creature.lead"), true, []string{
			"- hand listens notes", "- hand listens report_to_root", "- hand root privileged", "- lead privileged", "- lead sends report_to_root",
			"+ hand", "+ hand sends report_to_root", "+ lead listens report_to_root", "+ lead listens tasks", "+ lead root privileged",
		}},
		"decided alone, with an edge that it was given": {rooted("creature.lead", func(d *deploy.Deployment) {
			hand(d).Listen = on("tasks", "notes")
		}), true, []string{
			"- hand listens report_to_root", "- hand root privileged", "- lead privileged", "- lead sends report_to_root",
			"+ hand", "+ hand sends report_to_root", "+ lead listens report_to_root", "+ lead listens tasks", "+ lead root privileged",
		}},
		"none any more": {crew(), false, []string{
			"- #report_to_root", "- hand listens notes", "- hand listens report_to_root", "- hand root privileged",
			"- lead privileged", "- lead sends report_to_root", "+ hand privileged", "+ lead",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			last := rooted("creature.lead")
			s := newScene(t, last)
			s.assign(s.hand)
			before := s.picture()
			o := reconcile.Options{Drift: reconcile.DriftFrom(last)}
			if c.alone {
				o.Drift = nil
			}
			if diff := cmp.Diff(c.want, s.again(c.to, o)); diff != "" {
				t.Errorf("of %q changes (-want +got):\n%s", before, diff)
			}
		})
	}
}

// output wires the lead's output to the hand.
func output(o deploy.OutputSpec) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) {
		o.To = "creature.hand"
		lead(d).Outputs = append(lead(d).Outputs, o)
	}
}

// TestWires proves that an unchanged wire keeps its id, and that removals are
// recorded.
func TestWires(t *testing.T) {
	first, second := output(deploy.OutputSpec{Name: "first"}), output(deploy.OutputSpec{Name: "second", Prompt: "look"})
	last := crew(first, second)
	s := newScene(t, last)
	had := s.members[s.lead].Wires
	extra := s.wire(journal.OutputWire{Name: "extra", From: s.hand, To: s.lead})
	third := s.wire(journal.OutputWire{Name: "third", From: s.lead, To: s.hand, Prompt: "third"})

	d := crew(second, first, output(deploy.OutputSpec{Name: "new", Prompt: "new"}))
	s.update(d, last)
	now := s.members[s.lead].Wires
	if len(now) != 4 || now[0].ID != had[1].ID || now[1].ID != had[0].ID || now[2].Name != "new" || now[3].ID != third.ID {
		t.Errorf("the wires were %v and are %v", had, now)
	}
	if list := s.members[s.hand].Wires; len(list) != 1 || list[0].ID != extra.ID {
		t.Errorf("the hand's wires are %v", list)
	}

	s.apply(crew(output(deploy.OutputSpec{Name: "first", Prompt: "otherwise"})))
	now = s.members[s.lead].Wires
	if len(now) != 1 || now[0].Name != "first" || now[0].ID == had[0].ID {
		t.Errorf("alone: the wires were %v and are %v", had, now)
	}
	var removed []string
	for _, n := range s.wireNotes {
		if n.Kind == journal.EventWireRemoved && n.Reason == journal.UnwireRecipe {
			removed = append(removed, n.Wire.Name)
		}
	}
	if want := []string{"second", "first", "new", "third", "extra"}; !slices.Equal(removed, want) {
		t.Errorf("noted as removed are %v", removed)
	}
}

// TestWireRemovedMeanwhile removes a wire at run time: it is restored only if
// the deployment decides alone, or heals.
func TestWireRemovedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		drift func(*deploy.Deployment) *reconcile.Drift
		want  []string
	}{
		"alone": {func(*deploy.Deployment) *reconcile.Drift { return nil }, []string{"+ lead wires hand out"}},
		"drift": {reconcile.DriftFrom, nil},
		"heals": {reconcile.HealingFrom, []string{"+ lead wires hand out"}},
	} {
		t.Run(name, func(t *testing.T) {
			last := crew(output(deploy.OutputSpec{Name: "out"}))
			s := newScene(t, last)
			x := draft.New(s, s, draft.Options{IDs: s})
			if _, err := x.RemoveWire(t.Context(), s.members[s.lead].Wires[0].ID); err != nil {
				t.Fatal(err)
			}
			s.carryOut(x)
			if diff := cmp.Diff(c.want, s.again(last, reconcile.Options{Drift: c.drift(last)})); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWireToACreatureRemovedMeanwhile removes the target of a wire at run time:
// the target is not restored, and the wire leads nowhere until it is removed.
func TestWireToACreatureRemovedMeanwhile(t *testing.T) {
	last := crew(output(deploy.OutputSpec{Name: "out"}))
	s := newScene(t, last)
	s.do(topology.RemoveCreature{ID: s.hand})
	s.update(last, last)
	s.check("lead", "#tasks", "#notes", "lead sends tasks", "lead listens notes", "lead wires "+string(s.hand)+" out")
}

// TestWireToNobody refuses a wire whose target is not in the deployment, and
// reports its place. The deployment leaves nothing behind.
func TestWireToNobody(t *testing.T) {
	w := newWorld(t)
	_, err := w.try(crew(func(d *deploy.Deployment) {
		lead(d).Outputs = []deploy.OutputSpec{{To: "creature.ghost", Where: "team.hcl:7"}}
	}), reconcile.Options{})
	if want := "team.hcl:7: creature.lead: "; abi.CodeOf(err) != abi.NotFound || err.Error()[:len(want)] != want {
		t.Errorf("error is %v", err)
	}
	w.check()
}
