package draft_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/draft/drafttest"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// changed runs f in a new draft and applies it.
func changed(t *testing.T, w *drafttest.World, f func(d *draft.Draft)) *draft.Change {
	t.Helper()
	d := w.Draft(draft.Options{})
	f(d)
	return w.CarryOut(d)
}

// do stages operations, none of which may fail.
func do(t *testing.T, d *draft.Draft, ops ...topology.Op) *topology.Delta {
	t.Helper()
	var delta *topology.Delta
	for _, op := range ops {
		var err error
		if delta, err = d.Do(t.Context(), op); err != nil {
			t.Fatalf("%T: %v", op, err)
		}
	}
	return delta
}

// add stages a creature of a deployment with its own address.
func add(t *testing.T, d *draft.Draft, deployment string, op topology.AddCreature) *topology.Delta {
	t.Helper()
	spec := &deploy.CreatureSpec{Name: op.Name, Address: "creature." + op.Name, Parent: op.Parent}
	d.Add(draft.Member{ID: op.ID, Spec: spec, Deployment: deployment, Parent: op.Parent})
	return do(t, d, op)
}

// channel stages a channel of a deployment.
func channel(t *testing.T, d *draft.Draft, deployment string, op topology.AddChannel) {
	t.Helper()
	d.AddChannel(draft.Channel{ID: op.ID, Label: op.Name, Deployment: deployment})
	do(t, d, op)
}

func edge(c journal.CreatureID, ch journal.ChannelID, dir journal.Direction) draft.EdgeKey {
	return draft.EdgeKey{Creature: c, Channel: ch, Direction: dir}
}

func on(c journal.CreatureID, ch journal.ChannelID, dir journal.Direction) topology.SetEdge {
	return topology.SetEdge{Creature: c, Channel: ch, Direction: dir, On: true}
}

// team makes a graph of the deployment team: lead, a and b. The channel talk
// leads from a to b; lead does not listen on it.
func team(t *testing.T) *drafttest.World {
	t.Helper()
	w := drafttest.New()
	w.Applied["team"] = &deploy.Deployment{Name: "team"}
	changed(t, w, func(d *draft.Draft) {
		add(t, d, "team", topology.AddCreature{ID: "lead", Name: "lead"})
		channel(t, d, "team", topology.AddChannel{ID: "talk", With: "lead", Name: "talk"})
		channel(t, d, "team", topology.AddChannel{ID: "glue", With: "lead", Name: "glue"})
		do(t, d, on("lead", "glue", journal.Send))
		add(t, d, "team", topology.AddCreature{ID: "a", Name: "a", Edges: []topology.Wire{{Channel: "glue", Direction: journal.Listen}}})
		add(t, d, "team", topology.AddCreature{ID: "b", Name: "b", Edges: []topology.Wire{{Channel: "glue", Direction: journal.Listen}}})
		do(t, d, on("a", "talk", journal.Send), on("b", "talk", journal.Listen))
	})
	return w
}

func code(t *testing.T, err error, want abi.Code) *abi.Error {
	t.Helper()
	var e *abi.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("got %v, want %v", err, want)
		return &abi.Error{}
	}
	return e
}

