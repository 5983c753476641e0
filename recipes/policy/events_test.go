package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// memory is the memory of policies in a test.
type memory map[string]string

func (m memory) Recall(policy string) []byte {
	if v, ok := m[policy]; ok {
		return []byte(v)
	}
	return nil
}

func (m memory) Remember(policy string, value []byte) {
	if value == nil {
		delete(m, policy)
		return
	}
	m[policy] = string(value)
}

// happening returns an event of a kind with all fields set.
func happening(kind journal.PolicyKind, m memory) *deploy.PolicyEvent {
	ann := deploy.Party{ID: "c1", Name: "ann", Address: "creature.ann", Species: "scribe", Deployment: "team"}
	bob := deploy.Party{ID: "c2", Name: "bob", Address: "creature.bob", Deployment: "team"}
	view := &deploy.GraphView{ID: "g1",
		Creatures: []deploy.CreatureView{
			{ID: "c1", Name: "ann", Species: "scribe", State: "running", Parent: "bob"},
			{ID: "c2", Name: "bob", State: "stopped", Privileged: true},
		},
		Channels: []deploy.ChannelView{{ID: "k1", Name: "work", Listeners: []string{"ann"}, Senders: []string{"bob"}}},
	}
	e := &deploy.PolicyEvent{
		Kind: kind, Time: 1_700_000_000_000_000_000, Seed: 7, Graph: "g1", Deployment: "team", Call: "some_call", Caller: bob,
		Creature: ann, Module: "builtin:echo", Parent: bob, Listen: []string{"work"}, Send: []string{}, Alive: 2, Workers: []string{"w"},
		From: ann, To: bob, Channel: deploy.PolicyChannel{ID: "k1", Name: "work", Address: "channel.work"},
		Wire: &journal.OutputWire{Name: "digest", WithContent: true}, Added: true, Graphs: []*deploy.GraphView{view, {ID: "g2"}},
		Collisions: []deploy.NameCollision{{Kind: "channel", Name: "work"}}, Parts: [][]string{{"ann"}, {"bob"}},
		Called:         deploy.Called{Tool: "group_status", Arguments: []byte(`{"a":1}`)},
		FailedTurn:     deploy.FailedTurn{Code: "trapped", Error: "unreachable", Delivery: "message", Attempt: 1, Attempts: 3, Failures: 4},
		PlannedChanges: deploy.PlannedChanges{Created: []string{"creature.ann"}, Resumed: []string{}, Removed: []string{"creature.old"}},
	}
	e.View = func() *deploy.GraphView { return view }
	if m != nil {
		e.Memory = m
	}
	return e
}

// describeDecision writes a decision as one line, for comparison.
func describeDecision(d deploy.Decision) string {
	parts := []string{}
	if text := describeSend(deploy.SendDecision{Words: d.Words}); text != "" {
		parts = append(parts, text)
	}
	if d.Ruling != deploy.RuleNothing {
		parts = append(parts, fmt.Sprintf("rule %s by %s %s %q", d.Ruling, d.By.Policy, d.By.Where, d.By.Reason))
	}
	if d.Settle != nil {
		parts = append(parts, fmt.Sprint("settle ", d.Settle))
	}
	return strings.Join(parts, "; ")
}

