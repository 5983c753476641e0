package engine_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// states returns the states of a creature in the status, in group_status and in the awareness
// document of the lead.
func (s *saved) states(lead, id journal.CreatureID) (all []journal.CreatureState) {
	s.t.Helper()
	c, _ := s.creatureIn(id)
	all = append(all, c.State)
	for _, m := range answer[tools.GroupStatus](s.t, s.ask(lead, toolCall{"group_status", nil})[0]).Creatures {
		if m.ID == id {
			all = append(all, m.State)
		}
	}
	v, err := s.Awareness(lead)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range v.Document().Graph.Members.Items {
		if m.ID == id {
			all = append(all, m.State)
		}
	}
	return all
}

func (s *saved) wantState(lead, id journal.CreatureID, want journal.CreatureState) {
	s.t.Helper()
	if got := s.states(lead, id); !slices.Equal(got, []journal.CreatureState{want, want, want}) {
		s.t.Errorf("the states are %v, want %s", got, want)
	}
}

// TestAPausedCreatureKeepsItsInstanceAndItsMessages pauses a worker. It handles nothing until it
// is resumed, and then continues with the instance that it had.
func TestAPausedCreatureKeepsItsInstanceAndItsMessages(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
	s.tell(ann, "before")
	s.wait()
	starts := s.starts(ann)
	call := func(tool, ref string) toolReply { return s.ask(lead, toolCall{tool, args{"creature": ref}})[0] }
	if r := answer[tools.NodeState](t, call("group_pause_node", "ann")); r.State != journal.Paused || r.Creature != ann {
		t.Errorf("the result of group_pause_node is %+v", r)
	}
	s.wantState(lead, ann, journal.Paused)
	s.tell(ann, "meanwhile")
	s.wait()
	heard := s.state(ann, "heard")
	if strings.Contains(heard, "meanwhile") {
		t.Errorf("while it is paused, ann has heard %q", heard)
	}
	if _, err := s.Tool(t.Context(), ann, "group_send", []byte(`{"creature": "lead", "payload": "x"}`)); abi.CodeOf(err) != abi.Stopped || !strings.Contains(err.Error(), "is paused") {
		t.Errorf("a call on behalf of a paused creature returns %v, want stopped", err)
	}
	if r := answer[tools.NodeState](t, call("group_resume_node", "ann")); r.State != journal.Running {
		t.Errorf("the result of group_resume_node is %+v", r)
	}
	s.wait()
	s.wantState(lead, ann, journal.Running)
	if got := s.state(ann, "heard"); !strings.HasSuffix(got, ":meanwhile\n") {
		t.Errorf("after it was resumed, ann has heard %q", got)
	}
	if now := s.starts(ann); now != starts && !fresh.Instances() {
		t.Errorf("ann has had %d instances, but only %d before the pause", now, starts)
	}
	var reasons []journal.StopReason
	for _, ev := range s.events(ann, journal.EventCreatureStopped) {
		var p journal.CreatureStoppedPayload
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, p.Reason)
	}
	if !slices.Equal(reasons, []journal.StopReason{journal.StopPaused}) {
		t.Errorf("ann was stopped for the reasons %q, want only the pause", reasons)
	}
}

// TestAPauseOutlivesTheEngine restarts a session with a paused creature, applies its recipe
// again, and resumes the creature.
func TestAPauseOutlivesTheEngine(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
	answer[tools.NodeState](t, s.ask(lead, toolCall{"group_pause_node", args{"creature": "ann"}})[0])
	s.tell(ann, "meanwhile")
	s.reopen()
	s.wantState(lead, ann, journal.Paused)
	s.apply(crew("crew", func(d *deploy.Deployment) { d.Last = crew("crew") })) // a pause stays, as a stop does
	s.wantState(lead, ann, journal.Paused)
	for _, g := range s.rest() {
		for i := range g.Creatures {
			if c := &g.Creatures[i]; c.ID == ann && c.State() != journal.Paused || c.ID != ann && c.State() != journal.Running {
				t.Errorf("in the store, %s is %s", c.Name, c.State())
			}
		}
	}
	s.restore()
	answer[tools.NodeState](t, s.ask(lead, toolCall{"group_resume_node", args{"creature": "ann"}})[0])
	s.wait()
	if got := s.state(ann, "heard"); !strings.HasSuffix(got, ":meanwhile\n") {
		t.Errorf("after it was resumed, ann has heard %q", got)
	}
	s.reopen()
	s.wantState(lead, ann, journal.Running)
}

// TestAPausedCreatureCanBeStoppedAndStarted stops a paused worker, which closes its instance, or
// starts it, which resumes it.
func TestAPausedCreatureCanBeStoppedAndStarted(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
	do := func(tool, code string, want journal.CreatureState) {
		t.Helper()
		if r := s.ask(lead, toolCall{tool, args{"creature": "ann"}})[0]; r.Code != code {
			t.Errorf("%s returns %q %s", tool, r.Code, r.Error)
		}
		s.wantState(lead, ann, want)
	}
	starts := s.starts(ann)
	do("group_pause_node", "", journal.Paused)
	do("group_pause_node", "", journal.Paused)
	do("group_start_node", "", journal.Running)
	do("group_resume_node", "", journal.Running)
	do("group_pause_node", "", journal.Paused)
	do("group_stop_node", "", journal.Stopped)
	do("group_resume_node", "stopped", journal.Stopped)
	do("group_pause_node", "stopped", journal.Stopped)
	do("group_start_node", "", journal.Running)
	s.tell(ann, "now")
	s.wait()
	if now := s.starts(ann); now != starts+1 && !fresh.Instances() {
		t.Errorf("ann has had %d instances, and %d before; only the stop closes one", now, starts)
	}
	s.wantState(lead, lead, journal.Running)
	if r := s.ask(lead, toolCall{"group_pause_node", args{"creature": "lead"}})[0]; r.Code != "not_privileged" {
		t.Errorf("a privileged creature is paused: %+v", r)
	}
}

