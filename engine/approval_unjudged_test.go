package engine_test

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestQuestionsWaitForTheirPolicies restores a session without its recipe, so that the policy that
// has asked is not in force. The turn must neither run without it, nor withdraw the question, nor
// ignore an answer. It continues when the recipe has been applied.
func TestQuestionsWaitForTheirPolicies(t *testing.T) {
	for _, answered := range []string{"before", "after", "never"} {
		for _, approve := range []bool{true, false} {
			t.Run(fmt.Sprint(answered, approve), func(t *testing.T) {
				s := newSaved(t, engine.Options{})
				d := func() *deploy.Deployment { return team(3, judgedBy(asksAbout("c1", "danger"))) }
				a := s.apply(d())
				m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
				s.send(a.Channels["channel.c0"], "danger")
				s.send(a.Channels["channel.c0"], "3")
				s.wait()
				before := s.questions()
				s.reopen()
				s.wait()
				same(t, "without the recipe the questions are", s.questions(), before)
				if answered == "before" {
					s.decide(engine.Decision{Approve: approve})
				}
				if _, err := s.Apply(t.Context(), &deploy.Deployment{Name: "another"}); err != nil {
					t.Fatal(err)
				}
				if _, err := s.ReplaceModule(t.Context(), m0, engine.Replacement{Module: "relay", Wasm: []byte("relay")}); err != nil {
					t.Fatal(err)
				}
				s.wait()
				same(t, "without the recipe m2 heard", s.state(m2, "heard"), "")
				if c, _ := s.creatureIn(m0); c.State != journal.AwaitingApproval {
					t.Errorf("without the recipe m0 is %s", c.State)
				}
				s.apply(d())
				s.wait()
				if answered == "after" {
					s.decide(engine.Decision{Approve: approve})
				}
				want := map[bool]string{true: "c2:danger\nc2:3\n", false: "c2:3\n"}[approve]
				if answered == "never" {
					want = ""
				}
				same(t, "with the recipe m2 heard", s.state(m2, "heard"), want)
			})
		}
	}
}

// TestAQuestionWithoutARecipe proves that a turn does not wait for a recipe that the graph no longer
// has: the recipe was removed while the creature was stopped.
func TestAQuestionWithoutARecipe(t *testing.T) {
	s := newSaved(t, engine.Options{})
	listener := spec("listener", "record")
	listener.Address, listener.Listen = "creature.listener", []deploy.WireSpec{{Channel: "channel.out"}}
	out := s.apply(&deploy.Deployment{
		Name: "gate", Policy: asksAbout("out", "danger"),
		Channels:  []deploy.ChannelSpec{{Address: "channel.out", Name: "out"}},
		Creatures: []deploy.CreatureSpec{listener},
	}).Channels["channel.out"]
	c := s.add("c", "relay")
	s.change(topology.SetEdge{Creature: c, Channel: out, Direction: journal.Send, On: true})
	s.tell(c, "danger")
	s.wait()
	same(t, "the questions are", len(s.questions()), 1)
	s.change(topology.SetStopped{ID: c, Stopped: true})
	s.apply(&deploy.Deployment{Name: "gate"})
	s.reopen()
	s.wait()
	same(t, "after the restart the questions are", len(s.questions()), 1)
	s.change(topology.SetStopped{ID: c})
	s.wait()
	same(t, "when the creature runs again the questions are", len(s.questions()), 0)
	if got, _ := s.creatureIn(c); got.State != journal.Running {
		t.Errorf("the creature is %s", got.State)
	}
}

// TestAFailedApplyLeavesQuestionsAlone applies a recipe whose cut fails, and then restores the
// session without it: the question must keep its turn.
func TestAFailedApplyLeavesQuestionsAlone(t *testing.T) {
	d := newOnDisk(t)
	d.disk.Manual = false
	recipe := func() *deploy.Deployment { return team(3, judgedBy(asksAbout("c1", "danger"))) }
	a, err := d.Apply(t.Context(), recipe())
	if err != nil {
		t.Fatal(err)
	}
	d.send(a.Channels["channel.c0"], "danger")
	d.serve()
	d.disk.Flush()
	d.disk.Kill()
	d.start()
	d.disk.FailCuts = 1
	parted := recipe()
	parted.Creatures[1].Send = nil // the last creature gets a graph of its own
	if _, err := d.Apply(t.Context(), parted); err == nil {
		t.Fatal("the recipe is applied, although the cut has failed")
	}
	d.restore()
	d.serve()
	questions := func() int {
		list, err := d.Approvals()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := questions(); n != 1 {
		t.Errorf("after a recipe that failed, %d questions wait, want 1", n)
	}
	if _, err := d.Apply(t.Context(), recipe()); err != nil {
		t.Fatal(err)
	}
	d.serve()
	if n := questions(); n != 1 {
		t.Errorf("with the recipe, %d questions wait, want 1", n)
	}
}
