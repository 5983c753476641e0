package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

func question(reason string, more ...func(*deploy.Ask)) deploy.Words {
	a := deploy.Ask{Verdict: deploy.Verdict{Policy: "gate", Reason: reason, Where: "team.hcl:7"}}
	for _, f := range more {
		f(&a)
	}
	return deploy.Words{Asks: []deploy.Ask{a}}
}

// asksAbout is a policy that asks about messages on a channel that contain a text.
func asksAbout(channel, text string, more ...func(*deploy.Ask)) *judge {
	return &judge{send: func(ev *deploy.SendEvent) (d deploy.SendDecision) {
		if ev.ChannelAddress == "channel."+channel && strings.Contains(string(ev.Payload), text) {
			d.Words = question("is it safe?", more...)
		}
		return d
	}}
}

// questions lists the questions that wait.
func (w *world) questions() []inspect.Approval {
	w.t.Helper()
	list, err := w.Approvals()
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// decide answers the only question that waits.
func (w *world) decide(d engine.Decision) {
	w.t.Helper()
	list := w.questions()
	if len(list) != 1 {
		w.t.Fatalf("%d questions wait, want 1: %+v", len(list), list)
	}
	decided, err := w.Decide(list[0].ID, d)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := decided.Wait(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.wait()
}

// decisions are the decisions in the history of a creature's graph, with their reasons.
func (w *world) decisions(c journal.CreatureID) []string {
	w.t.Helper()
	out := []string{}
	for _, ev := range w.events(c, journal.EventApprovalDecided) {
		var p journal.ApprovalDecidedPayload
		if err := json.Unmarshal(ev.Payload, &p); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, strings.Trim(fmt.Sprintf("%s %s %s", p.Decision, p.By, p.Because), " "))
	}
	return out
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A message that a policy asks about waits, and with it everything that its sender would
// handle afterwards. It is sent once after it was approved, even if engines end meanwhile.
func TestAMessageWaitsForApproval(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		w := newWorld(t, o)
		a := w.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
		m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
		for _, payload := range []string{"1", "danger", "3"} {
			w.send(a.Channels["channel.c0"], payload)
		}
		w.wait()
		same(t, "before the answer m2 heard", w.state(m2, "heard"), "c2:1\n")
		q := w.questions()[0]
		if q.Creature != m0 || q.Policy != "gate" || q.Grounds != "is it safe?" || q.Where != "team.hcl:7" || string(q.Content) != "danger" || q.Event != journal.JudgeSend ||
			q.Behind != 1 || q.Deadline-q.Time < int64(23*time.Hour) {
			t.Errorf("the question is %+v", q)
		}
		c, _ := w.creatureIn(m0)
		same(t, "m0 is", c.State, journal.AwaitingApproval)
		w.decide(engine.Decision{Approve: true, By: "ann", Reason: "I looked"})
		same(t, "m2 heard", w.state(m2, "heard"), "c2:1\nc2:danger\nc2:3\n")
		if _, err := w.Decide(q.ID, engine.Decision{}); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("answering a question whose answer was used: %v, want not_found", err)
		}
		if c, _ = w.creatureIn(m0); c.State != journal.Running || c.Approvals != 0 {
			t.Errorf("afterwards m0 is %s with %d questions", c.State, c.Approvals)
		}
	})
}

