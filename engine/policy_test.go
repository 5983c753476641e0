package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// judge is a policy in Go.
type judge struct {
	kinds []journal.PolicyKind
	send  func(ev *deploy.SendEvent) deploy.SendDecision // nil: sends are not judged
	judge func(ev *deploy.PolicyEvent) deploy.Decision

	mu   sync.Mutex
	seen []deploy.PolicyEvent // without the graph
}

func (j *judge) Judges(kind journal.PolicyKind) bool { return slices.Contains(j.kinds, kind) }

func (j *judge) JudgesSend(string) bool { return j.send != nil }

func (j *judge) Send(_ context.Context, ev *deploy.SendEvent) deploy.SendDecision { return j.send(ev) }

func (j *judge) Judge(_ context.Context, ev *deploy.PolicyEvent) deploy.Decision {
	d := deploy.Decision{}
	if j.judge != nil {
		d = j.judge(ev)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e := *ev
	e.Surroundings = deploy.Surroundings{}
	j.seen = append(j.seen, e)
	return d
}

// last is the last event of a kind.
func (j *judge) last(kind journal.PolicyKind) (ev deploy.PolicyEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.seen {
		if e.Kind == kind {
			ev = e
		}
	}
	return ev
}

func denial(reason string) deploy.Words {
	return deploy.Words{Denials: []deploy.Verdict{{Policy: "cage", Reason: reason, Where: "team.hcl:48"}}}
}

// denying objects to everything of one kind.
func denying(kind journal.PolicyKind) *judge {
	return &judge{kinds: []journal.PolicyKind{kind}, judge: func(*deploy.PolicyEvent) deploy.Decision {
		return deploy.Decision{Words: denial("told to")}
	}}
}

func judgedBy(j *judge) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) { d.Policy = j }
}

// shape is everything that an operation could change in the topology.
func (w *world) shape() string {
	w.t.Helper()
	var b strings.Builder
	for _, g := range w.status() {
		fmt.Fprintf(&b, "%s\n", g.ID)
		for _, c := range g.Creatures {
			fmt.Fprintf(&b, " %s %v %v\n", c.Name, c.Listen, c.Send)
		}
	}
	return b.String()
}

// renamed gives the creatures of a deployment other names.
func renamed(d *deploy.Deployment) {
	for i := range d.Creatures {
		d.Creatures[i].Name += "-of-" + d.Name
	}
}

// operation is one way to cause an event.
type operation struct {
	kind journal.PolicyKind
	call string
	do   func(s *saved, a, other *engine.Applied) error
}

// fromOutside are operations of callers from outside.
var fromOutside = []operation{
	{journal.JudgeSpawn, "add_creature", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.AddCreature(s.t.Context(), deploy.CreatureSpec{Name: "eve", Species: "scribe", Deployment: "own", Join: s.graph(a.Creatures["creature.lead"])})
		return err
	}},
	{journal.JudgeRemove, "remove_creature", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.RemoveCreature(s.t.Context(), a.Creatures["creature.ann"])
		return err
	}},
	{journal.JudgeConnect, "connect", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.Change(s.t.Context(), topology.Connect{From: a.Creatures["creature.ann"], To: a.Creatures["creature.bob"], Name: "x"})
		return err
	}},
	{journal.JudgeConnect, "set_listen", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.Change(s.t.Context(), topology.SetEdge{Creature: a.Creatures["creature.ann"], Channel: a.Channels["channel.orders"], Direction: journal.Listen, On: true})
		return err
	}},
	{journal.JudgeDisconnect, "set_send", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.Change(s.t.Context(), topology.SetEdge{Creature: a.Creatures["creature.bob"], Channel: a.Channels["channel.orders"], Direction: journal.Send})
		return err
	}},
	{journal.JudgeDisconnect, "disconnect", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.Change(s.t.Context(), topology.Disconnect{From: a.Creatures["creature.lead"], To: a.Creatures["creature.ann"]})
		return err
	}},
	{journal.JudgeDisconnect, "remove_channel", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.RemoveChannel(s.t.Context(), a.Channels["channel.work"])
		return err
	}},
	{journal.JudgeMerge, "connect", func(s *saved, a, b *engine.Applied) error {
		_, err := s.Change(s.t.Context(), topology.Connect{From: a.Creatures["creature.ann"], To: b.Creatures["creature.ann"]})
		return err
	}},
	{journal.JudgeSplit, "disconnect", func(s *saved, a, _ *engine.Applied) error {
		_, err := s.Change(s.t.Context(), topology.Disconnect{From: a.Creatures["creature.lead"], To: a.Creatures["creature.ann"]})
		return err
	}},
	{journal.JudgeWire, "wire", func(s *saved, a, _ *engine.Applied) error {
		return s.Batch(s.t.Context(), func(b *engine.Batch) error {
			_, err := b.AddWire(context.Background(), journal.OutputWire{From: a.Creatures["creature.lead"], To: a.Creatures["creature.ann"]})
			return err
		})
	}},
}