func TestDecisionsOnOtherEvents(t *testing.T) {
	for _, c := range []struct {
		name   string
		on     journal.PolicyKind
		script string
		policy Policy
		want   string
	}{
		{"deny", journal.JudgeSpawn, "(e) =>\n deny(`no ${e.species}`)", Policy{}, `deny p0 team.hcl:11 "no scribe"`},
		{"audit", journal.JudgeSpawn, `() => deny("x")`, Policy{Audit: true}, `audit p0 team.hcl:10 "x"`},
		{"exception", journal.JudgeMerge, `() => { throw new ReferenceError("nope is not defined"); }`, Policy{}, `deny p0 team.hcl:10 "ReferenceError: nope is not defined"`},
		{"species", journal.JudgeSpawn, `(e, c) => deny(c.graph.creatures({species: e.species}).map(k => k.name).join() + c.graph.creatures().length + c.graph.channels({name: "work"})[0].senders + c.graph.id)`,
			Policy{}, `deny p0 team.hcl:10 "ann2bobg1"`},
		{"unknown filter", journal.JudgeSpawn, `(e, c) => deny(c.graph.creatures({specie: "x"}))`, Policy{}, `deny p0 team.hcl:10 "TypeError: there is no field \"specie\" to filter by"`},
		{"the graph is read-only", journal.JudgeSpawn, `(e, c) => { c.graph.creatures()[0].name = "eve"; }`, Policy{}, `deny p0 team.hcl:10 "TypeError: Cannot assign to read only property 'name'"`},
		{"lists are read-only", journal.JudgeSpawn, `(e, c) => { e.listen.push("x"); }`, Policy{}, `deny p0 team.hcl:10 "TypeError: Cannot add property 1, object is not extensible"`},
		{"a merge settled", journal.JudgeMerge, `(e) => patch({names: {[e.collisions[0].name]: "unify"}})`, Policy{Mode: Mutate}, `settle map[work:1]`},
		{"a merge settled wrongly", journal.JudgeMerge, `(e) => patch({names: {work: "join"}})`, Policy{Mode: Mutate}, `deny p0 team.hcl:10 "TypeError: patch: work is neither \"rename\" nor \"unify\""`},
		{"a merge settled by a validator", journal.JudgeMerge, `(e) => patch({names: {work: "unify"}})`, Policy{}, `deny p0 team.hcl:10 "patch() needs mode = \"mutate\""`},
		{"a merge has no payload", journal.JudgeMerge, `(e) => patch({payload: ""})`, Policy{Mode: Mutate}, `deny p0 team.hcl:10 "patch takes names for a merge, request for a capability, and payload, base64 and headers for a message"`},
		{"patch elsewhere", journal.JudgeSpawn, `(e) => patch({payload: ""})`, Policy{}, `deny p0 team.hcl:10 "patch() cannot be used on the event spawn"`},
		{"drop elsewhere", journal.JudgeTool, `(e) => drop("x")`, Policy{}, `deny p0 team.hcl:10 "drop() cannot be used on the event tool"`},
		{"restart elsewhere", journal.JudgeTool, `(e) => restart()`, Policy{}, `deny p0 team.hcl:10 "restart() cannot be used on the event tool"`},
		{"restart", journal.JudgeFail, `(e) => restart("try")`, Policy{}, `rule restart by p0 team.hcl:10 "try"`},
		{"drop", journal.JudgeFail, `(e) => drop(e.code)`, Policy{}, `rule drop by p0 team.hcl:10 "trapped"`},
		{"quarantine", journal.JudgeFail, `(e) => e.failures > 3 ? quarantine("again") : undefined`, Policy{}, `rule quarantine by p0 team.hcl:10 "again"`},
		{"audited ruling", journal.JudgeFail, `(e) => drop("x")`, Policy{Audit: true}, `audit p0 team.hcl:10 "would have called drop(x)"`},
		{"deny a failure", journal.JudgeFail, `(e) => deny("x")`, Policy{}, `warn p0 team.hcl:10 "deny() cannot be used on the event fail, because the failure has already happened"`},
		{"fail to judge a failure", journal.JudgeFail, `(e) => { throw new ReferenceError("nope is not defined"); }`, Policy{}, `warn p0 team.hcl:10 "ReferenceError: nope is not defined"`},
		{"another species", journal.JudgeSpawn, `() => deny("x")`, Policy{Species: []string{"clerk"}}, ``},
		{"its species", journal.JudgeSpawn, `() => deny("x")`, Policy{Species: []string{"scribe"}}, `deny p0 team.hcl:10 "x"`},
		{"its caller", journal.JudgeTool, `() => deny("x")`, Policy{Creatures: []string{"creature.bob"}}, `deny p0 team.hcl:10 "x"`},
		{"another channel", journal.JudgeConnect, `() => deny("x")`, Policy{Channels: []string{"channel.other"}}, ``},
		{"match false", journal.JudgeConnect, `() => deny("x")`, Policy{MatchEvent: func(*deploy.PolicyEvent) (bool, error) { return false, nil }}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.policy.Source, c.policy.On = c.script, c.on
			s := set(t, c.policy)
			for range 2 {
				if got := describeDecision(s.Judge(t.Context(), happening(c.on, memory{}))); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

func TestTheSternestRulingHolds(t *testing.T) {
	s := set(t, Policy{On: journal.JudgeFail, Source: `() => restart()`}, Policy{On: journal.JudgeFail, Source: `() => quarantine("enough")`}, Policy{On: journal.JudgeFail, Source: `() => drop()`})
	if got, want := describeDecision(s.Judge(t.Context(), happening(journal.JudgeFail, nil))), `rule quarantine by p1 team.hcl:10 "enough"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The tables of events and answers are complete.
func TestOccasionsAndAnswers(t *testing.T) {
	var occasions []journal.PolicyKind
	for _, o := range Occasions {
		occasions = append(occasions, o.Kind)
		if o.Doc == "" {
			t.Errorf("nothing is said of %s", o.Kind)
		}
	}
	if !slices.Equal(occasions, journal.PolicyKinds()) {
		t.Errorf("the occasions are %v, want %v", occasions, journal.PolicyKinds())
	}
	for _, a := range Answers {
		if name, _, _ := strings.Cut(a.Call, "("); name != string(a.kind) || a.On == "" || a.Doc == "" {
			t.Errorf("the answer %+v is not described", a)
		}
	}
	for _, members := range [][]Member{SendFields, ContextFields} {
		for _, m := range members {
			if m.Doc == "" {
				t.Errorf("nothing is said of %s", m.Name)
			}
		}
	}
	for _, f := range Fields {
		if f.Doc == "" {
			t.Errorf("nothing is said of %s", f.Name)
		}
	}
}

// A script can read every field of a message and of ctx in the tables.
func TestMembers(t *testing.T) {
	e := event("\xff") // not text, so that it has base64
	e.Memory, e.View = memory{}, func() *deploy.GraphView { return &deploy.GraphView{} }
	for _, object := range []struct {
		name    string
		members []Member
	}{{"event", SendFields}, {"ctx", ContextFields}} {
		for _, m := range object.members {
			s := set(t, Policy{Source: fmt.Sprintf(`(event, ctx) => { if (%s.%s === undefined) return deny("missing"); }`, object.name, m.Name)})
			if len(s.Send(t.Context(), e).Denials) > 0 {
				t.Errorf("%s has no %s", object.name, m.Name)
			}
		}
	}
}

// Every field of every kind of event can be read, and has the type in the table.
func TestFields(t *testing.T) {
	for _, kind := range journal.PolicyKinds() {
		if kind == journal.JudgeSend {
			continue
		}
		s := set(t, Policy{On: kind, Source: `(e) => warn(JSON.stringify(Object.keys(e).map(k => [k, Array.isArray(e[k]) ? "array" : typeof e[k]])))`})
		d := s.Judge(t.Context(), happening(kind, nil))
		var got [][2]string
		if err := json.Unmarshal([]byte(strings.TrimSuffix(d.Warnings[0].Reason, "…")), &got); err != nil {
			t.Fatalf("%s: %v in %s", kind, err, d.Warnings[0].Reason)
		}
		types := map[FieldType][]string{Text: {"string"}, Number: {"number"}, Flag: {"boolean"}, Texts: {"array"}, Data: {"array", "object"}}
		for i, name := range keysByKind[kind] {
			if got[i][0] != name || !slices.Contains(types[fieldsByKind[kind][name].Type], got[i][1]) {
				t.Errorf("%s: the field %d is %v, want %s of type %s", kind, i, got[i], name, fieldsByKind[kind][name].Type)
			}
		}
	}
}

func TestState(t *testing.T) {
	for _, c := range []struct{ name, script, want, kept string }{
		{"counts", `(e, c) => { c.state.n = (c.state.n || 0) + 1; return warn(c.state.n); }`, `warn p0 team.hcl:10 "3"`, `{"n":3}`},
		{"is replaced", `(e, c) => { c.state = [1, 2]; }`, ``, `[1,2]`},
		{"is left alone", `(e, c) => { return warn(JSON.stringify(c.state)); }`, `warn p0 team.hcl:10 "{}"`, ``},
		{"is forgotten", `(e, c) => { c.state = undefined; }`, ``, ``},
		{"is no JSON", `(e, c) => { c.state = () => 1; }`, `deny p0 team.hcl:10 "ctx.state is not a JSON value"`, ``},
		{"refers to itself", `(e, c) => { c.state.me = c.state; }`, `deny p0 team.hcl:10 "TypeError: Converting circular structure to JSON"`, ``},
		{"is too large", `(e, c) => { c.state.x = 'x'.repeat(20000); }`, `deny p0 team.hcl:10 "ctx.state has 20008 bytes; at most 16384 are kept"`, ``},
		{"is not kept by an exception", `(e, c) => { c.state.n = 1; throw new ReferenceError("nope is not defined"); }`, `deny p0 team.hcl:10 "ReferenceError: nope is not defined"`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{}
			s := set(t, Policy{On: journal.JudgeSpawn, Source: c.script})
			var got string
			for range 3 {
				got = describeDecision(s.Judge(t.Context(), happening(journal.JudgeSpawn, m)))
			}
			if got != c.want || m["spawn.p0"] != c.kept {
				t.Errorf("got  %s, kept %s\nwant %s, kept %s", got, m["spawn.p0"], c.want, c.kept)
			}
		})
	}
}

func TestStateOfSends(t *testing.T) {
	s := set(t, Policy{Source: `(e, c) => { c.state.n = (c.state.n || 0) + 1; if (c.state.n > 2) return deny("enough"); }`})
	m := memory{}
	for i := range 4 {
		e := event("x")
		e.Memory = m
		if denied := len(s.Send(t.Context(), e).Denials) > 0; denied != (i >= 2) {
			t.Errorf("message %d: denied is %v", i, denied)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, c := range []struct {
		name   string
		policy Policy
	}{
		{"undefined", Policy{Source: `(e) => { if (e.species === "other") return deny("x"); }`}},
		{"deny", Policy{Source: `(e) => deny(e.species)`}},
		{"state", Policy{Source: `(e, c) => { c.state.n = (c.state.n || 0) + 1; }`}},
		{"graph", Policy{Source: `(e, c) => { if (c.graph.creatures({species: e.species}).length > 8) return deny("x"); }`}},
		{"match=false", Policy{Source: `(e) => deny("x")`, MatchEvent: func(*deploy.PolicyEvent) (bool, error) { return false, nil }}},
		{"species=other", Policy{Source: `(e) => deny("x")`, Species: []string{"other"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.policy.On = journal.JudgeSpawn
			s, e := set(b, c.policy), happening(journal.JudgeSpawn, memory{})
			b.ReportAllocs()
			for b.Loop() {
				s.Judge(b.Context(), e)
			}
		})
	}
	b.Run("bare call", func(b *testing.B) { // the cost of the interpreter itself
		vm := goja.New()
		v, err := vm.RunString(`(e) => { if (e === "other") return 1; }`)
		if err != nil {
			b.Fatal(err)
		}
		f, _ := goja.AssertFunction(v)
		arg := vm.ToValue("scribe")
		for b.Loop() {
			if _, err := f(goja.Undefined(), arg); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A recipe can have a thousand policies.
func BenchmarkCompile(b *testing.B) {
	var policies []Policy
	for i := range 1000 {
		policies = append(policies, Policy{Name: fmt.Sprintf("p%d", i), File: "team.hcl", Source: `(e) => { if (e.payload.length > 100) return deny("long"); }`})
	}
	for b.Loop() {
		if _, faults := New(policies, Options{}); len(faults) > 0 {
			b.Fatal(faults[0])
		}
	}
}
