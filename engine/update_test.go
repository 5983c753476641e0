package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// configured gives a member of the team a configuration.
func configured(i int, config string) func(*deploy.Deployment) {
	return func(d *deploy.Deployment) { d.Creatures[i].Config = json.RawMessage(config) }
}

// TestApplyingAgain changes one of three running creatures. Only that one gets another
// instance, and none loses a message.
func TestApplyingAgain(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(3))
	ids := []journal.CreatureID{a.Creatures["creature.m0"], a.Creatures["creature.m1"], a.Creatures["creature.m2"]}
	send := func(text string) {
		s.send(a.Channels["channel.c0"], text)
		s.wait()
	}
	send("one")
	if again := s.apply(team(3)); len(again.Changed)+len(again.Created)+len(again.Removed) > 0 || !cmp.Equal(again.Creatures, a.Creatures) {
		t.Errorf("applying the same recipe again returns %+v", again)
	}
	starts := []uint64{s.starts(ids[0]), s.starts(ids[1]), s.starts(ids[2])}
	edited := s.apply(team(3, configured(1, `{"v":1}`)))
	if want := []string{"creature.m1"}; !cmp.Equal(want, edited.Changed) || len(edited.Resumed) != 3 {
		t.Errorf("changed are %v of %v, want %v", edited.Changed, edited.Resumed, want)
	}
	send("two")
	starts[1]++
	for i, id := range ids {
		if got := s.starts(id); !fresh.Instances() && got != starts[i] {
			t.Errorf("m%d has had %d instances, want %d", i, got, starts[i])
		}
	}
	if got := s.state(ids[2], "heard"); got != "c2:one\nc2:two\n" {
		t.Errorf("heard: %q", got)
	}
	s.shut()
	s.open()
	if resumed := s.apply(team(3, configured(1, `{"v":1}`))); len(resumed.Created) > 0 || len(resumed.Changed) > 0 {
		t.Errorf("after a restart: %+v", resumed)
	}
}

// TestApplyingAgainChangesTheShape adds and removes what the recipe adds and removes, and keeps
// what callers have added and stopped.
func TestApplyingAgainChangesTheShape(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(3))
	m0, m2 := a.Creatures["creature.m0"], a.Creatures["creature.m2"]
	guest := s.add("guest", "record", func(c *deploy.CreatureSpec) { c.Join = s.graph(m0) })
	side := s.connect(m0, guest, "side")
	s.change(topology.SetStopped{ID: m2, Stopped: true})
	s.send(a.Channels["channel.c2"], "waits")
	s.wait()
	shorter := team(3, func(d *deploy.Deployment) {
		d.Creatures[1].Send = nil
		d.Creatures, d.Channels = d.Creatures[:2], d.Channels[:2]
		extra := spec("extra", "record")
		extra.Address, extra.Listen = "creature.extra", []deploy.WireSpec{{Channel: "channel.c1"}}
		d.Creatures = append(d.Creatures, extra)
	})
	plan, err := s.Plan(t.Context(), shorter)
	if err != nil {
		t.Fatal(err)
	}
	if p := planned(t, plan, "creature.m2"); p.Action != diff.PlanRemove || p.Buried != 1 {
		t.Errorf("the plan for m2 is %+v", p)
	}
	b := s.apply(shorter)
	if want := []engine.RemovedAddress{{Address: "creature.m2", Pending: 1}, {Address: "channel.c2"}}; !cmp.Equal(want, b.Removed) || !slices.Equal(b.Created, []string{"creature.extra"}) {
		t.Errorf("removed %+v, created %v", b.Removed, b.Created)
	}
	s.send(side, "hello")
	s.send(a.Channels["channel.c0"], "news")
	s.wait()
	if got := s.state(guest, "heard"); !strings.Contains(got, "side:hello\n") || !strings.Contains(got, "side:news\n") {
		t.Errorf("the guest heard %q", got)
	}
	if got := s.state(b.Creatures["creature.extra"], "heard"); got != "c1:news\n" {
		t.Errorf("the new creature heard %q", got)
	}
	s.change(topology.SetStopped{ID: m0, Stopped: true})
	s.apply(shorter)
	if c, _ := s.creature(m0); c.State != "stopped" {
		t.Errorf("the creature that was stopped is %s", c.State)
	}
}