func TestOperationsFromOutsideAreJudged(t *testing.T) {
	for _, op := range fromOutside {
		t.Run(string(op.kind)+" by "+op.call, func(t *testing.T) {
			s := newSaved(t, engine.Options{Host: operators()})
			j := denying(op.kind)
			a, b := s.apply(crew("own", judgedBy(j))), s.apply(crew("other", renamed))
			before := s.shape()
			err := op.do(s, a, b)
			var e *abi.Error
			if !errors.As(err, &e) || e.Code != abi.Denied || e.IDs["policy"] != "cage" || e.IDs["where"] != "team.hcl:48" || e.IDs["call"] != op.call {
				t.Fatalf("%v with %v, want denied by cage for %s", err, e, op.call)
			}
			if after := s.shape(); after != before {
				t.Errorf("a denied operation has changed\n%sto\n%s", before, after)
			}
			if ev := j.last(op.kind); ev.Deployment != "own" || ev.Caller.ID != "" || ev.Time == 0 {
				t.Errorf("the event is %+v", ev)
			}
			logged := s.events(a.Creatures["creature.lead"], journal.EventPolicyDenied)
			if len(logged) != 1 || !strings.Contains(string(logged[0].Payload), `"event":"`+string(op.kind)+`"`) {
				t.Errorf("the verdicts in the log are %v, want one", logged)
			}
			j.judge = nil
			if err := op.do(s, a, b); err != nil {
				t.Errorf("without an objection: %v", err)
			}
			if s.shape() == before && op.kind != journal.JudgeWire {
				t.Error("without an objection nothing has changed")
			}
		})
	}
}

func TestToolsAreJudged(t *testing.T) {
	for _, c := range []struct {
		kind journal.PolicyKind
		call toolCall
	}{
		{journal.JudgeTool, toolCall{"group_status", nil}},
		{journal.JudgeTool, toolCall{"group_add_node", args{"species": "scribe"}}},
		{journal.JudgeSpawn, toolCall{"group_add_node", args{"species": "scribe"}}},
		{journal.JudgeRemove, toolCall{"group_remove_node", args{"creature": "bob"}}},
		{journal.JudgeConnect, toolCall{"group_channel", args{"action": "wire", "channel": "orders", "creature": "ann", "direction": "listen"}}},
		{journal.JudgeDisconnect, toolCall{"group_channel", args{"action": "unwire", "channel": "work", "creature": "ann", "direction": "listen"}}},
		{journal.JudgeDisconnect, toolCall{"group_channel", args{"action": "delete", "channel": "work"}}},
		{journal.JudgeSplit, toolCall{"group_channel", args{"action": "unwire", "channel": "work", "creature": "ann", "direction": "listen"}}},
		{journal.JudgeWire, toolCall{"group_wire", args{"action": "add", "from": "bob", "to": "ann"}}},
	} {
		t.Run(string(c.kind)+" by "+c.call.Tool, func(t *testing.T) {
			s := newSaved(t, engine.Options{Host: operators()})
			j := denying(c.kind)
			a := s.apply(crew("own", judgedBy(j)))
			lead, before := a.Creatures["creature.lead"], s.shape()
			reply := s.ask(lead, c.call)[0]
			if reply.Code != "denied" || !strings.Contains(reply.Error, "cage (team.hcl:48): told to") {
				t.Errorf("the reply to the call is %+v", reply)
			}
			if after := s.shape(); after != before {
				t.Errorf("a denied call has changed\n%sto\n%s", before, after)
			}
			if ev := j.last(c.kind); ev.Caller.ID != lead || ev.Caller.Name != "lead" || ev.Call != c.call.Tool {
				t.Errorf("the event has the caller %+v and the call %s", ev.Caller, ev.Call)
			}
			if n := len(s.events(lead, journal.EventPolicyDenied)); n != 1 {
				t.Errorf("%d verdicts are logged, want 1", n)
			}
		})
	}
}

