package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestNoSingleCreatureOfAStoppedRecipeStarts has a stopped recipe in the graph of another one.
// The lead of that one sees the creatures of the stopped recipe as paused. Neither a tool nor
// an operation can start or resume one of them: the error says why, and how the recipe
// continues. They can be stopped and paused, which still holds when the recipe continues.
func TestNoSingleCreatureOfAStoppedRecipeStarts(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	lead := s.apply(crew("crew")).Creatures["creature.lead"]
	a := s.apply(team(2, afterTurns(3)))
	m0, m1 := a.Creatures["creature.m0"], a.Creatures["creature.m1"]
	s.connect(lead, m0, "link")
	s.wait()
	s.wantState(lead, m0, journal.Running)
	s.send(a.Channels["channel.c0"], "1")
	s.wait()
	s.wantState(lead, m0, journal.Paused)
	s.wantState(lead, m1, journal.Paused)

	call := func(tool string, id journal.CreatureID) toolReply {
		return s.ask(lead, toolCall{tool, args{"creature": string(id)}})[0]
	}
	refused := func(id journal.CreatureID, name string) {
		t.Helper()
		want := "the creature " + name + " belongs to the recipe team, which has stopped, because stop_when.enough holds: turns 3 of 3"
		for _, tool := range []string{"group_start_node", "group_resume_node"} {
			if r := call(tool, id); r.Code != "stopped" || !strings.Contains(r.Error, want) || !strings.Contains(r.Error, "apply it again") {
				t.Errorf("%s returns %+v", tool, r)
			}
		}
		_, err := s.Change(t.Context(), topology.SetStopped{ID: id})
		if abi.CodeOf(err) != abi.Stopped || !strings.Contains(err.Error(), want) {
			t.Errorf("starting the creature from outside returns %v", err)
		}
		if _, err = s.Tool(t.Context(), id, "group_send", []byte(`{}`)); abi.CodeOf(err) != abi.Stopped || !strings.Contains(err.Error(), want) {
			t.Errorf("a call of a tool on behalf of the creature returns %v", err)
		}
	}
	refused(m0, "m0")
	if r := answer[tools.NodeState](t, call("group_pause_node", m0)); r.State != journal.Paused {
		t.Errorf("the result of group_pause_node is %+v", r)
	}
	s.change(topology.SetStopped{ID: m1, Stopped: true})
	s.wantState(lead, m0, journal.Paused)
	s.wantState(lead, m1, journal.Stopped)
	refusedAgain := func() {
		t.Helper()
		for _, id := range []journal.CreatureID{m0, m1} {
			if _, err := s.Change(t.Context(), topology.SetStopped{ID: id}); abi.CodeOf(err) != abi.Stopped {
				t.Errorf("starting %s returns %v, want stopped", id, err)
			}
		}
	}
	refusedAgain()
	last := team(2, afterTurns(3))
	s.apply(team(2, afterTurns(9), func(d *deploy.Deployment) { d.Last = last }))
	s.wantState(lead, m0, journal.Paused)
	s.wantState(lead, m1, journal.Stopped)
	s.change(topology.SetStopped{ID: m1})
	if r := call("group_resume_node", m0); r.Code != "" {
		t.Errorf("when the recipe continues, group_resume_node returns %+v", r)
	}
	s.wantState(lead, m0, journal.Running)
	s.wantState(lead, m1, journal.Running)
}

// TestPoliciesSeeCreaturesOfAStoppedRecipeAsPaused spawns twice in a turn. The policy that judges the
// second spawn sees the graph with the first one.
func TestPoliciesSeeCreaturesOfAStoppedRecipeAsPaused(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	seen := map[string]journal.CreatureState{}
	j := &judge{kinds: []journal.PolicyKind{journal.JudgeSpawn}, judge: func(ev *deploy.PolicyEvent) deploy.Decision {
		for _, c := range ev.View().Creatures {
			seen[c.Name] = c.State
		}
		return deploy.Decision{}
	}}
	lead := s.apply(crew("crew", judgedBy(j))).Creatures["creature.lead"]
	a := s.apply(team(2, afterTurns(2)))
	s.connect(lead, a.Creatures["creature.m0"], "link")
	s.wait()
	s.change(topology.SetStopped{ID: a.Creatures["creature.m1"], Stopped: true})
	s.ask(lead, toolCall{"group_add_node", args{"species": "scribe"}}, toolCall{"group_add_node", args{"species": "clerk"}})
	want := map[string]journal.CreatureState{"lead": "running", "ann": "running", "bob": "running", "scribe-1": "running", "m0": "paused", "m1": "stopped"}
	if !maps.Equal(seen, want) {
		t.Errorf("the policy sees %v, want %v", seen, want)
	}
}
