package draft_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/draft/drafttest"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// step is a step of a random draft, with all its names already drawn.
type step struct {
	name string
	run  func(*draft.Draft) error
}

// shape is the part of a topology that deltas describe.
type shape struct {
	creatures, channels map[string][2]string // name and graph, by id
	edges               map[draft.EdgeKey]string
	graphs              map[journal.GraphID]bool
}

func shapeOf(s *topology.State) shape {
	snap := s.Snapshot()
	out := shape{map[string][2]string{}, map[string][2]string{}, map[draft.EdgeKey]string{}, map[journal.GraphID]bool{}}
	for _, c := range snap.Creatures {
		out.creatures[string(c.ID)] = [2]string{c.Name, string(c.Graph)}
	}
	for _, ch := range snap.Channels {
		out.channels[string(ch.ID)] = [2]string{ch.Name, string(ch.Graph)}
	}
	for _, e := range snap.Edges {
		out.edges[draft.EdgeKey{Creature: e.Creature, Channel: e.Channel, Direction: e.Direction}] = e.Alias
	}
	for _, g := range snap.Graphs {
		out.graphs[g.ID] = true
	}
	return out
}

// follow applies the steps of a delta to a shape.
func (s shape) follow(delta *topology.Delta) {
	for _, c := range delta.Changes {
		creature, ch, g := string(c.Creature), string(c.Channel), string(c.Graph)
		switch c.Kind {
		case topology.CreatureAdded:
			s.creatures[creature] = [2]string{c.Name, g}
		case topology.CreatureRemoved:
			delete(s.creatures, creature)
		case topology.ChannelAdded:
			s.channels[ch] = [2]string{c.Name, g}
		case topology.ChannelRemoved:
			delete(s.channels, ch)
		case topology.EdgeAdded:
			s.edges[draft.EdgeKey{Creature: c.Creature, Channel: c.Channel, Direction: c.Direction}] = c.Alias
		case topology.EdgeRemoved:
			delete(s.edges, draft.EdgeKey{Creature: c.Creature, Channel: c.Channel, Direction: c.Direction})
		case topology.CreatureMoved:
			s.creatures[creature] = [2]string{s.creatures[creature][0], g}
		case topology.ChannelMoved:
			s.channels[ch] = [2]string{s.channels[ch][0], g}
		case topology.CreatureRenamed:
			s.creatures[creature] = [2]string{c.Name, s.creatures[creature][1]}
		case topology.ChannelRenamed:
			s.channels[ch] = [2]string{c.Name, s.channels[ch][1]}
		case topology.GraphAdded:
			s.graphs[c.Graph] = true
		case topology.GraphEnded:
			delete(s.graphs, c.Graph)
		}
	}
}

var ants = draft.Kind{Deployment: "team", Species: "ant"}

// drawn draws steps that name existing things, and sometimes missing ones.
type drawn struct {
	*rapid.T
	w *drafttest.World
}

func (r drawn) creature() journal.CreatureID {
	ids := append(r.w.Topo.Creatures(), "nowhere")
	return rapid.SampledFrom(ids).Draw(r.T, "creature")
}