func rooted(t *testing.T, w *drafttest.World, id journal.CreatureID) []journal.ChannelID {
	t.Helper()
	var listens []journal.ChannelID
	changed(t, w, func(d *draft.Draft) {
		var err error
		if listens, _, err = d.AssignRoot(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	})
	return listens
}

func TestARootGetsItsEdges(t *testing.T) {
	w := team(t)
	listens := rooted(t, w, "lead")
	report := w.Reports["team"]
	if want := []journal.ChannelID{report, "talk", "glue"}; !reflect.DeepEqual(listens, want) || report == "" {
		t.Errorf("it listens on %v, want %v", listens, want)
	}
	if !w.Topo.IsRoot("lead") || !w.Topo.IsPrivileged("lead") || w.Roots["team"] != "lead" {
		t.Error("lead is no privileged root")
	}
	for _, id := range []journal.CreatureID{"a", "b"} {
		if alias, is := draft.EdgeAlias(w.Topo, edge(id, report, journal.Send)); !is || alias != deploy.ReportChannel {
			t.Errorf("%s reports under %q: %v", id, alias, is)
		}
	}
	if edge("lead", report, journal.Send).On(w.Topo) {
		t.Error("the root reports to itself")
	}
	if ch, _ := w.Topo.Channel(report); !ch.Report || ch.Name != deploy.ReportChannel {
		t.Errorf("the report channel is %+v", ch)
	}

	d := w.Draft(draft.Options{})
	defer d.Undo()
	for key, want := range map[draft.EdgeKey]bool{
		edge("lead", "talk", journal.Listen): true, edge("lead", "glue", journal.Send): false, edge("a", report, journal.Send): false, edge("lead", "talk", journal.Send): false,
	} {
		if got := d.IsGiven(key); got != want {
			t.Errorf("%+v is given: %v", key, got)
		}
	}
	do(t, d, on("lead", "talk", journal.Listen)) // it has this edge as the root; now it is also its own
	if key := edge("lead", "talk", journal.Listen); d.IsGiven(key) || !d.Seal().Own["lead"][draft.OwnEdge{Channel: "talk", Direction: journal.Listen}] {
		t.Error("an edge that was asked for is not the root's own")
	}
}

func TestNewMembersAndChannelsMeetTheRoot(t *testing.T) {
	w := team(t)
	rooted(t, w, "lead")
	report := w.Reports["team"]
	d := w.Draft(draft.Options{})
	defer d.Undo()
	delta := add(t, d, "team", topology.AddCreature{ID: "kid", Name: "kid", Parent: "a", Join: w.Topo.GraphOf("a")})
	ch, _ := d.Channel(delta.Channel)
	if member, parent := draft.DirectOf(ch.Address); member != "kid" || parent != "a" || ch.Deployment != "team" {
		t.Errorf("the direct channel is %+v", ch)
	}
	for _, key := range []draft.EdgeKey{edge("kid", delta.Channel, journal.Listen), edge("a", delta.Channel, journal.Send), edge("lead", delta.Channel, journal.Send), edge("kid", report, journal.Send)} {
		if !key.On(w.Topo) {
			t.Errorf("%+v is missing", key)
		}
	}
	if !d.IsGiven(edge("lead", delta.Channel, journal.Send)) || d.IsGiven(edge("a", delta.Channel, journal.Send)) {
		t.Error("the root's edge to a direct channel is given, and the parent's is not")
	}
	channel(t, d, "team", topology.AddChannel{ID: "more", With: "a", Name: "more"})
	channel(t, d, "", topology.AddChannel{ID: "alien", With: "a", Name: "alien"})
	made := do(t, d, topology.Connect{From: "b", To: "a"}).Channel
	for id, want := range map[journal.ChannelID]bool{"more": true, "alien": false, made: true} {
		if got := edge("lead", id, journal.Listen).On(w.Topo); got != want {
			t.Errorf("the root listens on %s: %v", id, got)
		}
	}
	if got := d.DeploymentOfChannel(made); got != "team" {
		t.Errorf("a channel between members belongs to %q", got)
	}
	do(t, d, topology.RemoveCreature{ID: "kid"})
	if w.Topo.ChannelGraph(delta.Channel) != "" {
		t.Error("the direct channel outlives its creature")
	}
}

func TestAnotherRootTakesOver(t *testing.T) {
	w := team(t)
	changed(t, w, func(d *draft.Draft) { do(t, d, on("lead", "talk", journal.Listen)) }) // before it is the root
	rooted(t, w, "lead")
	report := w.Reports["team"]
	rooted(t, w, "a")
	if w.Reports["team"] != report || w.Roots["team"] != "a" || w.Topo.IsRoot("lead") {
		t.Errorf("report %s, root %s", w.Reports["team"], w.Roots["team"])
	}
	for key, want := range map[draft.EdgeKey]bool{
		edge("lead", "talk", journal.Listen): true, // its own
		edge("lead", "glue", journal.Listen): false, edge("lead", report, journal.Listen): false, edge("lead", report, journal.Send): true,
		edge("a", report, journal.Listen): true, edge("a", report, journal.Send): false, edge("a", "talk", journal.Listen): true,
	} {
		if got := key.On(w.Topo); got != want {
			t.Errorf("%+v: %v", key, got)
		}
	}
	if own := w.Members["a"].Own.List(); !reflect.DeepEqual(own, []draft.OwnEdge{{Channel: "glue", Direction: journal.Listen}}) {
		t.Errorf("own edges are %v", own)
	}
	changed(t, w, func(d *draft.Draft) { do(t, d, topology.RemoveCreature{ID: "a"}) })
	if w.Topo.ChannelGraph(report) != "" || w.Reports["team"] != "" || w.Roots["team"] != "" {
		t.Error("the report channel outlives the root")
	}
}

func TestRootOfLooseCreatures(t *testing.T) {
	w := drafttest.New()
	changed(t, w, func(d *draft.Draft) {
		add(t, d, "", topology.AddCreature{ID: "x", Name: "x"})
		add(t, d, "", topology.AddCreature{ID: "y", Name: "y"})
		do(t, d, topology.Connect{From: "x", To: "y", Name: "wire"})
	})
	rooted(t, w, "x")
	name := w.Members["x"].Deployment
	if !draft.Undeclared(name) || name != w.Members["y"].Deployment || w.Roots[name] != "x" || draft.Undeclared("team") || !draft.Undeclared("") {
		t.Errorf("they belong to %q and %q", name, w.Members["y"].Deployment)
	}
	if !edge("y", w.Reports[name], journal.Send).On(w.Topo) {
		t.Error("y cannot report")
	}
}

func TestAssignRootRefused(t *testing.T) {
	w := team(t)
	changed(t, w, func(d *draft.Draft) {
		channel(t, d, "", topology.AddChannel{ID: "other", With: "a", Name: "other"})
		op := on("a", "other", journal.Send)
		op.Alias = deploy.ReportChannel
		do(t, d, op)
	})
	d, before := w.Draft(draft.Options{}), w.Topo.Snapshot()
	defer d.Undo()
	_, _, err := d.AssignRoot(t.Context(), "none")
	code(t, err, abi.NotFound)
	_, _, err = d.AssignRoot(t.Context(), "lead")
	if e := code(t, err, abi.AlreadyExists); e.Op != "assign_root" || e.Remedy != "disconnect a from other, connect it again under another alias, and assign the root then" {
		t.Errorf("%s: %s", e.Op, e.Remedy)
	}
	if !reflect.DeepEqual(w.Topo.Snapshot(), before) || d.RootOf("team") != "" || len(d.Seal().Deltas) != 0 {
		t.Error("a refused root leaves something behind")
	}
}

func TestSplitsPartWiresAndParents(t *testing.T) {
	w := team(t)
	changed(t, w, func(d *draft.Draft) {
		do(t, d, topology.SetEdge{Creature: "lead", Channel: "glue", Direction: journal.Send})
	})
	if w.Topo.GraphOf("lead") == w.Topo.GraphOf("a") || w.Topo.GraphOf("a") != w.Topo.GraphOf("b") {
		t.Fatal("lead is to be apart, and a with b")
	}
	w = team(t)
	w.Members["a"] = func() draft.Member { m := w.Members["a"]; m.Parent = "lead"; return m }()
	w.Members["b"] = func() draft.Member { m := w.Members["b"]; m.Parent = "never here"; return m }()
	changed(t, w, func(d *draft.Draft) {
		for _, wire := range []journal.OutputWire{{From: "lead", To: "a"}, {From: "a", To: "b"}, {From: "b", To: "lead"}, {From: "a", To: "root"}} {
			if _, err := d.AddWire(t.Context(), wire); err != nil {
				t.Fatal(err)
			}
		}
	})
	d := w.Draft(draft.Options{})
	fresh, err := d.AddWire(t.Context(), journal.OutputWire{From: "lead", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	do(t, d, topology.SetEdge{Creature: "lead", Channel: "glue", Direction: journal.Send})
	if got := len(d.WiresLeft("a")); got != 2 || len(d.WiresLeft("lead")) != 0 || len(d.WiresOf("lead")) != 2 {
		t.Errorf("a is left %d wires, lead %v", got, d.WiresLeft("lead"))
	}
	if got := d.ParentLeft(w.Members["a"]); got != "" {
		t.Errorf("a keeps the parent %s", got)
	}
	if got := d.ParentLeft(w.Members["b"]); got != "never here" {
		t.Errorf("b loses the parent that never was here: %q", got)
	}
	c := w.CarryOut(d)
	if len(w.Members["lead"].Wires)+len(w.Members["b"].Wires) != 0 || len(w.Members["a"].Wires) != 2 {
		t.Errorf("the wires are %+v", w.Members)
	}
	if len(c.Wires.Notes) != 2 {
		t.Fatalf("noted are %+v", c.Wires.Notes)
	}
	for _, n := range c.Wires.Notes {
		if n.Kind != journal.EventWireRemoved || n.Reason != journal.UnwireSplit || n.Wire.ID == fresh.ID {
			t.Errorf("noted is %+v", n)
		}
	}
}

func TestDeploymentFor(t *testing.T) {
	w := team(t)
	d := w.Draft(draft.Options{})
	defer d.Undo()
	add(t, d, "", topology.AddCreature{ID: "alone", Name: "alone"})
	for what, c := range map[string]struct {
		address string
		op      topology.AddCreature
		want    string
	}{
		"with an address": {"creature.x", topology.AddCreature{Parent: "a"}, ""},
		"of a parent":     {"", topology.AddCreature{Parent: "a"}, "team"},
		"a loose parent":  {"", topology.AddCreature{Parent: "alone", Join: w.Topo.GraphOf("a")}, ""},
		"by a channel":    {"", topology.AddCreature{Edges: []topology.Wire{{Channel: "talk", Direction: journal.Send}}}, "team"},
		"by the elder":    {"", topology.AddCreature{Join: w.Topo.GraphOf("a")}, "team"},
		"by nothing":      {"", topology.AddCreature{}, ""},
	} {
		if got := d.DeploymentFor(c.address, &c.op); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// spawned stages a creature of a species.
func spawned(ctx context.Context, d *draft.Draft, k draft.Kind, op topology.AddCreature, workers deploy.Workers) error {
	m := draft.Member{ID: op.ID, Deployment: k.Deployment, Parent: op.Parent, Spec: &deploy.CreatureSpec{Name: op.Name, Species: k.Species, Parent: op.Parent, Workers: workers}}
	if err := d.MaySpawn(m); err != nil {
		return err
	}
	d.Add(m)
	_, err := d.Do(ctx, op)
	return err
}

func TestAliveWithinOneDraft(t *testing.T) {
	w := team(t)
	ant := draft.Kind{Deployment: "team", Species: "ant"}
	w.Templates[ant] = &deploy.SpeciesSpec{Name: "ant", Spawnable: 2}
	graph := w.Topo.GraphOf("a")
	spawn := func(d *draft.Draft, id journal.CreatureID) error {
		return spawned(t.Context(), d, ant, topology.AddCreature{ID: id, Name: string(id), Parent: "a", Join: graph}, 0)
	}
	changed(t, w, func(d *draft.Draft) {
		if err := spawn(d, "ant1"); err != nil {
			t.Fatal(err)
		}
	})
	d := w.Draft(draft.Options{})
	defer d.Undo()
	if err := spawn(d, "ant2"); err != nil || d.Alive(ant) != 2 || w.Alive(ant) != 1 {
		t.Fatalf("%v, %d alive", err, d.Alive(ant))
	}
	e := code(t, spawn(d, "ant3"), abi.LimitExceeded)
	if e.IDs["limit"] != "spawnable" || e.IDs["species"] != "ant" || e.IDs["deployment"] != "team" {
		t.Errorf("%+v", e)
	}
	do(t, d, topology.RemoveCreature{ID: "ant1"}, topology.RemoveCreature{ID: "ant2"})
	if d.Alive(ant) != 0 {
		t.Errorf("%d are alive", d.Alive(ant))
	}
	if err := spawn(d, "ant3"); err != nil || d.Alive(ant) != 1 {
		t.Errorf("%v, %d alive", err, d.Alive(ant))
	}
	for _, c := range []struct {
		deployment string
		spec       deploy.CreatureSpec
		want       bool
	}{{"team", deploy.CreatureSpec{Species: "ant"}, true}, {"", deploy.CreatureSpec{Species: "ant"}, false}, {"team", deploy.CreatureSpec{}, false}, {"team", deploy.CreatureSpec{Species: "ant", Address: "creature.x"}, false}} {
		if _, ok := draft.KindOf(c.deployment, &c.spec); ok != c.want {
			t.Errorf("%+v: %v", c, ok)
		}
	}
}

func TestWorkersGoAlong(t *testing.T) {
	w := team(t)
	ant := draft.Kind{Deployment: "team", Species: "ant"}
	graph := w.Topo.GraphOf("a")
	changed(t, w, func(d *draft.Draft) {
		for _, c := range []struct {
			id, parent journal.CreatureID
			privileged bool
		}{{"boss", "a", false}, {"w1", "boss", false}, {"w2", "w1", false}, {"star", "boss", true}} {
			if err := spawned(t.Context(), d, ant, topology.AddCreature{ID: c.id, Name: string(c.id), Parent: c.parent, Join: graph, Privileged: c.privileged}, deploy.WorkersRemove); err != nil {
				t.Fatal(err)
			}
		}
		add(t, d, "team", topology.AddCreature{ID: "named", Name: "named", Parent: "boss", Join: graph})
	})
	d := w.Draft(draft.Options{})
	defer d.Undo()
	if err := spawned(t.Context(), d, ant, topology.AddCreature{ID: "w3", Name: "w3", Parent: "boss", Join: graph}, deploy.WorkersRemove); err != nil {
		t.Fatal(err)
	}
	if got, want := d.WorkersOf("boss"), []journal.CreatureID{"w1", "w3", "w2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the workers are %v, want %v", got, want)
	}
	delta := do(t, d, topology.RemoveCreature{ID: "boss"})
	gone := map[journal.CreatureID]bool{}
	for _, id := range draft.RemovedBy(delta) {
		gone[id] = true
	}
	if want := map[journal.CreatureID]bool{"boss": true, "w1": true, "w2": true, "w3": true}; !reflect.DeepEqual(gone, want) {
		t.Errorf("gone are %v", gone)
	}
}
