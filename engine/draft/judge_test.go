package draft_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/draft/drafttest"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// judge is a policy that records its events and returns preset decisions.
type judge struct {
	kinds  []journal.PolicyKind // nil: all
	asked  []deploy.PolicyEvent
	answer func(*deploy.PolicyEvent) deploy.Decision
}

func (p *judge) Judges(kind journal.PolicyKind) bool {
	for _, k := range p.kinds {
		if k == kind {
			return true
		}
	}
	return p.kinds == nil
}

func (p *judge) JudgesSend(string) bool { return false }

func (p *judge) Send(context.Context, *deploy.SendEvent) deploy.SendDecision {
	return deploy.SendDecision{}
}

func (p *judge) Judge(_ context.Context, ev *deploy.PolicyEvent) deploy.Decision {
	p.asked = append(p.asked, *ev)
	if p.answer == nil {
		return deploy.Decision{}
	}
	return p.answer(ev)
}

func (p *judge) kindsAsked() string {
	var out []string
	for _, ev := range p.asked {
		out = append(out, string(ev.Kind))
	}
	return strings.Join(out, " ")
}

func denied() deploy.Words {
	return deploy.Words{Denials: []deploy.Verdict{{Policy: "strict", Reason: "no", Where: "team.hcl:7"}}, Audits: []deploy.Verdict{{Policy: "watch"}}, Warnings: []deploy.Verdict{{Policy: "mild"}}}
}

// judgedTeam is team with a policy, and a separate graph with x, of the
// deployment other: both have a channel named talk.
func judgedTeam(t *testing.T) (*drafttest.World, *judge) {
	t.Helper()
	w, p := team(t), &judge{}
	changed(t, w, func(d *draft.Draft) {
		add(t, d, "other", topology.AddCreature{ID: "x", Name: "x"})
		channel(t, d, "other", topology.AddChannel{ID: "talk2", With: "x", Name: "talk"})
		do(t, d, on("x", "talk2", journal.Send))
	})
	w.Applied["team"].Policy = p
	w.Clock = 1000
	return w, p
}

func wire(w journal.OutputWire) func(context.Context, *draft.Draft) error {
	return func(ctx context.Context, d *draft.Draft) error { _, err := d.AddWire(ctx, w); return err }
}

func op(op topology.Op) func(context.Context, *draft.Draft) error {
	return func(ctx context.Context, d *draft.Draft) error { _, err := d.Do(ctx, op); return err }
}

// judgedSteps lists steps, each with the events that the policy of team gets
// and the content of the first one.
var judgedSteps = map[string]struct {
	step  func(context.Context, *draft.Draft) error
	kinds string
	check func(ev *deploy.PolicyEvent) bool
}{
	"spawn": {func(ctx context.Context, d *draft.Draft) error {
		return spawned(ctx, d, draft.Kind{Deployment: "team", Species: "ant"}, topology.AddCreature{ID: "kid", Name: "kid", Parent: "a", Edges: []topology.Wire{{Channel: "talk", Direction: journal.Listen}, {Channel: "glue", Direction: journal.Send}}}, 0)
	}, "spawn", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "add_creature" && ev.Creature.Name == "kid" && ev.Creature.Species == "ant" && ev.Parent.Name == "a" && ev.Alive == 0 && ev.Graph != "" &&
			reflect.DeepEqual(ev.Listen, []string{"talk"}) && reflect.DeepEqual(ev.Send, []string{"glue"})
	}},
	"remove": {op(topology.RemoveCreature{ID: "b", With: []journal.CreatureID{"a"}}), "remove", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "remove_creature" && ev.Creature.ID == "b" && ev.Creature.Address == "creature.b" && reflect.DeepEqual(ev.Workers, []string{"a"})
	}},
	"connect": {op(topology.Connect{From: "b", To: "a", Name: "back"}), "connect", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "connect" && ev.From.ID == "b" && ev.To.ID == "a" && ev.Channel.Name == "back"
	}},
	"an edge on": {op(on("a", "talk", journal.Listen)), "connect", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "set_listen" && ev.From.ID == "" && ev.To.ID == "a" && ev.Channel.ID == "talk" && ev.Channel.Deployment == "team"
	}},
	"an edge off": {op(topology.SetEdge{Creature: "a", Channel: "talk", Direction: journal.Send}), "disconnect", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "set_send" && ev.From.ID == "a" && ev.To.ID == ""
	}},
	"disconnect": {op(topology.Disconnect{From: "a", To: "b"}), "disconnect", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "disconnect" && ev.From.ID == "a" && ev.To.ID == "b"
	}},
	"a channel": {op(topology.RemoveChannel{ID: "talk"}), "disconnect", func(ev *deploy.PolicyEvent) bool { return ev.Call == "remove_channel" && ev.Channel.Name == "talk" }},
	"merge": {op(topology.Connect{From: "a", To: "x"}), "connect merge", func(ev *deploy.PolicyEvent) bool {
		return ev.From.ID == "a" && ev.To.Deployment == "other"
	}},
	"merge by an edge": {op(on("x", "talk", journal.Listen)), "connect merge", func(ev *deploy.PolicyEvent) bool { return ev.To.ID == "x" }},
	"split":            {op(topology.SetEdge{Creature: "lead", Channel: "glue", Direction: journal.Send}), "disconnect split", func(ev *deploy.PolicyEvent) bool { return ev.From.ID == "lead" }},
	"a wire": {wire(journal.OutputWire{From: "a", To: "b"}), "wire", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "wire" && ev.Added && ev.From.ID == "a" && ev.To.ID == "b" && ev.Wire.To == "b"
	}},
	"no wire": {func(ctx context.Context, d *draft.Draft) error { _, err := d.RemoveWire(ctx, "known"); return err }, "wire", func(ev *deploy.PolicyEvent) bool {
		return ev.Call == "unwire" && !ev.Added && ev.Wire.ID == "known"
	}},
	"a root":          {func(ctx context.Context, d *draft.Draft) error { _, _, err := d.AssignRoot(ctx, "a"); return err }, "", nil},
	"start":           {op(topology.SetStopped{ID: "a"}), "", nil},
	"an empty spawn":  {op(topology.AddCreature{ID: "z", Name: "z"}), "", nil}, // not registered with the draft
	"a loose channel": {op(topology.AddChannel{ID: "z", With: "a", Name: "z"}), "", nil},
}