// A policy may allow a call of a guest, and deny it when the turn commits. Then the turn is run
// again, and the guest gets the denial.
func TestACommitIsJudgedToo(t *testing.T) {
	calls := 0
	j := &judge{kinds: []journal.PolicyKind{journal.JudgeSpawn}, judge: func(*deploy.PolicyEvent) deploy.Decision {
		if calls++; calls == 1 {
			return deploy.Decision{}
		}
		return deploy.Decision{Words: denial("not any more")}
	}}
	w := newWorld(t, engine.Options{Host: operators()})
	a := w.apply(crew("own", judgedBy(j)))
	reply := w.ask(a.Creatures["creature.lead"], toolCall{"group_add_node", args{"species": "scribe"}})[0]
	if reply.Code != "denied" || calls < 3 {
		t.Errorf("after %d judgements, the reply to the call is %+v", calls, reply)
	}
	if n := len(w.status()[0].Creatures); n != 3 {
		t.Errorf("%d creatures, want 3", n)
	}
}

// If calls are always allowed but each commit is denied, the turn fails in the end, even if the
// denial is due to a limit.
func TestACommitThatIsAlwaysDenied(t *testing.T) {
	for _, limit := range []bool{false, true} {
		calls := 0
		j := &judge{kinds: []journal.PolicyKind{journal.JudgeSpawn}, judge: func(*deploy.PolicyEvent) deploy.Decision {
			if calls++; calls%2 == 1 || calls > 1000 {
				return deploy.Decision{}
			}
			words := denial("not now")
			words.Denials[0].Limit = limit
			return deploy.Decision{Words: words}
		}}
		w := newWorld(t, engine.Options{Host: operators()})
		a := w.apply(crew("own", judgedBy(j)))
		payload := []byte(`[{"tool": "group_add_node", "args": {"species": "scribe"}}]`)
		if _, err := w.SendTo(t.Context(), a.Creatures["creature.lead"], engine.Outgoing{Payload: payload}); err != nil {
			t.Fatal(err)
		}
		w.wait()
		if n := len(w.status()[0].Creatures); n != 3 || calls > 100 {
			t.Errorf("limit %t: %d creatures after %d judgements, want 3", limit, n, calls)
		}
	}
}

func TestPoliciesSettleNames(t *testing.T) {
	j := &judge{kinds: []journal.PolicyKind{journal.JudgeMerge}, judge: func(*deploy.PolicyEvent) deploy.Decision {
		return deploy.Decision{Settle: map[string]deploy.Collision{"work": topology.Unify}}
	}}
	w := newWorld(t, engine.Options{Host: operators()})
	a, b := w.apply(crew("own", judgedBy(j))), w.apply(crew("other"))
	out := w.change(topology.Connect{From: a.Creatures["creature.ann"], To: b.Creatures["creature.ann"]})
	if want := []journal.Unified{{Survivor: a.Channels["channel.work"], Absorbed: b.Channels["channel.work"]}}; !slices.Equal(out.Delta.Unified, want) {
		t.Errorf("unified %v, want %v", out.Delta.Unified, want)
	}
	var names []string
	for _, c := range j.last(journal.JudgeMerge).Collisions {
		names = append(names, string(c.Kind)+" "+c.Name)
	}
	if want := []string{"creature lead", "creature ann", "creature bob", "channel orders", "channel work"}; !slices.Equal(names, want) {
		t.Errorf("the collisions are %v, want %v", names, want)
	}
	graphs := j.last(journal.JudgeMerge).Graphs
	if len(graphs) != 2 || graphs[0].ID != out.Delta.NewGraphs[0] || len(graphs[1].Creatures) != 3 {
		t.Errorf("the graphs are %+v", graphs)
	}
}

func TestAPlanIsJudgedOnceAndWhole(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	j := denying(journal.JudgePlan)
	if _, err := s.Apply(context.Background(), crew("own", judgedBy(j))); abi.CodeOf(err) != abi.Denied {
		t.Fatalf("Apply: %v", err)
	}
	if len(s.status()) != 0 {
		t.Error("a part of a denied plan exists")
	}
	j.judge = nil
	s.apply(crew("own", judgedBy(j)))
	s.shut()
	s.open()
	j.seen = nil
	s.apply(crew("own", judgedBy(j), func(d *deploy.Deployment) {
		d.Creatures = d.Creatures[:2]
		d.Creatures[1].Address, d.Creatures[1].Name = "creature.new", "new"
		d.Creatures[0].Send = append(d.Creatures[0].Send, deploy.WireSpec{Channel: "channel.orders"})
	}))
	want := deploy.PlannedChanges{Created: []string{"creature.new"}, Resumed: []string{"creature.lead"}, Removed: []string{"creature.ann", "creature.bob"}}
	ev := j.last(journal.JudgePlan)
	if !reflect.DeepEqual(ev.PlannedChanges, want) || len(j.seen) != 1 {
		t.Errorf("the policy judged %d events, the last of which is %+v; want one with all changes", len(j.seen), ev)
	}
}

