package tools_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/draft/drafttest"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// turn is a turn of a creature in a world without an engine.
type turn struct {
	t       testing.TB
	w       *drafttest.World
	caller  journal.CreatureID
	use     tools.Use
	sent    []string
	refused []draft.HomedWord
	nodes   []*node
	merges  bool // the records of the graphs' stores
}

// node is a prepared creature.
type node struct {
	member    draft.Member
	discarded int
}

func (n *node) Assign(id journal.CreatureID, name string) {
	spec := *n.member.Spec
	spec.Name = name
	n.member.ID, n.member.Spec = id, &spec
}

func (n *node) Member() draft.Member { return n.member }

func (n *node) Discard() { n.discarded++ }

func (t *turn) Use() *tools.Use { return &t.use }

// stage begins a draft with the turn's operations.
func (t *turn) stage() *tools.Stage {
	ids := draft.NewDerivedIDs(draft.Source{Creature: t.caller})
	return tools.NewStage(t.w.Draft(draft.Options{IDs: ids}), t.w.Members[t.caller], ids, t)
}

func (t *turn) Look(ctx context.Context, f func(s *tools.Stage) error) error {
	s := t.stage()
	defer s.Undo()
	if err := t.use.Replay(ctx, s); err != nil {
		t.t.Errorf("what was staged fails later: %v", err)
		return err
	}
	s.Begin(&t.use)
	return f(s)
}

func (t *turn) Prepare(ctx context.Context, a *tools.AddNodeArgs, may func(*tools.Stage) error) (tools.Prepared, error) {
	if err := t.Look(ctx, may); err != nil {
		return nil, err
	}
	of := t.w.Members[t.caller].Deployment
	species := t.w.Templates[draft.Kind{Deployment: of, Species: a.Species}]
	if species == nil {
		return nil, &abi.Error{Code: abi.NotFound, Message: "no species " + a.Species}
	}
	spec := species.Spec
	spec.Species, spec.Parent, spec.Name, spec.Description = a.Species, t.caller, cmp.Or(a.Name, a.Species), a.Description
	n := &node{member: draft.Member{Spec: &spec, Deployment: of, Parent: t.caller}}
	t.nodes = append(t.nodes, n)
	return n, nil
}

func (t *turn) Send(channel journal.ChannelID, alias string, m tools.Message) error {
	return t.send(fmt.Sprintf("%s as %s", channel, alias), m)
}

func (t *turn) send(to string, m tools.Message) error {
	if string(m.Payload) == "too much" {
		return &abi.Error{Code: abi.LimitExceeded}
	}
	t.sent = append(t.sent, fmt.Sprintf("%s: %s %v %v", to, m.Payload, journal.DecodeHeaders(m.Own), journal.DecodeHeaders(m.Headers)))
	return nil
}

func (t *turn) SendTo(to journal.CreatureID, m tools.Message) error { return t.send(string(to), m) }

func (t *turn) Refused(words []draft.HomedWord) { t.refused = append(t.refused, words...) }

func (t *turn) Inside(f func(tools.Graph)) { f(running{t.w, t.w.Home(t.caller)}) }

func (t *turn) Species(deployment string) []*deploy.SpeciesSpec {
	var out []*deploy.SpeciesSpec
	for k, s := range t.w.Templates {
		if k.Deployment == deployment {
			out = append(out, s)
		}
	}
	return out
}

func (t *turn) LetsMerge(journal.CreatureID, string) bool { return t.merges }

// running is a graph, in which every creature has three deliveries waiting.
type running struct {
	w  *drafttest.World
	id journal.GraphID
}

func (g running) Member(id journal.CreatureID) (tools.Running, bool) {
	return tools.Running{State: cmp.Or(g.w.States[id], journal.Running), Pending: 3}, g.w.Home(id) == g.id
}

func (g running) Head(journal.ChannelID) uint64 { return 9 }

// call calls a tool as an engine does.
func (t *turn) call(name, args string) (string, error) {
	f := tools.ByName(name)
	t.use.Calls++
	if err := f.Check([]byte(args)); err != nil {
		return "", err
	}
	t.use.Tool = name
	result, err := f.Call(t.t.Context(), t, []byte(args))
	return string(result), err
}

