package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/internal/seeded"
	"go.uber.org/goleak"
)

// patience is the timeout of scripts that should end by themselves, so only a script that
// does not end exceeds it.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	longest = patience                                   // also for policies in processes
	if slices.Equal(os.Args[1:], []string{"policies"}) { // this binary, as a separate process
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	time.Local = time.FixedZone("elsewhere", 5*60*60+45*60) // scripts must not see it
	goleak.VerifyTestMain(quiet{m})
}

// quiet stops the clock of the regular expressions after the tests. It would stop by
// itself, but later.
type quiet struct{ *testing.M }

func (q quiet) Run() int {
	code := q.M.Run()
	regexp2.StopTimeoutClock()
	return code
}

func event(payload string) *deploy.SendEvent {
	return &deploy.SendEvent{Time: 1_700_000_000_000_000_000, Seed: 7, Graph: "g1", Deployment: "team",
		ChannelName: "tasks", ChannelAddress: "channel.tasks", SenderName: "writer", SenderAddress: "creature.writer",
		Payload: []byte(payload), Headers: map[string]string{"trace": "t1"}}
}

func set(t testing.TB, policies ...Policy) *Set {
	t.Helper()
	for i := range policies {
		if policies[i].Name == "" {
			policies[i].Name = fmt.Sprintf("p%d", i)
		}
		if policies[i].Timeout == 0 {
			policies[i].Timeout = patience // the test must not depend on the load of the machine
		}
		if policies[i].File == "" {
			policies[i].File, policies[i].Line = "team.hcl", 10
		}
	}
	s, faults := New(policies, Options{})
	for _, f := range faults {
		t.Fatal(f)
	}
	return s
}

// describeSend writes a decision as one line, for comparison.
func describeSend(d deploy.SendDecision) string {
	var parts []string
	list := func(word string, vs []deploy.Verdict) {
		for _, v := range vs {
			parts = append(parts, fmt.Sprintf("%s %s %s %q", word, v.Policy, v.Where, v.Reason))
		}
	}
	list("deny", d.Denials)
	list("warn", d.Warnings)
	list("audit", d.Audits)
	if d.Dropped != nil {
		list("drop", []deploy.Verdict{*d.Dropped})
	}
	if d.Mutated {
		parts = append(parts, fmt.Sprintf("now %q %v", d.Payload, d.Headers))
	}
	if d.Mutated != (len(d.ChangedBy) > 0) {
		parts = append(parts, fmt.Sprintf("changed by %v", d.ChangedBy))
	}
	return strings.Join(parts, "; ")
}

// A decision names each policy that has changed the message, its place, and its reason if
// there is one.
func TestADecisionTellsWhoChanged(t *testing.T) {
	s := set(t, Policy{Mode: Mutate, Source: "(e) =>\n patch({payload: e.payload + '!'})"}, Policy{Source: `() => {}`}, Policy{Mode: Mutate, Source: `() => patch({headers: {}})`})
	d := s.Send(t.Context(), event("x"))
	want := []deploy.Verdict{{Policy: "p0", Where: "team.hcl:11"}, {Policy: "p2", Where: "team.hcl:10"}}
	if !slices.Equal(d.ChangedBy, want) || string(d.Payload) != "x!" {
		t.Errorf("%q, changed by %+v, want %+v", d.Payload, d.ChangedBy, want)
	}
}

