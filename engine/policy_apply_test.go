package engine_test

import (
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

func judging(kinds ...journal.PolicyKind) *judge { return &judge{kinds: kinds} }

// A deployment that cannot be applied leaves none of its policies behind: they judge nothing
// that happens later.
func TestPoliciesOfADeploymentThatFails(t *testing.T) {
	for name, spoil := range map[string]func(*deploy.Deployment){
		"denied by itself": func(d *deploy.Deployment) {
			h := d.Policy.(*judge)
			h.kinds = append(h.kinds, journal.JudgePlan)
			h.judge = func(ev *deploy.PolicyEvent) deploy.Decision {
				ev.Memory.Remember("tally", []byte("7"))
				return deploy.Decision{Words: denial("no")}
			}
		},
		"a module that does not exist": func(d *deploy.Deployment) { d.Creatures[2].Module, d.Creatures[2].Wasm = "missing", []byte("missing") },
		"a channel that nobody is on": func(d *deploy.Deployment) {
			d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel.lost", Name: "lost"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaved(t, engine.Options{Host: operators()})
			first := judging(journal.JudgeSpawn, journal.JudgeTool, journal.JudgeMerge)
			d := crew("own", judgedBy(first))
			spoil(d)
			if _, err := s.Apply(t.Context(), d); err == nil {
				t.Fatal("the deployment was applied")
			}
			seen := len(first.seen)
			var recalled []byte
			second := judging(journal.JudgeSpawn)
			second.judge = func(ev *deploy.PolicyEvent) deploy.Decision {
				recalled = ev.Memory.Recall("tally")
				return deploy.Decision{}
			}
			a := s.apply(crew("own", judgedBy(second)))
			s.ask(a.Creatures["creature.lead"], toolCall{"group_add_node", args{"species": "scribe"}})
			if len(first.seen) != seen {
				t.Errorf("the policy of the deployment that failed has judged %d events since", len(first.seen)-seen)
			}
			if len(second.seen) == 0 || recalled != nil {
				t.Errorf("the next policy has judged %d events, and recalls %q", len(second.seen), recalled)
			}
		})
	}
}

// If a deployment is applied already, applying it again keeps its policies.
func TestAPolicyIsKept(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	h := judging(journal.JudgeTool)
	d := crew("own", judgedBy(h))
	a := s.apply(d)
	broken := crew("own", judgedBy(h), func(d *deploy.Deployment) { d.Creatures[0].Wasm = []byte("missing") })
	if _, err := s.Apply(t.Context(), broken); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("Apply of a module that does not exist: %v", err)
	}
	for name, try := range map[string]func() error{
		"Apply": func() error { _, err := s.Apply(t.Context(), d); return err },
		"Plan":  func() error { _, err := s.Plan(t.Context(), d); return err },
	} {
		if err := try(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.ask(a.Creatures["creature.lead"], toolCall{"group_status", nil})
	if h.last(journal.JudgeTool).Tool != "group_status" {
		t.Errorf("the policy judged %v", h.seen)
	}
}

// Plans ask policies for their decisions, based on their memory. They neither change that
// memory nor take the policies away from their users.
func TestPlansLeavePoliciesAlone(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	most := 1
	policy := func() *judge {
		h := judging(journal.JudgePlan)
		h.judge = func(ev *deploy.PolicyEvent) deploy.Decision { return deploy.Decision{Words: tally(ev.Memory, most)} }
		return h
	}
	s.apply(crew("own", judgedBy(policy())))
	for _, restored := range []bool{false, true} {
		s.shut()
		s.open()
		if restored {
			s.restore()
		}
		most = 1
		h := policy()
		if _, err := s.Plan(t.Context(), crew("own", judgedBy(h))); abi.CodeOf(err) != abi.Denied {
			t.Errorf("restored %v: Plan returns %v, although Apply would be denied", restored, err)
		}
		most = 2
		for range 3 {
			if _, err := s.Plan(t.Context(), crew("own", judgedBy(h))); err != nil {
				t.Errorf("restored %v: Plan returns %v, as if the earlier plans had been applied", restored, err)
			}
		}
	}
	s.apply(crew("own", judgedBy(policy())))
}

// The deployments of an event are those of the channels and creatures that it names.
func TestEventsTellWhoseTheyAre(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	var sent []deploy.SendEvent
	j := &judge{kinds: journal.PolicyKinds(), send: func(ev *deploy.SendEvent) deploy.SendDecision {
		sent = append(sent, *ev)
		return deploy.SendDecision{}
	}}
	own, other := s.apply(crew("own", judgedBy(j))), s.apply(crew("other", renamed))
	stranger := other.Creatures["creature.lead"]
	s.change(topology.SetEdge{Creature: stranger, Channel: own.Channels["channel.work"], Direction: journal.Send, On: true, Alias: "theirs"})
	ev := j.last(journal.JudgeConnect)
	if ev.Deployment != "own" || ev.Channel.Deployment != "own" || ev.From.Deployment != "other" || ev.From.Address != "creature.lead" {
		t.Errorf("the edge is %+v", ev)
	}
	s.ask(stranger, toolCall{"send_channel", args{"channel": "theirs", "payload": "x"}})
	if !slices.ContainsFunc(sent, func(ev deploy.SendEvent) bool {
		return ev.Deployment == "own" && ev.SenderDeployment == "other" && ev.ChannelAddress == "channel.work" && ev.SenderAddress == "creature.lead"
	}) {
		t.Errorf("the messages are %+v", sent)
	}
}