// ok calls a tool that must not refuse, and returns its result.
func ok[R any](t *turn, name, args string) (r R) {
	t.t.Helper()
	text, err := t.call(name, args)
	if err != nil {
		t.t.Fatalf("%s %s: %v", name, args, err)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.t.Fatalf("%s: %v", text, err)
	}
	return r
}

// commit applies the operations that the turn has staged.
func (t *turn) commit() {
	t.t.Helper()
	s := t.stage()
	if err := t.use.Replay(t.t.Context(), s); err != nil {
		t.t.Fatal(err)
	}
	t.w.CarryOut(s.Draft)
	t.use.Keep()
	t.use = tools.Use{}
}

// crew is a world with two graphs. In the graph of the deployment crew, lead is
// privileged and the root, ann and bob are workers, and the channel talk leads from lead
// to both. In the other graph, of the deployment guests, x sends on a channel that is
// also named talk.
func crew(t testing.TB) *drafttest.World {
	t.Helper()
	w := drafttest.New()
	for _, name := range []string{"crew", "guests"} {
		w.Applied[name] = &deploy.Deployment{Name: name}
	}
	w.Templates[draft.Kind{Deployment: "crew", Species: "clerk"}] = &deploy.SpeciesSpec{Name: "clerk", Spawnable: 2, Description: "writes"}
	w.Templates[draft.Kind{Deployment: "crew", Species: "lib/scribe"}] = &deploy.SpeciesSpec{Name: "lib/scribe", Spawnable: 1, Spec: deploy.CreatureSpec{Stopped: true}}
	d := w.Draft(draft.Options{})
	for _, c := range []struct {
		deployment string
		op         topology.AddCreature
	}{
		{"crew", topology.AddCreature{ID: "lead-id", Name: "lead", Privileged: true}},
		{"crew", topology.AddCreature{ID: "ann-id", Name: "ann", Parent: "lead-id"}}, {"crew", topology.AddCreature{ID: "bob-id", Name: "bob"}},
		{"guests", topology.AddCreature{ID: "x-id", Name: "x"}},
	} {
		d.Add(draft.Member{ID: c.op.ID, Deployment: c.deployment, Parent: c.op.Parent, Spec: &deploy.CreatureSpec{Name: c.op.Name, Address: "creature." + c.op.Name}})
		must(t, d, c.op)
	}
	d.AddChannel(draft.Channel{ID: "talk-id", Label: "talk", Description: "talks", Deployment: "crew"})
	d.AddChannel(draft.Channel{ID: "far-id", Label: "talk", Deployment: "guests"})
	must(t, d, topology.AddChannel{ID: "talk-id", With: "lead-id", Name: "talk"})
	must(t, d, topology.AddChannel{ID: "far-id", With: "x-id", Name: "talk"})
	must(t, d, topology.SetEdge{Creature: "lead-id", Channel: "talk-id", Direction: journal.Send, On: true, Alias: "out"})
	must(t, d, topology.SetEdge{Creature: "x-id", Channel: "far-id", Direction: journal.Send, On: true})
	for _, id := range []journal.CreatureID{"ann-id", "bob-id"} {
		must(t, d, topology.SetEdge{Creature: id, Channel: "talk-id", Direction: journal.Listen, On: true})
	}
	if _, _, err := d.AssignRoot(t.Context(), "lead-id"); err != nil {
		t.Fatal(err)
	}
	w.CarryOut(d)
	return w
}

func must(t testing.TB, d *draft.Draft, op topology.Op) {
	t.Helper()
	if _, err := d.Do(t.Context(), op); err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, w *drafttest.World, caller journal.CreatureID) *turn {
	return &turn{t: t, w: w, caller: caller}
}

// refused checks an error's code and text.
func refused(t testing.TB, err error, code abi.Code, says string) {
	t.Helper()
	var e *abi.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message+"; "+e.Remedy, says) {
		t.Errorf("got %v, want %v with %q", err, code, says)
	}
}