func knownWire(w *drafttest.World) {
	m := w.Members["b"]
	m.Wires = []journal.OutputWire{{ID: "known", From: "b", To: "a", Order: 1}}
	w.Members["b"] = m
}

func TestWhatPoliciesAreAsked(t *testing.T) {
	for name, c := range judgedSteps {
		t.Run(name, func(t *testing.T) {
			w, p := judgedTeam(t)
			knownWire(w)
			d := w.Draft(draft.Options{Caller: deploy.Party{ID: "lead", Deployment: "team"}})
			defer d.Undo()
			d.Calling("")
			if err := c.step(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if got := p.kindsAsked(); got != c.kinds {
				t.Fatalf("asked about %q, want %q", got, c.kinds)
			}
			for i := range p.asked {
				ev := &p.asked[i]
				if ev.Deployment != "team" || ev.Caller.ID != "lead" || ev.Time != 1000 || ev.Graph == "" {
					t.Errorf("asked %+v", ev)
				}
			}
			if c.check != nil && !c.check(&p.asked[0]) {
				t.Errorf("asked %+v", p.asked[0])
			}
		})
	}
}

func TestADenialLeavesNothing(t *testing.T) {
	for name, c := range judgedSteps {
		kinds := strings.Fields(c.kinds)
		for _, kind := range kinds {
			t.Run(name+" "+kind, func(t *testing.T) {
				w, p := judgedTeam(t)
				knownWire(w)
				p.answer = func(ev *deploy.PolicyEvent) deploy.Decision {
					if string(ev.Kind) != kind {
						return deploy.Decision{Words: deploy.Words{Audits: []deploy.Verdict{{Policy: "before"}}}}
					}
					return deploy.Decision{Words: denied()}
				}
				d, before := w.Draft(draft.Options{Now: 5}), w.Topo.Snapshot()
				d.Calling("group_tool")
				e := code(t, c.step(t.Context(), d), abi.Denied)
				if e.Op != "group_tool" || e.IDs["policy"] != "strict" || e.IDs["event"] != kind || e.IDs["where"] != "team.hcl:7" || !strings.Contains(e.Message, "was denied: policy strict (team.hcl:7): no") {
					t.Errorf("%+v", e)
				}
				if !reflect.DeepEqual(w.Topo.Snapshot(), before) {
					t.Error("the topology has changed")
				}
				sealed := d.Seal()
				if len(sealed.Deltas)+len(sealed.Wires.Lists)+len(sealed.Wires.Notes) > 0 || len(d.WiresOf("a")) != 0 || len(d.WiresOf("b")) != 1 {
					t.Errorf("left is %+v", sealed)
				}
				var effects []string
				for _, word := range d.Refused() {
					effects = append(effects, string(word.Effect))
				}
				want := []string{string(journal.PolicyDenied), string(journal.PolicyAudit), string(journal.PolicyWarning)}
				switch {
				case kind == "split": // judged after its step, whose word stands
					if len(sealed.Words) != 1 {
						t.Errorf("words are %+v", sealed.Words)
					}
				case kind == "merge": // judged together with its step
					want = []string{string(journal.PolicyDenied), string(journal.PolicyAudit), string(journal.PolicyAudit), string(journal.PolicyWarning)}
				case kinds[len(kinds)-1] == "merge":
					want = append(want, string(journal.PolicyAudit))
				}
				if !reflect.DeepEqual(effects, want) {
					t.Errorf("refused words are %v, want %v", effects, want)
				}
				if len(w.Said) != len(p.asked) {
					t.Errorf("%d words were heard of %d", len(w.Said), len(p.asked))
				}
			})
		}
	}
}

func TestAMergeTellsAndSettlesNames(t *testing.T) {
	w, p := judgedTeam(t)
	p.kinds = []journal.PolicyKind{journal.JudgeMerge}
	settle := func(how deploy.Collision) func(*deploy.PolicyEvent) deploy.Decision {
		return func(*deploy.PolicyEvent) deploy.Decision {
			return deploy.Decision{Settle: map[string]deploy.Collision{"talk": how}}
		}
	}
	for what, how := range map[string]deploy.Collision{"unify": deploy.Unify, "rename": deploy.Rename} {
		p.answer = settle(how)
		d := w.Draft(draft.Options{})
		delta, err := d.Do(t.Context(), topology.Connect{From: "a", To: "x", Name: "bridge"})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(delta.Unified); (how == deploy.Unify) != (got == 1) {
			t.Errorf("%s: unified %+v, renamed %+v", what, delta.Unified, delta.Renamed)
		}
		d.Undo()
	}
	ev := p.asked[0]
	if len(ev.Graphs) != 2 || ev.Graph != ev.Graphs[0].ID || ev.Graph != w.Topo.GraphOf("a") || len(ev.Graphs[0].Creatures) != 3 {
		t.Errorf("the graphs are %+v", ev.Graphs)
	}
	if want := []deploy.NameCollision{{Kind: deploy.NameOfChannel, Name: "talk"}}; !reflect.DeepEqual(ev.Collisions, want) {
		t.Errorf("the collisions are %v", ev.Collisions)
	}
	// If there are several deployments, the survivor's decides.
	second := &judge{answer: settle(deploy.Rename)}
	w.Applied["other"] = &deploy.Deployment{Name: "other", Policy: second}
	p.answer = settle(deploy.Unify)
	d := w.Draft(draft.Options{})
	defer d.Undo()
	if delta := do(t, d, on("x", "talk", journal.Listen)); len(delta.Unified) != 1 || !strings.Contains(second.kindsAsked(), "merge") {
		t.Errorf("%+v, the other was asked about %s", delta, second.kindsAsked())
	}
}

func TestASplitTellsItsParts(t *testing.T) {
	w, p := judgedTeam(t)
	p.kinds = []journal.PolicyKind{journal.JudgeSplit}
	d := w.Draft(draft.Options{})
	defer d.Undo()
	do(t, d, topology.SetEdge{Creature: "lead", Channel: "glue", Direction: journal.Send})
	if len(p.asked) != 1 || !reflect.DeepEqual(p.asked[0].Parts, [][]string{{"a", "b"}, {"lead"}}) {
		t.Errorf("asked %+v", p.asked)
	}
}

func TestPlansAreJudgedAsAWhole(t *testing.T) {
	w, p := judgedTeam(t)
	for name, kinds := range map[string][]journal.PolicyKind{"asked": nil, "not asked": {journal.JudgeSpawn}} {
		p.kinds, p.asked = kinds, nil
		next := &deploy.Deployment{Name: "team", Policy: p, Predicates: map[string]deploy.Predicate{"big": nil}}
		d := w.Draft(draft.Options{Applying: next})
		if d.Deployment("team") != next || d.Deployment("other") != nil {
			t.Error("the deployment that is applied is not the one that counts")
		}
		do(t, d, topology.Disconnect{From: "a", To: "b"})
		if len(p.asked) != 0 {
			t.Errorf("%s: a step of a plan is judged: %+v", name, p.asked)
		}
		p.answer = func(*deploy.PolicyEvent) deploy.Decision { return deploy.Decision{Words: denied()} }
		err := d.JudgePlan(t.Context(), deploy.PolicyEvent{PlannedChanges: deploy.PlannedChanges{Created: []string{"creature.z"}}}, "lead")
		if kinds == nil {
			code(t, err, abi.Denied)
			if ev := p.asked[0]; ev.Kind != journal.JudgePlan || ev.Call != "apply" || ev.Graph != w.Topo.GraphOf("lead") || len(ev.Created) != 1 {
				t.Errorf("asked %+v", ev)
			}
		} else if err != nil {
			t.Error(err)
		}
		d.Undo()
	}
	p.kinds, p.asked = nil, nil
	d := w.Draft(draft.Options{Unjudged: true})
	defer d.Undo()
	do(t, d, topology.Disconnect{From: "a", To: "b"})
	if len(p.asked) != 0 {
		t.Error("what is brought back is judged")
	}
}

func TestMemoriesAreGivenOncePerHome(t *testing.T) {
	w, p := judgedTeam(t)
	p.answer = func(ev *deploy.PolicyEvent) deploy.Decision {
		n := string(ev.Memory.Recall("count")) + "."
		ev.Memory.Remember("count", []byte(n))
		return deploy.Decision{}
	}
	d := w.Draft(draft.Options{})
	defer d.Undo()
	do(t, d, topology.Connect{From: "b", To: "a"}, topology.Connect{From: "a", To: "lead"})
	for _, id := range []journal.CreatureID{"n1", "n2"} {
		add(t, d, "team", topology.AddCreature{ID: id, Name: string(id)})
	}
	graph := w.Topo.GraphOf("a")
	want := []draft.Home{{Graph: graph}, {Creature: "n1"}, {Creature: "n2"}}
	if !reflect.DeepEqual(w.Given, want) || len(d.Memories()) != 3 {
		t.Errorf("memories were given for %v, want %v", w.Given, want)
	}
	if got := d.Memories()[draft.Home{Graph: graph}].Of("team").Recall("count"); string(got) != ".." {
		t.Errorf("remembered is %s", got)
	}
	if got := (draft.Home{Creature: "n1"}).After(w.Topo); got != w.Topo.GraphOf("n1") || got == "" {
		t.Errorf("n1 is at home in %s", got)
	}
	if got := (draft.Home{Graph: graph}).After(w.Topo); got != graph {
		t.Errorf("the graph has become %s", got)
	}
}

func TestPoliciesHaveTwoSecondsPerDraft(t *testing.T) {
	w, p := judgedTeam(t)
	p.answer = func(*deploy.PolicyEvent) deploy.Decision {
		w.Clock += int64(900 * time.Millisecond)
		return deploy.Decision{}
	}
	d := w.Draft(draft.Options{Now: 1})
	defer d.Undo()
	for range 3 {
		do(t, d, topology.Connect{From: "b", To: "a"})
	}
	_, err := d.Do(t.Context(), topology.Connect{From: "b", To: "a"})
	e := code(t, err, abi.Denied)
	if len(p.asked) != 3 || !strings.Contains(e.Message, "the policies take longer than 2s for this operation") || !d.Refused()[0].Failed {
		t.Errorf("asked %d times: %s", len(p.asked), e.Message)
	}
	fresh := w.Draft(draft.Options{Now: 1})
	defer fresh.Undo()
	do(t, fresh, topology.Connect{From: "b", To: "a"})
}

func TestAnInterruptedPolicyHasNotDenied(t *testing.T) {
	w, p := judgedTeam(t)
	gone := errors.New("the caller has gone")
	d, before := w.Draft(draft.Options{}), w.Topo.Snapshot()
	defer d.Undo()
	p.answer = func(*deploy.PolicyEvent) deploy.Decision { return deploy.Decision{Words: denied()} }
	_, err := d.Do(t.Context(), topology.Connect{From: "b", To: "a"})
	code(t, err, abi.Denied)
	known := len(d.Refused())
	ctx, cancel := context.WithCancelCause(t.Context())
	p.answer = func(*deploy.PolicyEvent) deploy.Decision {
		cancel(gone)
		return deploy.Decision{Words: denied()}
	}
	_, err = d.Do(ctx, topology.Connect{From: "b", To: "a"})
	if code(t, err, abi.Unavailable); !errors.Is(err, gone) {
		t.Errorf("%v does not say why", err)
	}
	if got := d.Refused(); len(got) != known || len(d.Seal().Words) != 0 {
		t.Errorf("noted are %+v", got[known:])
	}
	if !reflect.DeepEqual(w.Topo.Snapshot(), before) {
		t.Error("the topology has changed")
	}
}