// TestAPauseTogetherWithASplit pauses a worker in the turn that separates it from the others, so
// that its row is in the first record of another store.
func TestAPauseTogetherWithASplit(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
	replies := s.ask(lead, toolCall{"group_pause_node", args{"creature": "ann"}},
		toolCall{"group_channel", args{"action": "unwire", "channel": "work", "creature": "ann", "direction": "listen"}})
	if d := answer[tools.ChannelResult](t, replies[1]).Delta; d.Kind != "split" {
		t.Fatalf("the delta is %+v", d)
	}
	for range 2 {
		if c, g := s.creatureIn(ann); c.State != journal.Paused || len(g.Creatures) != 1 {
			t.Errorf("ann is %s, in a graph of %d creatures", c.State, len(g.Creatures))
		}
		s.reopen()
	}
}

// TestARecipeThatStopsStopsAPausedCreature pauses a creature, and applies a recipe that stops
// it.
func TestARecipeThatStopsStopsAPausedCreature(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew"))
	lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
	stopped := func(d *deploy.Deployment) {
		d.Last = crew("crew")
		for i := range d.Creatures {
			d.Creatures[i].Stopped = d.Creatures[i].Address == "creature.ann"
		}
	}
	answer[tools.NodeState](t, s.ask(lead, toolCall{"group_pause_node", args{"creature": "ann"}})[0])
	plan, err := s.Plan(t.Context(), crew("crew", stopped))
	if err != nil {
		t.Fatal(err)
	}
	want := []diff.PlanChange{{What: "paused", Before: "true", After: "false"}}
	if i := slices.IndexFunc(plan.Creatures, func(c diff.CreaturePlan) bool { return c.Creature == ann }); i < 0 || !slices.Equal(plan.Creatures[i].Changes, want) {
		t.Errorf("the plan is %+v", plan.Creatures)
	}
	s.apply(crew("crew", stopped))
	s.wantState(lead, ann, journal.Stopped)
	if r := s.ask(lead, toolCall{"group_resume_node", args{"creature": "ann"}})[0]; r.Code != "stopped" {
		t.Errorf("a stopped creature is resumed: %+v", r)
	}
	s.reopen()
	s.wantState(lead, ann, journal.Stopped)
}

// TestAQuarantinedCreatureIsNotPaused proves that neither tool changes a creature in quarantine.
func TestAQuarantinedCreatureIsNotPaused(t *testing.T) {
	h := operators()
	h.on("failing", func(_ abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			return errors.New("no")
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.apply(crew("crew", func(d *deploy.Deployment) {
		d.Creatures[1].Module, d.Creatures[1].Wasm = "failing", []byte("failing")
		d.Creatures[1].Restart = deploy.RestartPolicy{Mode: deploy.RestartNever, Max: 1}
	}))
	lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
	for range 2 {
		s.tell(ann, "x")
	}
	s.wait()
	for _, tool := range []string{"group_resume_node", "group_pause_node", "group_resume_node"} {
		if r := s.ask(lead, toolCall{tool, args{"creature": "ann"}})[0]; r.Code != "stopped" || !strings.Contains(r.Error, "is quarantined") {
			t.Errorf("%s returns %q %s, want stopped", tool, r.Code, r.Error)
		}
		s.wantState(lead, ann, journal.Quarantined)
	}
	answer[tools.NodeState](t, s.ask(lead, toolCall{"group_start_node", args{"creature": "ann"}})[0])
	s.wantState(lead, ann, journal.Running)
}

// TestARecipeThatStopsClosesTheInstance applies a recipe that stops a creature. When the
// creature is started again, it gets another instance.
func TestARecipeThatStopsClosesTheInstance(t *testing.T) {
	for _, before := range []string{"group_pause_node", "group_resume_node"} {
		s := newSaved(t, engine.Options{Host: operators()})
		a := s.apply(crew("crew"))
		lead, ann := a.Creatures["creature.lead"], a.Creatures["creature.ann"]
		s.ask(lead, toolCall{before, args{"creature": "ann"}})
		starts := s.starts(ann)
		s.apply(crew("crew", func(d *deploy.Deployment) {
			d.Last = crew("crew")
			d.Creatures[1].Stopped = true
		}))
		s.wait()
		answer[tools.NodeState](t, s.ask(lead, toolCall{"group_start_node", args{"creature": "ann"}})[0])
		s.tell(ann, "now")
		s.wait()
		if now := s.starts(ann); now != starts+1 && !fresh.Instances() {
			t.Errorf("after %s and a stop, ann has had %d instances, and %d before", before, now, starts)
		}
	}
}