// TestApplyingAgainIsAllOrNothing applies recipes that are refused, and checks that nothing
// changes.
func TestApplyingAgainIsAllOrNothing(t *testing.T) {
	s := newSaved(t, engine.Options{})
	elsewhere := func(d *deploy.Deployment) { d.Source.Path = "/other/team.hcl" }
	here := func(d *deploy.Deployment) { d.Source.Path = "/here/team.hcl" }
	a := s.apply(team(3, here))
	cage := &judge{kinds: []journal.PolicyKind{journal.JudgePlan}, judge: func(e *deploy.PolicyEvent) deploy.Decision {
		if !slices.Equal(e.Changed, []string{"creature.m1"}) {
			t.Errorf("the policy sees the changes %v, want only m1", e.Changed)
		}
		return deploy.Decision{Words: denial("not that one")}
	}}
	shape := s.shape()
	for _, test := range []struct {
		name string
		d    *deploy.Deployment
		code abi.Code
	}{
		{"another recipe of that name", team(3, elsewhere), abi.AlreadyExists},
		{"a module that does not start", team(3, here, func(d *deploy.Deployment) { d.Creatures[1].Wasm = []byte("nobody") }), abi.InvalidArgument},
		{"a policy denies", team(3, here, configured(1, `{"v":1}`), judgedBy(cage)), abi.Denied},
		{"an edge to nothing", team(3, here, configured(1, `{"v":2}`), func(d *deploy.Deployment) {
			d.Creatures[1].Outputs = []deploy.OutputSpec{{To: "creature.nobody"}}
		}), abi.NotFound},
	} {
		if _, err := s.Apply(t.Context(), test.d); abi.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want %v", test.name, err, test.code)
		}
		if diff := cmp.Diff(shape, s.shape()); diff != "" {
			t.Errorf("%s has changed (-before +after):\n%s", test.name, diff)
		}
	}
	s.send(a.Channels["channel.c0"], "still here")
	s.wait()
	if got := s.state(a.Creatures["creature.m2"], "heard"); got != "c2:still here\n" {
		t.Errorf("heard: %q", got)
	}
	if plan, err := s.Plan(t.Context(), team(3, here)); err != nil || !plan.Empty() {
		t.Errorf("the plan for what was applied has changes: %+v, %v", plan, err)
	}
}

