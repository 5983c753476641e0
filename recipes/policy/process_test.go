package policy

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"pgregory.net/rapid"
)

// apart makes a set whose policies run in separate processes of this binary.
func apart(t testing.TB, policies ...Policy) *Set {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range policies {
		policies[i].Process = true
		policies[i].File, policies[i].Line = "team.hcl", 10
	}
	s, faults := New(policies, Options{Command: []string{self, "policies"}})
	for _, f := range faults {
		t.Fatal(f)
	}
	var p Processes
	t.Cleanup(p.Close)
	return s.In(&p)
}

// telling lists scripts that report everything that could make decisions differ.
var telling = []string{
	`(e) => deny([Math.random(), Date.now(), new Date().getTimezoneOffset(), new Date(2024, 6, 1), Date.parse("2024-07-01T10:00")].join())`,
	`(e) => warn(JSON.stringify(e))`,
	`(e) => warn(Object.keys(e.headers).join() + [3, 1, 2].sort().join() + JSON.stringify(Object.entries({b: 1, a: 2})))`,
	`(e, c) => { c.state.n = (c.state.n || 0) + e.size; return warn(JSON.stringify(c.state)); }`,
	`(e, c) => warn(JSON.stringify(c.graph.creatures()) + JSON.stringify(c.graph.channels()))`,
	`(e) => patch({payload: e.payload + "!", headers: {...e.headers, a: "b"}})`,
	`(e) => patch({base64: ""})`,
	`(e) => { throw new Error(e.payload); }`,
	`(e) => drop("no " + e.sender)`,
	`(e) => /a+b/.exec(e.payload) ? deny("ab") : undefined`,
	`(e) => deny([..."añ🙂"].map(c => c.codePointAt(0)).join() + (0.1 + 0.2) + 1e21 + "ß".toUpperCase() + ["é", "z", "a"].sort((a, b) => a.localeCompare(b)).join())`,
}

// The same event leads to the same decision in any runtime: a new one, one that has
// judged other events, and one of another process.
func TestDecisionsAreTheSameEverywhere(t *testing.T) {
	policy := func(script string) Policy {
		return Policy{Name: "p0", Source: script, Mode: Mutate, Timeout: patience}
	}
	used, other := map[string]*Set{}, map[string]*Set{}
	for _, script := range telling {
		used[script], other[script] = set(t, policy(script)), apart(t, policy(script))
	}
	view := happening(journal.JudgeSpawn, nil).View
	rapid.Check(t, func(t *rapid.T) {
		script := rapid.SampledFrom(telling).Draw(t, "script")
		e := event(rapid.String().Draw(t, "payload"))
		e.Seed, e.Time = rapid.Uint64().Draw(t, "seed"), rapid.Int64Range(0, 1<<60).Draw(t, "time")
		e.Headers = rapid.MapOfN(rapid.StringMatching("[a-z]{1,8}"), rapid.String(), 0, 4).Draw(t, "headers")
		before := rapid.SampledFrom([]string{`{}`, `{"n":1}`}).Draw(t, "state")
		judge := func(s *Set) (string, string) {
			m := memory{"send.p0": before}
			own := *e
			own.Surroundings = deploy.Surroundings{Memory: m, View: view}
			return describeSend(s.Send(t.Context(), &own)), m["send.p0"]
		}
		p := policy(script)
		p.File, p.Line = "team.hcl", 10
		fresh, _ := New([]Policy{p}, Options{})
		want, kept := judge(fresh)
		for name, s := range map[string]*Set{"a used runtime": used[script], "another process": other[script]} {
			if got, remembers := judge(s); got != want || remembers != kept {
				t.Fatalf("%s in %s:\ngot  %s, kept %s\nwant %s, kept %s", script, name, got, remembers, want, kept)
			}
		}
	})
}

func TestEventsGoToAnotherProcess(t *testing.T) {
	for _, kind := range journal.PolicyKinds() {
		if kind == journal.JudgeSend {
			continue
		}
		p := Policy{Name: "p0", On: kind, Source: `(e, c) => { c.state.k = e.kind; return warn(JSON.stringify(e) + c.graph.creatures({name: "ann"}).length); }`, Timeout: patience}
		here, there := memory{}, memory{}
		want := describeDecision(set(t, p).Judge(t.Context(), happening(kind, here)))
		got := describeDecision(apart(t, p).Judge(t.Context(), happening(kind, there)))
		if got != want || here["p"] != there["p"] || len(there) != 1 {
			t.Errorf("%s:\ngot  %s, %v\nwant %s, %v", kind, got, there, want, here)
		}
	}
}

// eaters lists scripts that use up memory in small steps, each of which is allowed.
var eaters = []string{
	`() => { const a = []; for (;;) a.push('x'.repeat(1e6) + a.length); }`,
	`() => { const m = new Map(); for (let i = 0;; i++) m.set(i, {i}); }`,
	`() => { const o = {}; for (let i = 0;; i++) o['k' + i] = [i, i, i]; }`,
	`() => { let f = () => 1; for (;;) { const g = f; f = () => g; } }`,
	`() => { const a = []; for (;;) a.push(Array(1e5).fill(0)); }`,
}