func TestAnApprovalSurvivesRestarts(t *testing.T) {
	for _, approve := range []bool{true, false} {
		t.Run(fmt.Sprint(approve), func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			d := func() *deploy.Deployment { return team(3, judgedBy(asksAbout("c1", "danger"))) }
			a := s.apply(d())
			m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
			s.send(a.Channels["channel.c0"], "danger")
			s.send(a.Channels["channel.c0"], "3")
			s.wait()
			before := s.questions()
			for range 2 {
				s.shut()
				s.open()
				s.apply(d())
				s.wait()
				same(t, "after a restart the questions are", s.questions(), before)
			}
			s.decide(engine.Decision{Approve: approve, By: "ann"})
			s.shut()
			s.open()
			s.apply(d())
			s.wait()
			heard, decided := "c2:danger\nc2:3\n", "approved ann"
			if !approve {
				heard, decided = "c2:3\n", "denied ann"
			}
			same(t, "m2 heard", s.state(m2, "heard"), heard)
			same(t, "the decisions are", s.decisions(m0), []string{decided})
			same(t, "the questions are", len(s.events(m0, journal.EventApprovalAsked)), 1)
			denied := s.events(m0, journal.EventPolicyDenied)
			if approve != (len(denied) == 0) {
				t.Errorf("%d denials are logged", len(denied))
			}
			if !approve && !strings.Contains(string(denied[0].Payload), "ann has denied it") {
				t.Errorf("the denial says %s", denied[0].Payload)
			}
		})
	}
}

// In an engine in which nothing runs, a question can be answered; the turn runs when the
// session is resumed.
func TestAnApprovalOfASavedSession(t *testing.T) {
	s := newSaved(t, engine.Options{})
	d := func() *deploy.Deployment { return team(3, judgedBy(asksAbout("c1", "danger"))) }
	a := s.apply(d())
	s.send(a.Channels["channel.c0"], "danger")
	s.wait()
	s.shut()
	s.o.Paused = true
	s.open()
	s.restore()
	s.decide(engine.Decision{Approve: true})
	s.shut()
	s.o.Paused = false
	s.open()
	s.apply(d())
	s.wait()
	same(t, "m2 heard", s.state(a.Creatures["creature.m2"], "heard"), "c2:danger\n")
	if c, _ := s.creatureIn(a.Creatures["creature.m0"]); c.State != journal.Running {
		t.Errorf("m0 is %s", c.State)
	}
}

func TestTheDeadlineDecides(t *testing.T) {
	for _, allow := range []bool{true, false} {
		for name, between := range map[string]func(*saved){"running": (*saved).wait, "resumed": (*saved).reopen} {
			t.Run(fmt.Sprint(name, allow), func(t *testing.T) {
				clock := newHandClock()
				close(clock.proceed)
				s := newSaved(t, engine.Options{Clock: clock, ManualClock: true})
				a := s.apply(team(3, judgedBy(asksAbout("c1", "danger", func(a *deploy.Ask) { a.Within, a.Allow = time.Minute, allow }))))
				m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
				s.send(a.Channels["channel.c0"], "danger")
				s.wait()
				clock.advance(50 * time.Second)
				between(s)
				s.wait()
				same(t, "the questions are", len(s.questions()), 1)
				clock.advance(20 * time.Second)
				s.wait()
				want, decision := "", "denied"
				if allow && name == "running" { // restored without its recipe, the turn waits for that
					want = "c2:danger\n"
				}
				if allow {
					decision = "approved"
				}
				same(t, "m2 heard", s.state(m2, "heard"), want)
				if got := s.decisions(m0); len(got) != 1 || !strings.HasPrefix(got[0], decision) {
					t.Errorf("the decisions are %v, want %s", got, decision)
				}
			})
		}
	}
}

// A deadline passes after the requested time on the clock of the engine, even if that clock is
// set back meanwhile and the engine restarts.
func TestDeadlinesAndAClockThatJumps(t *testing.T) {
	clock := newHandClock()
	close(clock.proceed)
	clock.set(jumps[1])
	s := newSaved(t, engine.Options{Clock: clock, ManualClock: true})
	d := func() *deploy.Deployment {
		return team(3, judgedBy(asksAbout("c1", "danger", func(a *deploy.Ask) { a.Within = time.Minute })))
	}
	a := s.apply(d())
	m0 := a.Creatures["creature.m0"]
	s.send(a.Channels["channel.c0"], "danger")
	s.wait()
	clock.set(time.Unix(5, 0)) // back to 1970
	s.shut()
	s.open()
	s.apply(d())
	s.wait()
	same(t, "after the clock was set back there are questions", len(s.questions()), 1)
	for range 3 {
		clock.advance(30 * time.Second)
		s.wait()
	}
	same(t, "the decisions are", s.decisions(m0), []string{"denied  the deadline has passed"})
}