// TestApplyingAgainWaitsForTurns changes a creature in the middle of a turn. The turn ends with
// the settings that it began with. A caller that stops waiting gets an error.
func TestApplyingAgainWaitsForTurns(t *testing.T) {
	s := newSaved(t, engine.Options{})
	began, let := make(chan struct{}, 1), make(chan struct{})
	s.host.on("slow", func(turn abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		began <- struct{}{}
		<-let
		config, _ := turn.Source(abi.SourceConfig)
		turn.StateSet([]byte("config"), config)
		return nil
	})
	slow := func(d *deploy.Deployment) { d.Creatures[0].Wasm = []byte("slow") }
	a := s.apply(team(2, slow, configured(0, `{"v":1}`)))
	s.send(a.Channels["channel.c0"], "go")
	<-began
	short, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := s.Apply(short, team(2, slow, configured(0, `{"v":2}`))); err == nil {
		t.Error("the recipe was applied during the turn")
	}
	done := make(chan error)
	go func() {
		_, err := s.Apply(t.Context(), team(2, slow, configured(0, `{"v":2}`)))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("the recipe was applied during the turn: %v", err)
	case let <- struct{}{}:
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	m0 := a.Creatures["creature.m0"]
	if got := s.state(m0, "config"); got != `{"v":1}` {
		t.Errorf("the turn has seen %s", got)
	}
	s.send(a.Channels["channel.c0"], "again")
	<-began
	let <- struct{}{}
	s.wait()
	if got := s.state(m0, "config"); got != `{"v":2}` {
		t.Errorf("the next turn has seen %s", got)
	}
}

// TestAModuleThatMovesWhileItsCreatureIsInATurn applies the same module at another path. The
// creature keeps its instance, and the session has the new path.
func TestAModuleThatMovesWhileItsCreatureIsInATurn(t *testing.T) {
	s := newSaved(t, engine.Options{})
	began, let := make(chan struct{}, 1), make(chan struct{})
	s.host.on("slow", func(_ abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			began <- struct{}{}
			<-let
		}
		return nil
	})
	at := func(path string) *deploy.Deployment {
		return team(2, func(d *deploy.Deployment) {
			d.Creatures[0].Module, d.Creatures[0].Wasm = path, []byte("slow")
		})
	}
	a := s.apply(at("slow.wasm"))
	m0 := a.Creatures["creature.m0"]
	s.send(a.Channels["channel.c0"], "go")
	<-began
	starts := s.starts(m0)
	type outcome struct {
		*engine.Applied
		error
	}
	done := make(chan outcome)
	go func() {
		applied, err := s.Apply(t.Context(), at("moved.wasm"))
		done <- outcome{applied, err}
	}()
	select {
	case <-done:
		t.Fatal("the recipe was applied during the turn")
	case let <- struct{}{}:
	}
	if got := <-done; got.error != nil || len(got.Changed) > 0 {
		t.Fatalf("applied: %+v", got)
	}
	if c, _ := s.creature(m0); c.Module != "moved.wasm" || s.starts(m0) != starts {
		t.Errorf("the module is %s after %d more starts", c.Module, s.starts(m0)-starts)
	}
	if p, err := s.Plan(t.Context(), at("moved.wasm")); err != nil || !p.Empty() {
		t.Errorf("the plan afterwards is %+v, %v", p, err)
	}
}

// TestApplyingAgainUnderLoad applies two recipes in turn while messages pass through the
// creatures: each arrives once, in order.
func TestApplyingAgainUnderLoad(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.apply(team(3))
	const rounds, each = 12, 20
	failed := make(chan error)
	go func() {
		var all error
		for i := range rounds {
			d := team(3, configured(i%3, fmt.Sprintf(`{"v":%d}`, i)))
			if i%4 == 3 {
				d.Creatures[1].Outputs = []deploy.OutputSpec{{To: "creature.m2", WithContent: true}}
			}
			_, err := s.Apply(t.Context(), d)
			all = errors.Join(all, err)
		}
		failed <- all
	}()
	var want strings.Builder
	for i := range rounds * each {
		s.send(a.Channels["channel.c0"], fmt.Sprint(i))
		fmt.Fprintf(&want, "c2:%d\n", i)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	s.wait()
	if diff := cmp.Diff(want.String(), s.state(a.Creatures["creature.m2"], "heard")); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}

// TestApplyingAgainEndsAQuarantine replaces the module of a creature in quarantine, which
// always failed. The creature continues with the delivery that it failed.
func TestApplyingAgainEndsAQuarantine(t *testing.T) {
	s := newSaved(t, engine.Options{})
	s.host.on("broken", func(_ abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
		}
		return nil
	})
	broken := func(d *deploy.Deployment) {
		d.Creatures[1].Wasm = []byte("broken")
		d.Creatures[1].Restart = deploy.RestartPolicy{Attempts: 5, Max: 1}
	}
	a := s.apply(team(2, broken))
	m1 := a.Creatures["creature.m1"]
	s.send(a.Channels["channel.c1"], "hard")
	s.wait()
	if c, _ := s.creature(m1); c.State != "quarantined" {
		t.Fatalf("the creature is %s, want quarantined", c.State)
	}
	if b := s.apply(team(2)); !slices.Equal(b.Changed, []string{"creature.m1"}) {
		t.Errorf("changed are %v", b.Changed)
	}
	s.wait()
	if got := s.state(m1, "heard"); got != "c1:hard\n" {
		t.Errorf("heard: %q", got)
	}
}