func (r drawn) channel() journal.ChannelID {
	ids := []journal.ChannelID{"nowhere"}
	for _, ch := range r.w.Topo.Snapshot().Channels {
		ids = append(ids, ch.ID)
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(r.T, "channel")
}

func (r drawn) name() string {
	return rapid.SampledFrom([]string{"n1", "n2", "n3", "talk"}).Draw(r.T, "name")
}

func (r drawn) flag(what string) bool { return rapid.Bool().Draw(r.T, what) }

// operation draws an operation that adds nothing.
func (r drawn) operation() topology.Op {
	direction := rapid.SampledFrom([]journal.Direction{journal.Listen, journal.Send}).Draw(r.T, "direction")
	switch rapid.IntRange(0, 7).Draw(r.T, "operation") {
	case 0:
		return topology.RemoveCreature{ID: r.creature()}
	case 1:
		return topology.RemoveChannel{ID: r.channel()}
	case 2, 3:
		return topology.SetEdge{Creature: r.creature(), Channel: r.channel(), Direction: direction, On: r.flag("on"), OnCollision: topology.Collision(rapid.IntRange(0, 2).Draw(r.T, "collision"))}
	case 4:
		return topology.Connect{From: r.creature(), To: r.creature(), Name: r.name()}
	case 5:
		return topology.Disconnect{From: r.creature(), To: r.creature()}
	case 6:
		return topology.SetStopped{ID: r.creature(), Stopped: r.flag("stopped")}
	}
	return topology.SetPrivileged{ID: r.creature(), Privileged: r.flag("privileged")}
}

func (r drawn) addition() func(d *draft.Draft) error {
	name, parent, single := r.name(), r.creature(), r.flag("single")
	workers := deploy.Workers(rapid.IntRange(0, 1).Draw(r.T, "workers"))
	if r.flag("a channel") {
		return func(d *draft.Draft) error {
			id := d.IDs.NewChannel()
			d.AddChannel(draft.Channel{ID: id, Label: name, Deployment: d.DeploymentOf(parent)})
			_, err := d.Do(context.Background(), topology.AddChannel{ID: id, With: parent, Name: name})
			return err
		}
	}
	return func(d *draft.Draft) error {
		op := topology.AddCreature{ID: d.IDs.NewCreature(), Name: name, Parent: parent, Join: d.Topology().GraphOf(parent)}
		if single {
			op.Join = ""
		}
		return spawned(context.Background(), d, ants, op, workers)
	}
}

func (r drawn) step() step {
	kind := rapid.SampledFrom([]string{"do", "do", "do", "stage", "add", "add", "wire", "unwire", "root"}).Draw(r.T, "step")
	switch kind {
	case "do":
		op := r.operation()
		return step{fmt.Sprintf("do %T %+v", op, op), func(d *draft.Draft) error { _, err := d.Do(context.Background(), op); return err }}
	case "stage":
		ops := []topology.Op{r.operation(), r.operation()}
		return step{fmt.Sprintf("stage %+v", ops), func(d *draft.Draft) error { return d.Stage(ops...) }}
	case "add":
		return step{"add", r.addition()}
	case "wire":
		w := journal.OutputWire{From: r.creature(), To: r.creature(), AllowSelf: r.flag("self"), Name: r.name()}
		return step{fmt.Sprintf("wire %+v", w), func(d *draft.Draft) error { _, err := d.AddWire(context.Background(), w); return err }}
	case "unwire":
		from := r.creature()
		return step{"unwire " + string(from), func(d *draft.Draft) error {
			list := d.WiresOf(from)
			if len(list) == 0 {
				_, err := d.RemoveWire(context.Background(), "none")
				return err
			}
			_, err := d.RemoveWire(context.Background(), list[0].ID)
			return err
		}}
	}
	id := r.creature()
	return step{"root " + string(id), func(d *draft.Draft) error { _, _, err := d.AssignRoot(context.Background(), id); return err }}
}

// picture returns the draft's answers about everything that exists.
func picture(w *drafttest.World, d *draft.Draft) string {
	text := fmt.Sprintf("%+v alive=%d root=%s\n", w.Topo.Snapshot(), d.Alive(ants), d.RootOf("team"))
	for _, id := range w.Topo.Creatures() {
		text += fmt.Sprintf("%s in %q has %+v, left %+v\n", id, d.DeploymentOf(id), d.WiresOf(id), d.WiresLeft(id))
	}
	return text
}

func contents(w *drafttest.World) string {
	return fmt.Sprintf("%+v %+v %v %v", w.Members, w.Channels, w.Roots, w.Reports)
}

// checkNaively compares a draft's answers with those computed from the whole
// topology.
func checkNaively(t *rapid.T, w *drafttest.World, d *draft.Draft, added map[journal.CreatureID]bool) {
	alive := 0
	for _, id := range w.Topo.Creatures() {
		if added[id] {
			alive++
		}
		m, ok := d.Member(id)
		if !ok {
			t.Fatalf("nothing is known of %s", id)
		}
		places := map[uint64]bool{}
		for _, wire := range d.WiresOf(id) {
			if found, ok := d.FindWire(wire.ID); !ok || found != wire || places[wire.Order] || wire.From != id {
				t.Fatalf("the wire %+v is found as %+v", wire, found)
			}
			places[wire.Order] = true
		}
		for _, wire := range d.WiresLeft(id) {
			if to := w.Topo.GraphOf(wire.To); to != "" && to != w.Topo.GraphOf(id) {
				t.Fatalf("the wire %+v joins two graphs", wire)
			}
		}
		if left := d.ParentLeft(m); left != "" && left != m.Parent {
			t.Fatalf("%s has another parent, %s", id, left)
		}
	}
	if got := d.Alive(ants); got != alive || alive > w.Templates[ants].Spawnable {
		t.Fatalf("%d are alive, and Alive says %d", alive, got)
	}
	if root := d.RootOf("team"); root != "" && (!w.Topo.IsRoot(root) || d.DeploymentOf(root) != "team") {
		t.Fatalf("%s is no root", root)
	}
}

// TestRandomDrafts runs programs of several drafts, each undone, repeated and
// either undone again or applied.
func TestRandomDrafts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, limit := team(t), rapid.IntRange(1, 5).Draw(rt, "limit")
		w.Templates[ants] = &deploy.SpeciesSpec{Name: "ant", Spawnable: limit}
		for n := range rapid.IntRange(1, 4).Draw(rt, "drafts") {
			randomDraft(rt, w, uint64(n+1))
		}
	})
}