func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		policy Policy
		want   string
	}{
		{"no objection", `() => {}`, Policy{}, ``},
		{"allow", `() => allow()`, Policy{}, ``},
		{"deny with its line", "(event) => {\n  return deny(`no ${event.payload}`);\n};\n// done", Policy{}, `deny p0 team.hcl:11 "no secret"`},
		{"deny without a reason", `() => deny()`, Policy{}, `deny p0 team.hcl:10 "no reason given"`},
		{"warn", `() => warn("hm")`, Policy{}, `warn p0 team.hcl:10 "hm"`},
		{"audit", `() => deny("x")`, Policy{Audit: true}, `audit p0 team.hcl:10 "x"`},
		{"a named function", `function judge(e) { return deny(e.channel); }`, Policy{}, `deny p0 team.hcl:10 "tasks"`},
		{"drop", `() => drop("old")`, Policy{Mode: Mutate}, `drop p0 team.hcl:10 "old"`},
		{"patch the payload", `(e) => patch({payload: e.payload.replace("secret", "***")})`, Policy{Mode: Mutate}, `now "***" map[trace:t1]`},
		{"patch headers", `(e) => patch({headers: {...e.headers, seen: "yes"}})`, Policy{Mode: Mutate}, `now "secret" map[seen:yes trace:t1]`},
		{"patch to bytes", `(e) => patch({base64: "/w=="})`, Policy{Mode: Mutate}, `now "\xff" map[trace:t1]`},
		{"audited patch", `(e) => patch({payload: ""})`, Policy{Mode: Mutate, Audit: true}, `audit p0 team.hcl:10 "would have called patch()"`},
		{"patch in validate", `() => patch({payload: "x"})`, Policy{}, `deny p0 team.hcl:10 "patch() needs mode = \"mutate\""`},
		{"patch of nonsense", `() => patch({payload: {}})`, Policy{Mode: Mutate}, `deny p0 team.hcl:10 "TypeError: patch: payload is not a string; JSON.stringify makes one of an object"`},
		{"patch of an unknown field", `() => patch({payloud: ""})`, Policy{Mode: Mutate}, `deny p0 team.hcl:10 "TypeError: patch has no field \"payloud\"; it takes payload, base64 and headers, names for a merge, or request for a capability"`},
		{"empty patch", `() => patch({})`, Policy{Mode: Mutate}, `deny p0 team.hcl:10 "TypeError: patch changes nothing; give it payload, base64 or headers, or names for a merge"`},
		{"header with NUL", `() => patch({headers: {a: "\u0000"}})`, Policy{Mode: Mutate}, `deny p0 team.hcl:10 "TypeError: patch: a header has no name, or NUL in its name or value"`},
		{"another answer", `() => false`, Policy{}, `deny p0 team.hcl:10 "it returned false instead of a verdict such as deny(reason)"`},
		{"null is an answer", `() => null`, Policy{}, `deny p0 team.hcl:10 "it returned null instead of a verdict such as deny(reason)"`},
		{"a forged verdict", `() => ({kind: "allow"})`, Policy{}, `deny p0 team.hcl:10 "it returned an object of the class Object instead of a verdict such as deny(reason)"`},
		{"exception with its line", "() => {\n\n  throw new Error('boom');\n}", Policy{}, `deny p0 team.hcl:12 "Error: boom"`},
		{"exception, warned of", `() => { throw new ReferenceError("nope is not defined"); }`, Policy{OnError: WarnOnError}, `warn p0 team.hcl:10 "ReferenceError: nope is not defined"`},
		{"exception, ignored", `() => { throw new ReferenceError("nope is not defined"); }`, Policy{OnError: AllowOnError}, ``},
		{"exception, audited", `() => { throw new ReferenceError("nope is not defined"); }`, Policy{Audit: true}, `audit p0 team.hcl:10 "ReferenceError: nope is not defined"`},
		{"another channel", `() => deny("x")`, Policy{Channels: []string{"channel.other"}}, ``},
		{"match false", `() => deny("x")`, Policy{Match: func(*deploy.SendEvent) (bool, error) { return false, nil }}, ``},
		{"match fails", `() => {}`, Policy{Match: func(*deploy.SendEvent) (bool, error) { return false, errors.New("no number") }}, `deny p0 team.hcl:10 "match: no number"`},
		{"all fields", `(e, c) => deny([e.kind, e.time, e.graph, e.deployment, e.channel, e.channel_address, e.sender, e.sender_address, e.payload, e.base64, e.size, e.headers.trace, c.policy, c.mode].join())`,
			Policy{}, `deny p0 team.hcl:10 "send,1700000000000,g1,team,tasks,channel.tasks,writer,creature.writer,secret,,6,t1,p0,validate"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.policy.Source = c.script
			s := set(t, c.policy)
			for range 2 { // the second run uses a used runtime
				if got := describeSend(s.Send(t.Context(), event("secret"))); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

func TestMutatorsFirstThenEveryObjection(t *testing.T) {
	s := set(t,
		Policy{Source: `(e) => deny("first saw " + e.payload)`},
		Policy{Source: `(e) => patch({payload: e.payload + "1"})`, Mode: Mutate},
		Policy{Source: `(e) => deny("second saw " + e.payload)`},
		Policy{Source: `(e) => patch({payload: e.payload + "2"})`, Mode: Mutate},
	)
	want := `deny p0 team.hcl:10 "first saw x12"; deny p2 team.hcl:10 "second saw x12"; now "x12" map[trace:t1]`
	if got := describeSend(s.Send(t.Context(), event("x"))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJudgesSend(t *testing.T) {
	s := set(t, Policy{Source: `() => {}`, Channels: []string{"channel.a"}})
	if !s.JudgesSend("channel.a") || s.JudgesSend("channel.b") {
		t.Error("it judges other channels than it was given")
	}
	s = set(t, Policy{Source: `() => warn("a")`, Channels: []string{"channel.a", "channel.tasks"}}, Policy{Source: `() => warn("all")`},
		Policy{Source: `() => warn("b")`, Channels: []string{"channel.b"}}, Policy{Source: `() => warn("tasks")`, Channels: []string{"channel.tasks"}})
	want := `warn p0 team.hcl:10 "a"; warn p1 team.hcl:10 "all"; warn p3 team.hcl:10 "tasks"`
	if got := describeSend(s.Send(t.Context(), event("x"))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !set(t, Policy{Source: `() => {}`}).JudgesSend("channel.b") {
		t.Error("without channels it should judge all")
	}
}

func TestBinaryPayload(t *testing.T) {
	s := set(t, Policy{Source: `(e) => deny(e.payload + " " + e.base64)`})
	if got := describeSend(s.Send(t.Context(), event("\xff\x00"))); got != `deny p0 team.hcl:10 "null /wA="` {
		t.Error(got)
	}
}

// A decision depends on the event alone: not on the clock, on earlier events or
// on the runtime.
func TestDecisionsRepeat(t *testing.T) {
	const script = `(e) => deny([Math.random(), Date.now(), new Date().toISOString(), Math.random()].join())`
	s := set(t, Policy{Source: script}, Policy{Source: script})
	first := describeSend(s.Send(t.Context(), event("x")))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got := describeSend(s.Send(context.Background(), event("x"))); got != first {
					t.Errorf("got  %s\nwant %s", got, first)
				}
			}
		})
	}
	wg.Wait()
	d := s.Send(t.Context(), event("x"))
	if d.Denials[0].Reason == d.Denials[1].Reason {
		t.Error("two policies should not share their random numbers")
	}
	other := event("x")
	other.Seed++
	if describeSend(s.Send(t.Context(), other)) == first {
		t.Error("another seed should give other numbers")
	}
	if !strings.Contains(first, "1700000000000,2023-11-14T22:13:20.000Z") {
		t.Error("the time is not the event's:", first)
	}
}

// Scripts do not see the time zone of the process.
func TestDatesAreInUTC(t *testing.T) {
	for script, want := range map[string]string{
		`new Date().getHours()`:                                           "22",
		`String(new Date())`:                                              "Tue Nov 14 2023 22:13:20 GMT+0000 (UTC)",
		`Date()`:                                                          "Tue Nov 14 2023 22:13:20 GMT+0000 (UTC)",
		`new Date().toDateString()`:                                       "Tue Nov 14 2023",
		`new Date().toTimeString()`:                                       "22:13:20 GMT+0000 (UTC)",
		`new Date().toLocaleString()`:                                     "11/14/2023, 22:13:20",
		`new Date().toLocaleDateString()`:                                 "11/14/2023",
		`new Date().toLocaleTimeString()`:                                 "22:13:20",
		`new Date().getTimezoneOffset()`:                                  "0",
		`new Date(2024, 0, 31, 1).toISOString()`:                          "2024-01-31T01:00:00.000Z",
		`new Date("2024-01-31T01:00").toISOString()`:                      "2024-01-31T01:00:00.000Z",
		`new Date("2024-01-31T01:00:00+02:00").toISOString()`:             "2024-01-30T23:00:00.000Z",
		`new Date("2024-01-31T01:00:00Z").toISOString()`:                  "2024-01-31T01:00:00.000Z",
		`new Date("2024-01-31").toISOString()`:                            "2024-01-31T00:00:00.000Z",
		`new Date("Jan 31, 2024 01:00").toISOString()`:                    "2024-01-31T01:00:00.000Z",
		`new Date("Jan 31, 2024").toISOString()`:                          "2024-01-31T00:00:00.000Z",
		`new Date("Wed, 31 Jan 2024 01:00:00 GMT").toISOString()`:         "2024-01-31T01:00:00.000Z",
		`new Date("Wed, 31 Jan 2024 01:00:00 EST").toISOString()`:         "2024-01-31T06:00:00.000Z",
		`new Date(String(new Date(2024, 0, 31, 1))).toISOString()`:        "2024-01-31T01:00:00.000Z",
		`new Date("Wed Jan 31 2024 01:00:00 GMT+0200").toISOString()`:     "2024-01-30T23:00:00.000Z",
		`((d) => { d.setHours(5); return d.toISOString(); })(new Date())`: "2023-11-14T05:13:20.000Z",
		`((d) => { d.setDate(1); d.setMonth(1); return d.getDate() + "." + d.getMonth(); })(new Date())`: "1.1",
		`new Date("never").toString()`:                                                 "Invalid Date",
		`new Date(new Date(5)).getTime() + new Date({valueOf: () => 6}).getTime()`:     "11",
		`new Date() instanceof Date && (new Date()).constructor === Date`:              "true",
		`new (class extends Date { year() { return this.getFullYear(); } })(0).year()`: "1970",
		`new Date(0) + 1`:               "Thu Jan 01 1970 00:00:00 GMT+0000 (UTC)1",
		`JSON.stringify([new Date(0)])`: `["1970-01-01T00:00:00.000Z"]`,
	} {
		d := set(t, Policy{Source: "() => deny(String(" + script + "))"}).Send(t.Context(), event("x"))
		if len(d.Denials) != 1 || d.Denials[0].Reason != want {
			t.Errorf("%s: %s, want %s", script, describeSend(d), want)
		}
	}
}

// Scripts cannot keep data from one event to the next.
func TestNothingIsKept(t *testing.T) {
	for _, script := range []string{
		`(e) => { globalThis.x = 1; }`,
		`(e) => { Object.prototype.payload = 1; }`,
		`(e) => { Array.prototype.push = () => {}; }`,
		`(e) => { Math.kept = 1; }`,
		`(e) => { e.payload = "other"; }`,
		`(e) => { e.headers.trace = "other"; }`,
		`(e, ctx) => { ctx.kept = 1; }`,
		`function f(e) { f.kept = 1; }`,
		`(e) => { deny.kept = 1; }`,
		`(e) => { Object.getPrototypeOf([][Symbol.iterator]()).next = 1; }`,
		`(e) => { Object.defineProperty(String.prototype, 'repeat', {value: 1}); }`,
	} {
		s := set(t, Policy{Source: script})
		if d := s.Send(t.Context(), event("x")); len(d.Denials) != 1 || !strings.HasPrefix(d.Denials[0].Reason, "TypeError") {
			t.Errorf("%s: %s", script, describeSend(d))
		}
	}
}

func TestScriptErrors(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"(event) => {\n  return deny(;\n}", "team.hcl:11:15: Unexpected token ;"},
		{"let n = 0; (e) => { n++ }", "team.hcl:10:1: the script is not one function"},
		{"(() => { let n = 0; return () => n++ })()", "team.hcl:10:1: the script is not one function"},
		{"a => a), (b => b", "team.hcl:10:7: Unexpected token )"},
		{"42", "team.hcl:10:1: the script is not one function"},
		{"", "team.hcl:10:1: the script is not one function"},
		{"async () => {}", "team.hcl:10:1: a decision cannot wait: the function is async or a generator"},
		{"() => {\n  return 10n ** 1000000n;\n}", "team.hcl:11:10: big integers are not available to policies"},
		{"() => /(/", "team.hcl:10:7: Unterminated group"},
		{strings.Repeat(" ", MaxSourceBytes+1), "team.hcl:10:1: the script has 32769 bytes; at most 32768 are allowed"},
	} {
		_, faults := New([]Policy{{Name: "p", File: "team.hcl", Line: 10, Source: c.script}}, Options{})
		if len(faults) != 1 {
			t.Errorf("%.40q: %d faults", c.script, len(faults))
			continue
		}
		if got := faults[0].Error(); got != c.want {
			t.Errorf("%.40q:\ngot  %s\nwant %s", c.script, got, c.want)
		}
	}
}

// Actions of hostile or careless scripts. Each must end in an error, soon, and leave the
// set usable. make test runs every fourth one.
func TestBounds(t *testing.T) {
	for i, script := range hostile {
		if !seeded.Part(i, 4) {
			continue
		}
		t.Run(script, func(t *testing.T) {
			if refused(script) {
				return
			}
			s := set(t, Policy{Source: script, Timeout: 20 * time.Millisecond}, Policy{Source: `() => deny("still here")`})
			for range 2 {
				e := event("x")
				e.Memory = memory{}
				d := s.Send(t.Context(), e)
				if len(d.Denials) != 2 || d.Denials[1].Reason != "still here" {
					t.Fatal(describeSend(d))
				}
				if d.Denials[0].Reason == "no reason given" {
					t.Fatal("matching gave up, and that was taken for a decision")
				}
			}
		})
	}
}

// The library of the patterns has one default for the whole process, which may have its
// own patterns.
func TestTheDefaultOfPatternsStays(t *testing.T) {
	usual := regexp2.DefaultMatchTimeout
	s := set(t, Policy{Source: `(e) => deny(e.payload.replace(/(?=s)s/g, '').replace(/e/g, '') + new RegExp('(?=x)x').test('x'))`})
	if d := s.Send(t.Context(), event("secret")); describeSend(d) != `deny p0 team.hcl:10 "crttrue"` {
		t.Fatal(describeSend(d))
	}
	if now := regexp2.DefaultMatchTimeout; now != usual {
		t.Errorf("the default is %v, and was %v", now, usual)
	}
}

// refused reports whether a script is refused before it runs.
func refused(script string) bool {
	_, faults := New([]Policy{{Name: "p", Source: script}}, Options{})
	return len(faults) > 0
}

// The parser recurses, so nested brackets are bounded. What only looks like a text or a
// comment hides no brackets.
func TestDeepScripts(t *testing.T) {
	everything := []string{"(", "[", "{", "!", "-", "a?", "a=>", "`${", "f(", "[a,", "{a:"}
	for _, before := range []string{"", `/"/ + `, "/* ' */ ", "/[//]/ + ", "/[/*]/ + ", "`${`a`}` + `", "/'/ + '\\\n", "(a) / `"} {
		some := everything
		if before != "" {
			some = []string{"(", "a=>", "{a:"}
		}
		for _, open := range some {
			script := "() => " + before + strings.Repeat(open, (MaxSourceBytes-32)/len(open))
			if _, faults := New([]Policy{{Name: "p", Source: script}}, Options{}); len(faults) == 0 {
				t.Errorf("%q and %q, repeated, is accepted", before, open)
			}
		}
	}
}

// Nested brackets count fully, and others hardly at all.
func TestBracketsThatAreCounted(t *testing.T) {
	for _, c := range []struct {
		script string
		line   int
	}{
		{"() => " + strings.Repeat("(", 65), 1},
		{"() => {\n" + strings.Repeat("[", 40) + "\n" + strings.Repeat("{", 24), 3},
		{strings.Repeat("(f)[0]{}", 1000), 0},
		{strings.Repeat(`"(" + '[' + /* { */ 1 // (`+"\n", 100), 0},
		{strings.Repeat("`${f(`${g()}`)}`", 100), 0},
		{"`" + strings.Repeat("${", 65), 1},
		{strings.Repeat("'\\'(' + ", 600), 1},
		{strings.Repeat("/*(*/", 600), 1},
		{strings.Repeat("//(\n", 600), 513},
		{"/* ' */ " + strings.Repeat("(", 65), 1},
		{"'a\n" + strings.Repeat("(", 65), 2},
		{strings.Repeat("a=>\n", 600), 513},
	} {
		if line, why := tooDeep(c.script); line != c.line || (why == "") != (line == 0) {
			t.Errorf("%.40q: line %d, %q; want %d", c.script, line, why, c.line)
		}
	}
}

func TestNoSourceMaps(t *testing.T) {
	// A missing map would be an error if it were used.
	s := set(t, Policy{Source: "() => {}\n//# sourceMappingURL=/nonexistent/map.json"})
	if d := s.Send(t.Context(), event("x")); describeSend(d) != "" {
		t.Error(describeSend(d))
	}
}

func TestPanicIsADenial(t *testing.T) {
	broken := func(*deploy.SendEvent) (bool, error) { panic("broken") }
	s := set(t, Policy{Source: `() => {}`, Match: broken}, Policy{Source: `() => deny("still here")`})
	want := `deny p0 team.hcl:10 "it panicked: broken"; deny p1 team.hcl:10 "still here"`
	if got := describeSend(s.Send(t.Context(), event("x"))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCallerGaveUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := set(t, Policy{Source: `() => {}`})
	if d := s.Send(ctx, event("x")); len(d.Denials) != 1 {
		t.Error("what was not judged must not pass:", describeSend(d))
	}
}

func FuzzSend(f *testing.F) {
	for _, script := range []string{`() => {}`, `(e) => deny(e.payload)`, `(e) => patch({payload: e.payload + 1})`,
		`(e) => { let s = ''; for (const k of Object.keys(e)) s += k; return warn(s); }`, `() => 'x'.repeat(2**30)`, `() => [1,2,3].map(String).join()`,
		`(e) => JSON.parse(e.payload).a`, `() => /a+$/.exec("aaa")`, "() => `${1}`"} {
		f.Add(script, []byte(`{"a": 1}`))
	}
	f.Fuzz(func(t *testing.T, script string, payload []byte) {
		s, faults := New([]Policy{{Name: "p", Source: script, Mode: Mutate, Timeout: 5 * time.Millisecond}}, Options{})
		if len(faults) > 0 {
			return
		}
		e := event("")
		e.Payload = payload
		d := s.Send(t.Context(), e)
		if d.Mutated && d.Payload == nil && d.Headers == nil {
			t.Error("a patch without content")
		}
	})
}

func BenchmarkSend(b *testing.B) {
	for _, c := range []struct {
		name   string
		policy Policy
	}{
		{"undefined", Policy{Source: `(e) => { if (e.payload.length > 100) return deny("long"); }`}},
		{"deny", Policy{Source: `(e) => deny("no " + e.sender)`}},
		{"patch", Policy{Source: `(e) => patch({payload: e.payload.replace("x", "y")})`, Mode: Mutate}},
		{"match=false", Policy{Source: `(e) => deny("x")`, Match: func(*deploy.SendEvent) (bool, error) { return false, nil }}},
		{"channel=other", Policy{Source: `(e) => deny("x")`, Channels: []string{"channel.other"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := set(b, c.policy)
			e := event("x marks the spot")
			b.ReportAllocs()
			for b.Loop() {
				s.Send(b.Context(), e)
			}
		})
	}
	b.Run("runtime", func(b *testing.B) {
		for b.Loop() {
			if _, err := newIsolate(1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