// tally counts in its memory what it judges, and denies everything beyond a number.
func tally(m deploy.PolicyMemory, most int) deploy.Words {
	n, _ := strconv.Atoi(string(m.Recall("tally")))
	if n >= most {
		return denial("enough")
	}
	m.Remember("tally", []byte(strconv.Itoa(n+1)))
	return deploy.Words{}
}

func TestMemoryGoesWithTheOperation(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	policy := func() func(*deploy.Deployment) {
		return judgedBy(&judge{kinds: []journal.PolicyKind{journal.JudgeSpawn}, judge: func(ev *deploy.PolicyEvent) deploy.Decision {
			return deploy.Decision{Words: tally(ev.Memory, 3)}
		}})
	}
	a := s.apply(crew("own", policy()))
	lead := a.Creatures["creature.lead"]
	add := toolCall{"group_add_node", args{"species": "scribe"}}
	refused := toolCall{"group_add_node", args{"species": "scribe", "name": "ann"}} // judged, but the name is taken
	for i, r := range s.ask(lead, add, refused, add) {
		if (r.Code == "") != (i != 1) {
			t.Fatalf("call %d: %+v", i, r)
		}
	}
	s.shut()
	s.open()
	a = s.apply(crew("own", policy()))
	lead = a.Creatures["creature.lead"]
	replies := s.ask(lead, add, toolCall{"group_remove_node", args{"creature": "scribe-1"}}, add)
	if replies[0].Code != "" || replies[2].Code != "denied" {
		t.Errorf("after a restart, the third and fourth replies are %+v", replies)
	}
}

// A policy with memory is asked again if another turn was faster, so that nothing is counted
// twice or lost.
func TestMemoryOfSendsIsExact(t *testing.T) {
	const senders, each, most = 4, 50, 120
	s := newSaved(t, engine.Options{Workers: senders})
	j := &judge{send: func(ev *deploy.SendEvent) deploy.SendDecision {
		if ev.SenderName == "" {
			return deploy.SendDecision{}
		}
		return deploy.SendDecision{Words: tally(ev.Memory, most)}
	}}
	d := &deploy.Deployment{Name: "team", Policy: j, Channels: []deploy.ChannelSpec{{Address: "channel.out", Name: "out"}}}
	sink := spec("sink", "count")
	sink.Address, sink.Listen = "creature.sink", []deploy.WireSpec{{Channel: "channel.out"}}
	d.Creatures = append(d.Creatures, sink)
	for i := range senders {
		c := spec(fmt.Sprintf("m%d", i), "relay")
		in := deploy.ChannelSpec{Address: fmt.Sprintf("channel.c%d", i), Name: fmt.Sprintf("c%d", i)}
		d.Channels = append(d.Channels, in)
		c.Address, c.Listen, c.Send = "creature."+c.Name, []deploy.WireSpec{{Channel: in.Address}}, []deploy.WireSpec{{Channel: "channel.out"}}
		d.Creatures = append(d.Creatures, c)
	}
	a := s.apply(d)
	for i := range each {
		for k := range senders {
			s.send(a.Channels[fmt.Sprintf("channel.c%d", k)], strconv.Itoa(i))
		}
	}
	s.wait()
	if got := s.state(a.Creatures["creature.sink"], "n"); got != strconv.Itoa(most) {
		t.Errorf("%s messages were allowed, want %d", got, most)
	}
	if n := len(s.events(a.Creatures["creature.sink"], journal.EventPolicyDenied)); n != senders*each-most {
		t.Errorf("%d denials are logged, want %d", n, senders*each-most)
	}
}

func TestMemoryFollowsMergesAndSplits(t *testing.T) {
	for name, o := range map[string]journal.Durability{"with stores": journal.Normal, "volatile": journal.Volatile} {
		t.Run(name, func(t *testing.T) {
			s := newSaved(t, engine.Options{Host: operators()})
			var recalled string
			policy := judgedBy(&judge{kinds: []journal.PolicyKind{journal.JudgeConnect}, judge: func(ev *deploy.PolicyEvent) deploy.Decision {
				recalled = string(ev.Memory.Recall("last"))
				ev.Memory.Remember("last", []byte(strconv.Quote(ev.Channel.Name)))
				return deploy.Decision{}
			}})
			volatile := func(d *deploy.Deployment) { d.Session.Durability = &o }
			a := s.apply(crew("own", policy, volatile))
			ann, bob, lead := a.Creatures["creature.ann"], a.Creatures["creature.bob"], a.Creatures["creature.lead"]
			s.change(topology.Connect{From: lead, To: bob, Name: "first"})
			s.change(topology.SetEdge{Creature: ann, Channel: a.Channels["channel.work"], Direction: journal.Listen}) // ann is alone
			s.change(topology.Connect{From: ann, To: ann, Name: "second"})
			if recalled != `"first"` {
				t.Errorf("the part that was split off recalls %s", recalled)
			}
			s.change(topology.Connect{From: ann, To: bob, Name: "third"}) // merges; bob's is the larger part
			s.change(topology.Connect{From: ann, To: bob, Name: "fourth"})
			if recalled != `"third"` {
				t.Errorf("after the merge: %s", recalled)
			}
		})
	}
}