// A process for policies contains its script: it answers or dies, within its memory, and
// the next script runs in another process.
func TestProcessesContainEverything(t *testing.T) {
	var policies []Policy
	for _, script := range slices.Concat(eaters, hostile) {
		if refused(script) {
			continue
		}
		n := strconv.Itoa(len(policies))
		policies = append(policies, Policy{Name: "p" + n, Source: script, Timeout: 20 * time.Millisecond, Channels: []string{"channel." + n}})
	}
	s := apart(t, append(policies, Policy{Name: "last", Source: `() => deny("still here")`, Timeout: patience})...)
	for n := range policies {
		e := event("x")
		e.ChannelAddress, e.Memory = "channel."+strconv.Itoa(n), memory{}
		d := s.Send(t.Context(), e)
		if len(d.Denials) != 2 || d.Denials[1].Reason != "still here" {
			t.Errorf("%s: %s", policies[n].Source, describeSend(d))
		}
	}
}

// A process that dies is replaced by a spare one: the next judgement does not wait for a
// process to start.
func TestASpareProcessIsReady(t *testing.T) {
	seeded.Long(t)
	s := apart(t, Policy{Name: "p0", Source: `(e) => { if (e.payload === "die") { const a = []; for (;;) a.push(Array(1e5).fill(0)); } return deny("no"); }`, Timeout: patience})
	spare := func() *child {
		c := s.children
		c.mu.Lock()
		defer c.mu.Unlock()
		for c.busy > 0 {
			c.quiet.Wait()
		}
		return c.spare
	}
	s.Send(t.Context(), event("x"))
	waiting := spare()
	if waiting == nil {
		t.Fatal("there is no spare process")
	}
	dying := s.children.idle[0]
	s.Send(t.Context(), event("die"))
	if len(s.children.idle) > 0 {
		t.Fatal("the process was not stopped by its memory")
	}
	if d := s.Send(t.Context(), event("x")); len(d.Denials) != 1 || d.Denials[0].Reason != "no" {
		t.Fatal(describeSend(d))
	}
	if s.children.idle[0] != waiting || waiting == dying {
		t.Error("the spare process was not used")
	}
	if next := spare(); next == nil || next == waiting {
		t.Error("there is no other spare process")
	}
}

// If something kills an idle process, no judgement fails.
func TestAProcessKilledWhileIdle(t *testing.T) {
	s := apart(t, Policy{Name: "p0", Source: `() => deny("no")`, Timeout: patience})
	for range 3 {
		if d := s.Send(t.Context(), event("x")); len(d.Denials) != 1 || d.Denials[0].Reason != "no" {
			t.Fatal(describeSend(d))
		}
		s.children.mu.Lock()
		idle := s.children.idle[0]
		s.children.mu.Unlock()
		idle.killProcess()
		if _, err := idle.command.Process.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// counted returns the numbers of processes and of judgements.
func (c *children) counted() (processes, judgements int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if processes = len(c.idle); c.spare != nil {
		processes++
	}
	return processes, c.busy
}

// Processes can be closed during judgements: those that have begun get their decisions,
// later ones fail, and no process is left.
func TestClosedWhileJudging(t *testing.T) {
	var p Processes
	s := apart(t, Policy{Name: "p0", Source: `() => deny("no")`, Timeout: patience}).In(&p)
	var judges sync.WaitGroup
	decided := make(chan struct{})
	once := sync.OnceFunc(func() { close(decided) })
	for range 2 {
		judges.Go(func() {
			for {
				d := s.Send(t.Context(), event("x"))
				switch once(); {
				case len(d.Denials) != 1:
					t.Errorf("while it is closed: %s", describeSend(d))
					return
				case d.Denials[0].Failed && strings.Contains(d.Denials[0].Reason, "has been closed"):
					return
				case d.Denials[0].Reason != "no":
					t.Errorf("while it is closed: %s", describeSend(d))
				}
			}
		})
	}
	<-decided
	p.Close()
	if n, _ := s.children.counted(); n > 0 {
		t.Errorf("%d processes are left after Close", n)
	}
	judges.Wait()
	if n, busy := s.children.counted(); n > 0 || busy > 0 || len(p.users) > 0 {
		t.Errorf("%d processes are left, %d judgements, %d sets", n, busy, len(p.users))
	}
}

// Processes without work end by themselves, and the next judgement starts new ones.
func TestIdleProcessesEnd(t *testing.T) {
	p := Processes{kept: time.Millisecond}
	defer p.Close()
	s := apart(t, Policy{Name: "p0", Source: `() => deny("no")`, Timeout: patience}).In(&p)
	for range 3 {
		if d := s.Send(t.Context(), event("x")); len(d.Denials) != 1 || d.Denials[0].Reason != "no" {
			t.Fatal(describeSend(d))
		}
		for n, busy := s.children.counted(); n > 0 || busy > 0; n, busy = s.children.counted() {
			runtime.Gosched()
		}
		p.mu.Lock()
		if len(p.users) > 0 {
			t.Error("a set without processes is still known")
		}
		p.mu.Unlock()
	}
}

// A set without an owner for its processes fails instead of starting any.
func TestProcessesNeedAnOwner(t *testing.T) {
	s, faults := New([]Policy{{Name: "p0", Source: `() => {}`, Process: true}}, Options{Command: []string{"/bin/true"}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if d := s.Send(t.Context(), event("x")); len(d.Denials) != 1 || !d.Denials[0].Failed {
		t.Error(describeSend(d))
	}
}

func TestAProcessThatCannotBeStartedDenies(t *testing.T) {
	for name, command := range map[string][]string{"none": nil, "missing": {"/nonexistent/terrarium"}, "another program": {"/bin/true"}} {
		t.Run(name, func(t *testing.T) {
			s, faults := New([]Policy{{Name: "p0", Source: `() => {}`, Process: true}}, Options{Command: command})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			var p Processes
			defer p.Close()
			s = s.In(&p)
			if d := s.Send(t.Context(), event("x")); len(d.Denials) != 1 {
				t.Error(describeSend(d))
			}
		})
	}
}