// TestPoliciesJudgeChannelsThatNoRecipeDeclares sends on a channel that was made while a policy
// judges all sends: with that policy, without it, and with it again.
func TestPoliciesJudgeChannelsThatNoRecipeDeclares(t *testing.T) {
	s := newSaved(t, engine.Options{})
	strict := &judge{kinds: []journal.PolicyKind{journal.JudgeSend}, send: func(*deploy.SendEvent) deploy.SendDecision {
		return deploy.SendDecision{Words: denial("silence")}
	}}
	a := s.apply(team(2, judgedBy(strict)))
	made := s.connect(a.Creatures["creature.m0"], a.Creatures["creature.m1"], "made")
	send := func() error {
		_, err := s.Send(t.Context(), made, engine.Outgoing{Payload: []byte("psst")})
		return err
	}
	if err := send(); abi.CodeOf(err) != abi.Denied {
		t.Errorf("sending on a new channel: %v, want denied", err)
	}
	s.apply(team(2))
	if err := send(); err != nil {
		t.Errorf("sending without the policy: %v", err)
	}
	s.apply(team(2, judgedBy(strict)))
	if err := send(); abi.CodeOf(err) != abi.Denied {
		t.Errorf("sending with the policy again: %v, want denied", err)
	}
}

// TestAPlanForWhatRunsSaysWhatApplyThenDoes is TestAPlanSaysWhatApplyThenDoes
// without a restart in between.
func TestAPlanForWhatRunsSaysWhatApplyThenDoes(t *testing.T) {
	for seed := range seeds(t, planSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { livePlanProgram(t, seed) })
	}
}

func livePlanProgram(t *testing.T, seed uint64) {
	r := newDrafts(seed)
	s := newSaved(t, engine.Options{})
	old := []*deploy.Deployment{r.deployment("d0", true), r.deployment("d1", true)}
	for _, d := range old {
		s.apply(d)
	}
	r.disturb(s, r.IntN(12), true)
	s.wait()
	var edited []*deploy.Deployment
	for _, d := range old {
		edited = append(edited, r.edit(d, true))
	}
	before := engine.Rows(s.Engine)
	plan, perr := s.Plan(t.Context(), edited...)
	starts := map[journal.CreatureID]uint64{}
	for _, id := range allCreatures(s) {
		starts[id] = s.starts(id)
	}
	applied, err := s.ApplyAll(t.Context(), edited...)
	if err != nil {
		if perr == nil || perr.Error() != err.Error() {
			t.Fatalf("Apply returns %v, but Plan returned %v", err, perr)
		}
		return
	}
	if perr != nil {
		t.Fatalf("the plan failed: %v", perr)
	}
	s.wait()
	if diff := cmp.Diff(shapeOf(compare(before, engine.Rows(s.Engine))), shapeOf(plan)); diff != "" {
		t.Errorf("what Apply did (-), and what was planned (+):\n%s", diff)
	}
	for i, a := range applied {
		for _, address := range a.Resumed {
			id := a.Creatures[address]
			if slices.Contains(a.Changed, address) != changes(plan, edited[i].Name, address, "module", "sha256", "config") {
				t.Errorf("%s of %s: changed are %v, and the plan has %+v", address, edited[i].Name, a.Changed, plan.Creatures)
			}
			if !slices.Contains(a.Changed, address) && s.starts(id) != starts[id] && !fresh.Instances() && !changes(plan, edited[i].Name, address, "stopped") {
				t.Errorf("%s of %s was not changed, but has another instance", address, edited[i].Name)
			}
		}
	}
	nothingLeft(t, s, edited)
}

// changes reports whether a plan makes one of the given changes to a creature.
func changes(p *diff.Plan, deployment, address string, what ...string) bool {
	for _, c := range p.Creatures {
		if c.Deployment == deployment && c.Address == address {
			return slices.ContainsFunc(c.Changes, func(ch diff.PlanChange) bool {
				return slices.Contains(what, ch.What)
			})
		}
	}
	return false
}

func allCreatures(s *saved) []journal.CreatureID {
	all, _ := members(s)
	return all
}
