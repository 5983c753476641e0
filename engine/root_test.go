package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

func ledBy(root string) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) { d.Root = "creature." + root }
}

func (w *world) assign(id journal.CreatureID) engine.Rooted {
	w.t.Helper()
	r, err := w.AssignRoot(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// sayOn makes a creature send on a channel, by its own alias.
func (w *world) sayOn(c journal.CreatureID, alias, payload string) toolReply {
	w.t.Helper()
	return w.ask(c, toolCall{"send_channel", args{"channel": alias, "payload": payload}})[0]
}

func TestASpawnedCreatureReportsToItsRoot(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew", ledBy("bob")))
	lead, bob := a.Creatures["creature.lead"], a.Creatures["creature.bob"]
	replies := s.ask(lead,
		toolCall{"group_add_node", args{"species": "clerk", "name": "eve"}},
		toolCall{"group_channel", args{"action": "create", "name": "notes"}},
	)
	eve, notes := answer[tools.AddNodeResult](t, replies[0]), answer[tools.ChannelResult](t, replies[1])
	check := func(when string) {
		t.Helper()
		root, _ := s.creature(bob)
		child, _ := s.creature(eve.Creature)
		if child.Aliases.Send[deploy.ReportChannel] != a.Channels["channel.report_to_root"] {
			t.Errorf("%s: eve sends on %v", when, child.Aliases.Send)
		}
		if !slices.Contains(root.Send, eve.Channel) || slices.Contains(root.Listen, eve.Channel) || !slices.Contains(root.Listen, notes.Channel) {
			t.Errorf("%s: the root listens on %v, sends on %v", when, root.Listen, root.Send)
		}
	}
	check("at once")
	if n := len(s.events(lead, journal.EventTopologyChanged)); n != 2 {
		t.Errorf("%d changes are reported, want one for each call", n)
	}
	if r := s.sayOn(eve.Creature, deploy.ReportChannel, "done"); r.Code != "" {
		t.Errorf("the report of eve failed: %+v", r)
	}
	if got := s.state(bob, "heard"); got != "done" {
		t.Errorf("the root heard %q", got)
	}
	s.reopen()
	check("after a restart")
}

func TestARecipeRulesItsRootAgain(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a := s.apply(crew("crew", ledBy("lead")))
	ann := a.Creatures["creature.ann"]
	r := s.assign(ann)
	if r.Channels[0] != a.Channels["channel.report_to_root"] || len(r.Channels) != 2 || r.Delta.Kind != "none" {
		t.Errorf("the result of assigning a root is %+v", r)
	}
	lead, _ := s.creature(a.Creatures["creature.lead"])
	if lead.Root || !lead.Privileged || len(lead.Listen) != 1 || lead.Aliases.Send[deploy.ReportChannel] != r.Channels[0] {
		t.Errorf("the former root is %+v", lead)
	}
	for range 2 {
		s.shut()
		s.open()
		again := s.apply(crew("crew", ledBy("lead")))
		lead, _ := s.creature(again.Creatures["creature.lead"])
		member, _ := s.creature(ann)
		if !lead.Root || len(lead.Listen) != 3 || member.Root || member.Privileged || len(member.Listen) != 1 {
			t.Errorf("applied again: %+v, %+v", lead, member)
		}
	}
}

func TestRootsOfMergedGraphs(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	a, b := s.apply(crew("one", ledBy("lead"))), s.apply(crew("two", ledBy("lead")))
	bobs := []journal.CreatureID{a.Creatures["creature.bob"], b.Creatures["creature.bob"]}
	leads := []journal.CreatureID{a.Creatures["creature.lead"], b.Creatures["creature.lead"]}
	reports := func(when string) {
		t.Helper()
		for i, bob := range bobs {
			if r := s.sayOn(bob, deploy.ReportChannel, when); r.Code != "" {
				t.Errorf("%s: %+v", when, r)
			}
			if r := s.ask(bob, toolCall{"group_send", args{"creature": "root", "payload": "[]"}})[0]; answer[tools.GroupSendResult](t, r).Creature != leads[i] {
				t.Errorf("%s: the root of %d is %s", when, i, r.Result)
			}
			if got := s.state(leads[i], "heard"); got != when {
				t.Errorf("%s: root %d heard %q", when, i, got)
			}
		}
	}
	edges := func() (out [][]journal.ChannelID) {
		for _, id := range leads {
			c, _ := s.creature(id)
			out = append(out, c.Listen, c.Send)
		}
		return out
	}
	before := edges()
	reports("apart")
	out := s.change(topology.Connect{From: a.Creatures["creature.ann"], To: bobs[1], Name: "bridge"})
	if out.Delta.Kind != "merge" || len(s.status()) != 1 {
		t.Fatalf("the delta is %+v, want one merge", out.Delta)
	}
	reports("merged")
	if d := s.change(topology.Disconnect{From: a.Creatures["creature.ann"], To: bobs[1]}).Delta; d.Kind != "split" {
		t.Errorf("the delta is %+v, want a split", d)
	}
	reports("split")
	for i, list := range edges() {
		if !slices.Equal(list, before[i]) {
			t.Errorf("the roots' edges are %v, want %v", edges(), before)
		}
	}
	s.reopen()
	reports("restarted")
}

func TestRemovingARootCanSplit(t *testing.T) {
	s := newSaved(t, engine.Options{Host: operators()})
	hub, left, right := s.add("hub", "operator"), s.add("left", "operator"), s.add("right", "record")
	s.connect(hub, left, "l")
	s.connect(hub, right, "r")
	r := s.assign(hub)
	if len(r.Channels) != 3 || r.Delta.Kind != "none" {
		t.Errorf("the result of assigning a root is %+v", r)
	}
	if reply := s.sayOn(left, deploy.ReportChannel, "hello"); reply.Code != "" || s.state(hub, "heard") != "hello" {
		t.Errorf("the report of left to the root failed: %+v", reply)
	}
	old := s.graph(hub)
	d := s.change(topology.RemoveCreature{ID: hub}).Delta
	if d.Kind != "split" || !slices.Equal(d.OldGraphs, []journal.GraphID{old}) || len(d.NewGraphs) != 2 || !slices.Contains(d.NewGraphs, old) || len(d.Affected) != 1 {
		t.Errorf("the delta of the removal is %+v", d)
	}
	if s.graph(left) == s.graph(right) {
		t.Error("left and right are still in one graph")
	}
	if _, err := s.FindChannel("", deploy.ReportChannel); !errors.Is(err, &abi.Error{Code: abi.NotFound}) {
		t.Errorf("looking up the report channel: %v, want not_found", err)
	}
	if c, _ := s.creature(left); len(c.Send) != 0 {
		t.Errorf("left sends on %v", c.Send)
	}
	s.reopen()
	if len(s.status()) != 2 {
		t.Errorf("%d graphs after a restart, want 2", len(s.status()))
	}
}

// TestARootInOnePartOfItsDeployment is about a deployment that is in two graphs.
func TestARootInOnePartOfItsDeployment(t *testing.T) {
	w := newWorld(t, engine.Options{Host: operators()})
	a := w.apply(crew("crew", func(d *deploy.Deployment) {
		ledBy("lead")(d)
		d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel.far", Name: "far"})
		d.Creatures = append(d.Creatures, deploy.CreatureSpec{
			Address: "creature.hermit", Name: "hermit", Module: "record", Wasm: []byte("record"), Send: []deploy.WireSpec{{Channel: "channel.far"}},
		})
	}))
	hermit, ann := a.Creatures["creature.hermit"], a.Creatures["creature.ann"]
	w.change(topology.SetEdge{Creature: hermit, Channel: a.Channels["channel.report_to_root"], Direction: journal.Send})
	w.change(topology.SetEdge{Creature: hermit, Channel: a.Channels["channel.far"], Direction: journal.Send})
	if len(w.status()) != 2 {
		t.Fatalf("%d graphs", len(w.status()))
	}
	// The hermit's half gets a root. The other half loses its root, and has none from then on.
	r := w.assign(hermit)
	if lead, _ := w.creature(a.Creatures["creature.lead"]); lead.Root || len(lead.Listen) != 1 || r.Delta.Kind != "none" {
		t.Errorf("the former root is %+v, and the result %+v", lead, r)
	}
	if c, _ := w.creature(ann); len(c.Send) != 0 {
		t.Errorf("ann still sends on %v, although there is no root", c.Send)
	}
}

func TestAssignRootIsAllOrNothing(t *testing.T) {
	w := newWorld(t, engine.Options{Host: operators()})
	a, b := w.add("a", "operator"), w.add("b", "operator")
	ch := w.connect(a, b, "ch")
	w.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Send, On: true, Alias: deploy.ReportChannel})
	before := w.status()
	_, err := w.AssignRoot(t.Context(), a)
	if !errors.Is(err, &abi.Error{Code: abi.AlreadyExists}) {
		t.Errorf("assigning a root while the alias is taken: %v, want already_exists", err)
	}
	err = w.Batch(t.Context(), func(batch *engine.Batch) error {
		if _, err := batch.AssignRoot(t.Context(), a); err == nil {
			t.Error("the root was assigned")
		}
		_, err := batch.Do(t.Context(), topology.SetPrivileged{ID: b, Privileged: true}) // a batch may continue
		return err
	})
	after := w.status()
	if err != nil || len(after) != 1 || len(after[0].Channels) != 1 || after[0].Creatures[0].Root || !after[0].Creatures[1].Privileged {
		t.Errorf("%v: %+v, before %+v", err, after, before)
	}
	for _, c := range after[0].Creatures {
		if c.Deployment != "" {
			t.Errorf("%s was added to the deployment %s", c.Name, c.Deployment)
		}
	}
	if _, err := w.AssignRoot(t.Context(), "cnobody"); !errors.Is(err, &abi.Error{Code: abi.NotFound}) {
		t.Errorf("assigning a creature that does not exist: %v, want not_found", err)
	}
	if _, err := w.Change(t.Context(), topology.SetRoot{ID: a, Root: true}); !errors.Is(err, &abi.Error{Code: abi.InvalidArgument}) {
		t.Errorf("an operation that sets a root directly: %v, want invalid_argument", err)
	}
}

// If a member sends on another channel under the alias of reports, no root can be assigned. The
// remedy says how to resolve that.
func TestTheAliasOfReportsIsTaken(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a, b := w.add("a", "sink"), w.add("b", "sink")
	ch := w.connect(a, b, deploy.ReportChannel)
	_, err := w.AssignRoot(t.Context(), b)
	var e *abi.Error
	if !errors.As(err, &e) || e.Code != abi.AlreadyExists || e.Op != "assign_root" || !strings.Contains(e.Remedy, "disconnect "+string(a)+" from "+string(ch)) {
		t.Fatalf("AssignRoot returns %v", err)
	}
	w.change(topology.SetEdge{Creature: a, Channel: ch, Direction: journal.Send})
	if _, err := w.AssignRoot(t.Context(), b); err != nil {
		t.Errorf("after the remedy, AssignRoot returns %v", err)
	}
}