func randomDraft(t *rapid.T, w *drafttest.World, n uint64) {
	begin := func() (*draft.Draft, *draft.DerivedIDs) {
		ids := draft.NewDerivedIDs(draft.Source{Creature: "lead", Seq: n})
		return w.Draft(draft.Options{IDs: ids}), ids
	}
	d, ids := begin()
	before, had, from := w.Topo.Snapshot(), contents(w), shapeOf(w.Topo)
	isAnt := map[journal.CreatureID]bool{}
	var steps []step
	for i := range rapid.IntRange(1, 8).Draw(t, "steps") {
		s := drawn{t, w}.step()
		steps = append(steps, s)
		was := picture(w, d)
		ids.Begin(i)
		if err := s.run(d); err != nil && picture(w, d) != was {
			t.Fatalf("%s failed with %v, and left\n%s\nof\n%s", s.name, err, picture(w, d), was)
		}
		for _, id := range w.Topo.Creatures() {
			m, _ := d.Member(id)
			_, isAnt[id] = draft.KindOf(m.Deployment, m.Spec)
		}
		checkNaively(t, w, d, isAnt)
	}
	after := picture(w, d)
	d.Undo()
	if !reflect.DeepEqual(w.Topo.Snapshot(), before) || contents(w) != had {
		t.Fatalf("the draft leaves\n%+v\nof\n%+v", w.Topo.Snapshot(), before)
	}
	d, ids = begin()
	for i, s := range steps {
		ids.Begin(i)
		_ = s.run(d) // fails as it did
	}
	if got := picture(w, d); got != after {
		t.Fatalf("the same steps make\n%s\nafter\n%s", got, after)
	}
	sealed := d.Seal()
	for i := range sealed.Deltas {
		from.follow(&sealed.Deltas[i])
	}
	if got := shapeOf(w.Topo); !reflect.DeepEqual(got, from) {
		t.Fatalf("the deltas lead to\n%+v\nand not to\n%+v", from, got)
	}
	if rapid.Bool().Draw(t, "undo") {
		d.Undo()
		if !reflect.DeepEqual(w.Topo.Snapshot(), before) || contents(w) != had {
			t.Fatal("a sealed draft leaves something")
		}
		return
	}
	w.CarryOut(d)
	if got := slices.Sorted(maps.Keys(w.Members)); !reflect.DeepEqual(got, slices.Sorted(slices.Values(w.Topo.Creatures()))) {
		t.Fatalf("members are %v", got)
	}
	for id, m := range w.Members {
		for _, wire := range m.Wires {
			if to := w.Topo.GraphOf(wire.To); to != "" && to != w.Topo.GraphOf(id) {
				t.Fatalf("the wire %+v joins two graphs", wire)
			}
		}
	}
}