func TestPoliciesRuleOnFailures(t *testing.T) {
	for _, c := range []struct {
		ruling  deploy.Ruling
		turns   int // attempts at the delivery that fails
		state   journal.CreatureState
		letters int64
	}{
		{deploy.RuleNothing, 2, "running", 1},
		{deploy.RuleDrop, 1, "running", 1},
		{deploy.RuleQuarantine, 1, "quarantined", 0},
		{deploy.RuleRestart, 5, "running", 1}, // until the policy rules otherwise
	} {
		t.Run("rules "+c.ruling.String(), func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			j := &judge{kinds: []journal.PolicyKind{journal.JudgeFail}, judge: func(ev *deploy.PolicyEvent) deploy.Decision {
				if c.ruling == deploy.RuleRestart && ev.Attempt == 5 {
					return deploy.Decision{Ruling: deploy.RuleDrop}
				}
				return deploy.Decision{Ruling: c.ruling, By: deploy.Verdict{Policy: "nurse", Where: "team.hcl:7"}}
			}}
			counting := spec("a", "count")
			counting.Address, counting.Listen = "creature.a", []deploy.WireSpec{{Channel: "channel.in"}}
			counting.Restart = deploy.RestartPolicy{Attempts: 2, Backoff: time.Microsecond, BackoffMax: time.Microsecond}
			a := s.apply(&deploy.Deployment{Name: "team", Policy: j, Channels: []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}}, Creatures: []deploy.CreatureSpec{counting}})
			id := a.Creatures["creature.a"]
			s.send(a.Channels["channel.in"], "trap")
			s.wait()
			if n := len(s.events(id, journal.EventTurnFailed)); n != c.turns {
				t.Errorf("%d attempts, want %d", n, c.turns)
			}
			if state := s.status()[0].Creatures[0].State; state != c.state || s.DeadLetterCount() != c.letters {
				t.Errorf("the creature is %s with %d dead letters", state, s.DeadLetterCount())
			}
			ev := j.last(journal.JudgeFail)
			if ev.Creature.Name != "a" || ev.Code != "trapped" || ev.Attempts != 2 || ev.Delivery != "message" || ev.Failures != c.turns {
				t.Errorf("the event is %+v", ev)
			}
			ruled := s.events(id, journal.EventPolicyDenied)
			if want := c.turns; c.ruling != deploy.RuleNothing && len(ruled) != want {
				t.Errorf("%d rulings are logged, want %d", len(ruled), want)
			}
		})
	}
}

func TestWhatNobodyJudgesAsksNobody(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	j := &judge{}
	a, b := s.apply(crew("own", judgedBy(j))), s.apply(crew("other", renamed))
	for _, op := range fromOutside {
		if op.kind == journal.JudgeMerge || op.kind == journal.JudgeRemove {
			continue // the other operations need what this one removes
		}
		_ = op.do(s, a, b) // some have nothing to change
	}
	if len(j.seen) != 0 {
		t.Errorf("%d events were judged, want none", len(j.seen))
	}
}

func TestThePictureShowsTheGraphBeforeTheOperation(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	var shown *deploy.GraphView
	j := &judge{kinds: []journal.PolicyKind{journal.JudgeSpawn}, judge: func(ev *deploy.PolicyEvent) deploy.Decision {
		shown = ev.View()
		return deploy.Decision{}
	}}
	a := s.apply(crew("own", judgedBy(j)))
	lead := a.Creatures["creature.lead"]
	s.ask(lead, toolCall{"group_add_node", args{"species": "scribe"}}, toolCall{"group_add_node", args{"species": "clerk"}})
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range shown.Creatures {
		names = append(names, c.Name+"/"+c.Species+"/"+string(c.State))
	}
	want := []string{"lead//running", "ann//running", "bob//running", "scribe-1/scribe/running"}
	if !slices.Equal(names, want) || !strings.Contains(string(text), `"listeners":["scribe-1"],"senders":["lead"]`) {
		t.Errorf("for the second spawn, the policy sees %s", text)
	}
}