// A policy asks about each of several equal messages of one turn, and each answer is used once.
func TestEveryMessageIsAskedAbout(t *testing.T) {
	o := engine.Options{Host: newFakeHost()}
	o.Host.(*fakeHost).on("thrice", func(t abi.Turn, kind abi.Kind) error {
		for i := range 3 {
			if kind == abi.KindMessage && i >= 0 {
				if err := status(t, t.Send(abi.AllChannels, []byte("danger"), nil)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s := newSaved(t, o)
	a := s.apply(team(2, judgedBy(asksAbout("c1", "danger")), func(d *deploy.Deployment) {
		d.Creatures[0].Module, d.Creatures[0].Wasm = "thrice", []byte("thrice")
	}))
	s.send(a.Channels["channel.c0"], "go")
	s.wait()
	list := s.questions()
	if len(list) != 3 {
		t.Fatalf("%d questions, want 3", len(list))
	}
	for i, q := range list {
		if _, err := s.Decide(q.ID, engine.Decision{Approve: i != 1}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := s.Decide(q.ID, engine.Decision{}); abi.CodeOf(err) != abi.Conflict {
				t.Errorf("answering a question twice: %v, want conflict", err)
			}
		}
		if s.wait(); i < 2 {
			same(t, "before all are answered m1 heard", s.state(a.Creatures["creature.m1"], "heard"), "")
		}
	}
	same(t, "m1 heard", s.state(a.Creatures["creature.m1"], "heard"), "c1:danger\nc1:danger\n")
}

// asksAboutCalls is a policy that asks about events of some kinds.
func asksAboutCalls(kinds ...journal.PolicyKind) *judge {
	return &judge{kinds: kinds, judge: func(*deploy.PolicyEvent) deploy.Decision {
		return deploy.Decision{Words: question("may it?")}
	}}
}

func TestCallsOfToolsWaitForApproval(t *testing.T) {
	for _, kind := range []journal.PolicyKind{journal.JudgeTool, journal.JudgeSpawn} {
		for _, approve := range []bool{true, false} {
			t.Run(fmt.Sprint(kind, approve), func(t *testing.T) {
				s := newSaved(t, engine.Options{Host: operators()})
				a := s.apply(crew("own", judgedBy(asksAboutCalls(kind))))
				lead := a.Creatures["creature.lead"]
				order := `[{"tool": "group_add_node", "args": {"species": "scribe"}}, {"tool": "group_add_node", "args": {"species": "scribe"}}]`
				if _, err := s.SendTo(t.Context(), lead, engine.Outgoing{Payload: []byte(order)}); err != nil {
					t.Fatal(err)
				}
				s.wait()
				for i := range 2 { // a question for each, although the second creature would have the name of the first
					same(t, "creatures before the answer", len(s.status()[0].Creatures), 3)
					if len(s.questions()) == 0 {
						t.Fatal("nothing waits")
					}
					if q := s.questions()[0]; q.Call != "group_add_node" || !strings.Contains(string(q.Content), "scribe") {
						t.Errorf("question %d is %+v", i, q)
					}
					s.decide(engine.Decision{Approve: approve, Reason: "so it is"})
				}
				var replies []toolReply
				if err := json.Unmarshal([]byte(s.state(lead, "replies")), &replies); err != nil {
					t.Fatal(err)
				}
				want, code := 5, ""
				if !approve {
					want, code = 3, "denied"
				}
				same(t, "creatures", len(s.status()[0].Creatures), want)
				for _, r := range replies {
					if r.Code != code || !approve && !strings.Contains(r.Error, "so it is") {
						t.Errorf("the reply to a call is %+v", r)
					}
				}
			})
		}
	}
}

// A call from outside has no turn that could wait. If a policy asks about such a call, it is
// denied. While a turn of a creature waits, calls from outside on its behalf are refused.
func TestCallsFromOutsideDoNotWait(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("own", judgedBy(asksAboutCalls(journal.JudgeTool, journal.JudgeConnect))))
	lead := a.Creatures["creature.lead"]
	_, err := s.Tool(t.Context(), lead, "group_status", nil)
	if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "needs approval") {
		t.Errorf("a call from outside: %v", err)
	}
	_, err = s.Change(t.Context(), topology.Connect{From: lead, To: a.Creatures["creature.ann"], Name: "x"})
	if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "needs approval") {
		t.Errorf("an operation: %v", err)
	}
	if _, err := s.SendTo(t.Context(), lead, engine.Outgoing{Payload: []byte(`[{"tool": "group_status"}]`)}); err != nil {
		t.Fatal(err)
	}
	s.wait()
	if _, err := s.Tool(t.Context(), lead, "group_status", nil); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("a call while a turn waits: %v, want unavailable", err)
	}
	s.decide(engine.Decision{})
}

func TestAMessageFromOutsideDoesNotWait(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(2, judgedBy(asksAbout("c0", ""))))
	_, err := s.Send(t.Context(), a.Channels["channel.c0"], engine.Outgoing{Payload: []byte("x")})
	if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "needs approval") {
		t.Errorf("Send: %v", err)
	}
	same(t, "the questions are", len(s.questions()), 0)
}

