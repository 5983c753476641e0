package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestApprovedSpawnKeepsItsConfiguration approves a spawn. When the turn runs again, it requests
// another configuration, which the approval does not cover.
func TestApprovedSpawnKeepsItsConfiguration(t *testing.T) {
	h := operators()
	h.on("config", func(t abi.Turn, _ abi.Kind) error { return nil })
	command := "feed"
	h.on("sly", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			t.Tool([]byte("group_add_node"), []byte(`{"species":"scribe","name":"eve","config":{"command":"`+command+`"}}`))
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.apply(crew("own", judgedBy(asksAboutCalls(journal.JudgeSpawn)), func(d *deploy.Deployment) {
		d.Creatures[0].Module, d.Creatures[0].Wasm = "sly", []byte("sly")
		d.Species[0].Spec = deploy.CreatureSpec{Module: "config", Wasm: []byte("config")}
	}))
	if _, err := s.SendTo(t.Context(), a.Creatures["creature.lead"], engine.Outgoing{Payload: []byte("go")}); err != nil {
		t.Fatal(err)
	}
	s.wait()
	if shown := string(s.questions()[0].Content); !strings.Contains(shown, `"config":{"command":"feed"}`) {
		t.Errorf("the operator sees %s, without the configuration", shown)
	}
	command = "drain"
	s.decide(engine.Decision{Approve: true})
	if waiting := s.questions(); len(waiting) != 1 || !strings.Contains(string(waiting[0].Content), "drain") {
		t.Errorf("after a request with another configuration, the open questions are %+v", waiting)
	}
	for _, c := range s.status()[0].Creatures {
		if c.Name == "eve" {
			t.Error("the creature was spawned without approval of its configuration")
		}
	}
}

// Two spawns with the same name in one turn, with a removal in between, are two questions: the
// approval of one does not cover the other.
func TestTwoSpawnsOfOneNameAreTwoQuestions(t *testing.T) {
	h := operators()
	h.on("config", func(t abi.Turn, _ abi.Kind) error { return nil })
	h.on("twice", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			t.Tool([]byte("group_add_node"), []byte(`{"species":"scribe","name":"eve"}`))
			t.Tool([]byte("group_remove_node"), []byte(`{"name":"eve"}`))
			t.Tool([]byte("group_add_node"), []byte(`{"species":"scribe","name":"eve"}`))
		}
		return nil
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.apply(crew("own", judgedBy(asksAboutCalls(journal.JudgeSpawn)), func(d *deploy.Deployment) {
		d.Creatures[0].Module, d.Creatures[0].Wasm = "twice", []byte("twice")
		d.Species[0].Spec = deploy.CreatureSpec{Module: "config", Wasm: []byte("config")}
	}))
	lead := a.Creatures["creature.lead"]
	if _, err := s.SendTo(t.Context(), lead, engine.Outgoing{Payload: []byte("go")}); err != nil {
		t.Fatal(err)
	}
	s.wait()
	first := s.questions()[0]
	s.decide(engine.Decision{Approve: true})
	second := s.questions()
	if len(second) != 1 || second[0].Hash == first.Hash || second[0].Subject != first.Subject {
		t.Fatalf("after the first spawn was approved, the open questions are %+v", second)
	}
	s.decide(engine.Decision{Approve: true})
	same(t, "the decisions are", s.decisions(lead), []string{"approved", "approved"})
	same(t, "the questions are", len(s.questions()), 0)
	spawned := 0
	for _, c := range s.status()[0].Creatures {
		if c.Name == "eve" {
			spawned++
		}
	}
	same(t, "creatures named eve", spawned, 1)
}

// If the channel of a delivery is removed while its turn waits, the question is withdrawn and
// the creature continues, even if the engine was restarted before or the removal splits the
// graph.
func TestRemovingAChannelWithdrawsItsQuestions(t *testing.T) {
	for _, state := range []string{"running", "resumed", "paused"} {
		for _, splits := range []bool{false, true} {
			t.Run(fmt.Sprint(state, splits), func(t *testing.T) {
				s := newSaved(t, engine.Options{})
				d := team(3, judgedBy(asksAbout("c1", "danger")), func(d *deploy.Deployment) {
					d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel.x", Name: "x"})
					d.Creatures[0].Listen = append(d.Creatures[0].Listen, deploy.WireSpec{Channel: "channel.x"})
				})
				a := s.apply(d)
				m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
				if splits {
					other := s.add("other", "sink")
					s.change(topology.SetEdge{Creature: other, Channel: a.Channels["channel.c0"], Direction: journal.Listen, On: true})
				}
				s.send(a.Channels["channel.c0"], "danger")
				s.wait()
				switch state {
				case "resumed":
					s.shut()
					s.open()
					s.apply(d)
					s.wait()
				case "paused":
					s.shut()
					s.o.Paused = true
					s.open()
					s.restore()
				}
				same(t, "before, the questions are", len(s.questions()), 1)
				s.change(topology.RemoveChannel{ID: a.Channels["channel.c0"]})
				s.send(a.Channels["channel.x"], "harmless")
				s.wait()
				same(t, "afterwards the questions are", len(s.questions()), 0)
				if state == "paused" {
					s.o.Paused = false
					s.reopen()
					s.wait()
				}
				same(t, "m2 heard", s.state(m2, "heard"), "c2:harmless\n")
				same(t, "the decisions are", s.decisions(m0), []string{"withdrawn  the channel of the message was removed"})
				s.reopen()
				same(t, "later the questions are", len(s.questions()), 0)
				if c, _ := s.creatureIn(m0); c.State != journal.Running || c.Approvals != 0 {
					t.Errorf("m0 is %s with %d questions", c.State, c.Approvals)
				}
			})
		}
	}
}

// A change removes the channel of a question, ends the graph, and moves the creature to a new
// graph. The log of the new graph has the events of the end of the old one.
func TestWithdrawnWhileTheGraphEnds(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
	m0, c0 := a.Creatures["creature.m0"], a.Channels["channel.c0"]
	ops := []topology.Op{topology.RemoveChannel{ID: c0}}
	var others []journal.CreatureID
	for i := range 5 {
		others = append(others, s.add(fmt.Sprint("other", i), "sink"))
		ops = append(ops, topology.RemoveCreature{ID: others[i]})
		if i > 0 {
			s.connect(others[i-1], others[i], fmt.Sprint("l", i))
		}
	}
	s.change(topology.SetEdge{Creature: others[0], Channel: c0, Direction: journal.Listen, On: true})
	message := s.send(c0, "danger").Message
	s.wait()
	ended := s.graph(m0)
	s.ops(ops...)
	s.wait()
	if s.graph(m0) == ended {
		t.Fatal("the graph has not ended")
	}
	s.reopen()
	same(t, "the questions are", len(s.questions()), 0)
	same(t, "the decisions are", s.decisions(m0), []string{"withdrawn  the channel of the message was removed"})
	same(t, "the cause is", s.events(m0, journal.EventApprovalDecided)[0].Cause, message)
	stopped := map[journal.CreatureID]int{}
	for _, ev := range s.events(m0, journal.EventCreatureStopped) {
		stopped[ev.Creature]++
	}
	for _, id := range others {
		same(t, "the stops of "+string(id), stopped[id], 1)
	}
}

// When a creature is removed, its question is withdrawn. The cause of that event is the message
// that the question is about.
func TestTheCauseOfAWithdrawal(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
	message := s.send(a.Channels["channel.c0"], "danger").Message
	s.wait()
	s.change(topology.RemoveCreature{ID: a.Creatures["creature.m0"]})
	s.wait()
	decided := s.events(a.Creatures["creature.m1"], journal.EventApprovalDecided)
	if len(decided) != 1 || decided[0].Cause != message {
		t.Errorf("the decisions are %+v, want one about %s", decided, message)
	}
}

// If the graph changes again while a question about a notification is open, the answer counts
// for the next notification too. So the questions do not pile up.
func TestAnApprovalOfANotification(t *testing.T) {
	h := newFakeHost()
	h.exports["noisy"] = []string{"creature_handle", abi.ExportGraphChanged}
	runs := 0
	h.on("noisy", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindGraphChanged {
			return nil
		}
		runs++
		return status(t, t.Send(abi.AllChannels, []byte("danger"), nil))
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.apply(team(3, judgedBy(asksAbout("c1", "danger")), func(d *deploy.Deployment) {
		d.Creatures[0].Module, d.Creatures[0].Wasm = "noisy", []byte("noisy")
	}))
	m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
	s.wait()
	heard := ""
	var decisions []string
	for i := range 3 {
		other := s.add(fmt.Sprint("other", i), "sink")
		s.connect(m0, other, fmt.Sprint("l", 2*i))
		s.wait()
		s.connect(m0, other, fmt.Sprint("l", 2*i+1))
		s.wait()
		before := runs
		s.decide(engine.Decision{Approve: true})
		heard += "c2:danger\n"
		decisions = append(decisions, "approved")
		same(t, "runs after the answer", runs-before, 1)
		same(t, "m2 heard", s.state(m2, "heard"), heard)
		same(t, "the questions are", len(s.questions()), 0)
		same(t, "the decisions are", s.decisions(m0), decisions)
		if c, _ := s.creatureIn(m0); c.State != journal.Running {
			t.Errorf("m0 is %s", c.State)
		}
	}
	if asked := len(s.events(m0, journal.EventApprovalAsked)); asked != len(decisions) {
		t.Errorf("%d questions were asked, and %d answered", asked, len(decisions))
	}
}

// TestACutWithdrawsQuestions removes the channel of a message whose turn waits for an answer, and
// splits the graph thereby. The first record of the new store makes the message a dead letter and
// withdraws the question, so a crash that comes then does not leave a question that no turn asks.
func TestACutWithdrawsQuestions(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
	c0, m0, teller := a.Channels["channel.c0"], a.Creatures["creature.m0"], s.add("teller", "sink")
	s.change(topology.Connect{From: teller, To: m0, Channel: c0})
	s.send(c0, "danger")
	s.wait()
	same(t, "the questions are", len(s.questions()), 1)
	s.change(topology.RemoveChannel{ID: c0})
	s.wait()
	same(t, "the questions are", len(s.questions()), 0)
	same(t, "the decisions are", s.decisions(m0), []string{"withdrawn  the channel of the message was removed"})
	var order []journal.EventKind
	for _, ev := range s.archive().events[s.session(m0)] {
		if slices.Contains([]journal.EventKind{journal.EventDeadLetter, journal.EventApprovalDecided, journal.EventSessionForked}, ev.Kind) {
			order = append(order, ev.Kind)
		}
	}
	same(t, "the session begins with", order, []journal.EventKind{journal.EventDeadLetter, journal.EventApprovalDecided, journal.EventSessionForked})
	s.sound(s.archive())
	s.reopen()
	s.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
	s.wait()
	same(t, "the questions are", len(s.questions()), 0)
}