// When graphs merge and split, a question stays with its creature. Its answer takes effect
// once, in the graph that the creature is in by then.
func TestApprovalsGoAlong(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		w := newWorld(t, o)
		a := w.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
		m0, m1, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m1"], a.Creatures["creature.m2"]
		w.send(a.Channels["channel.c0"], "danger")
		w.wait()
		id := w.questions()[0].ID
		other := w.add("other", "sink")
		w.change(topology.Connect{From: m0, To: other, Channel: a.Channels["channel.c1"]}) // merges
		w.change(topology.Disconnect{From: m1, To: m2})                                    // splits
		if q := w.questions(); len(q) != 1 || q[0].ID != id || q[0].Graph != w.graph(m0) {
			t.Fatalf("the questions are %+v", q)
		}
		w.change(topology.Connect{From: m1, To: m2, Channel: a.Channels["channel.c2"]})
		w.decide(engine.Decision{Approve: true})
		same(t, "m2 heard", w.state(m2, "heard"), "c2:danger\n")
	})
}

func TestRemovingACreatureWithdrawsItsQuestions(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
	m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
	s.send(a.Channels["channel.c0"], "danger")
	s.wait()
	if _, err := s.RemoveCreature(t.Context(), m0); err != nil {
		t.Fatal(err)
	}
	s.wait()
	same(t, "the questions are", len(s.questions()), 0)
	letters := 0
	for _, g := range s.status() {
		rows, err := s.DeadLetters(t.Context(), g.ID, "", journal.EventID{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range rows {
			if l.Reason == journal.DeadCreatureRemoved && string(l.Payload) == "danger" {
				letters++
			}
		}
	}
	same(t, "dead letters", letters, 1)
	same(t, "the decisions are", s.decisions(m2), []string{"withdrawn  the creature was removed"})
}

// After a recipe is applied again or a module is replaced, policies ask again: the same
// question stays as it was, and a question that is not asked again is withdrawn.
func TestARecipeThatIsAppliedAgain(t *testing.T) {
	for _, c := range []struct {
		name, heard string
		policy      *judge
		questions   int
		decided     []string
	}{
		{"the policy asks again", "", asksAbout("c1", "danger"), 1, []string{}},
		{"the policy is gone", "c2:danger\n", &judge{}, 0, []string{"withdrawn  the turn no longer asks for it"}},
		{"the policy denies", "", &judge{send: func(ev *deploy.SendEvent) deploy.SendDecision {
			return deploy.SendDecision{Words: denial("never")}
		}}, 0, []string{"withdrawn  the turn no longer asks for it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			a := s.apply(team(3, judgedBy(asksAbout("c1", "danger"))))
			m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
			s.send(a.Channels["channel.c0"], "danger")
			s.wait()
			s.apply(team(3, judgedBy(c.policy)))
			s.wait()
			same(t, "m2 heard", s.state(m2, "heard"), c.heard)
			same(t, "the questions are", len(s.questions()), c.questions)
			same(t, "the decisions are", s.decisions(m0), c.decided)
		})
	}
}

func TestAReplacedModuleIsAskedAbout(t *testing.T) {
	o := engine.Options{Host: newFakeHost()}
	o.Host.(*fakeHost).on("shout", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		payload, _ := t.Source(abi.SourcePayload)
		return status(t, t.Send(abi.AllChannels, []byte(strings.ToUpper(string(payload))), nil))
	})
	s := newSaved(t, o)
	a := s.apply(team(3, judgedBy(asksAbout("c1", ""))))
	m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
	s.send(a.Channels["channel.c0"], "danger")
	s.wait()
	if _, err := s.ReplaceModule(t.Context(), m0, engine.Replacement{Module: "shout", Wasm: []byte("shout")}); err != nil {
		t.Fatal(err)
	}
	s.wait()
	same(t, "it asks about", string(s.questions()[0].Content), "DANGER")
	s.decide(engine.Decision{Approve: true})
	same(t, "m2 heard", s.state(m2, "heard"), "c2:DANGER\n")
	same(t, "the decisions are", s.decisions(m0), []string{"withdrawn  the turn no longer asks for it", "approved"})
}

// The number of open questions of a creature, the content that is kept of them, and the texts of
// an answer are bounded. A message that exceeds the number is denied.
func TestBoundsOfApprovals(t *testing.T) {
	o := engine.Options{Host: newFakeHost()}
	o.Host.(*fakeHost).on("many", func(t abi.Turn, kind abi.Kind) error {
		for i := range journal.MaxCreatureApprovals + 1 {
			if kind == abi.KindMessage {
				if err := status(t, t.Send(abi.AllChannels, fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", journal.MaxApprovalContent)), nil)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s := newSaved(t, o)
	a := s.apply(team(2, judgedBy(asksAbout("c1", "")), func(d *deploy.Deployment) {
		d.Creatures[0].Module, d.Creatures[0].Wasm = "many", []byte("many")
	}))
	s.send(a.Channels["channel.c0"], "go")
	s.wait()
	list := s.questions()
	same(t, "the questions are", len(list), journal.MaxCreatureApprovals)
	for i, q := range list {
		kept := journal.MaxApprovalContent
		if i >= journal.MaxCreatureContent/journal.MaxApprovalContent {
			kept = 0
		}
		if len(q.Content) != kept || q.Size <= journal.MaxApprovalContent {
			t.Fatalf("%d bytes are kept of %d", len(q.Content), q.Size)
		}
		if _, err := s.Decide(q.ID, engine.Decision{Approve: true}); err != nil {
			t.Fatal(err)
		}
	}
	s.wait()
	same(t, "messages sent", s.status()[0].Channels[1].Head, journal.MaxCreatureApprovals)
	denied := s.events(a.Creatures["creature.m0"], journal.EventPolicyDenied)
	if len(denied) != 1 || !strings.Contains(string(denied[0].Payload), "limit of approvals") {
		t.Errorf("the denials are %v", denied)
	}
	if _, err := s.Decide(list[0].ID, engine.Decision{By: strings.Repeat("x", journal.MaxApprovalText+1)}); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("an answer by an operator with a long name: %v, want invalid_argument", err)
	}
}
