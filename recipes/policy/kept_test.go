package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// keepers lists scripts that report values and modify them.
var keepers = []string{
	`(e, c) => keep(e)`,
	`(e, c) => keep(c)`,
	`(e, c) => keep(e.headers)`,
	`(e, c) => keep(c.graph)`,
	`(e, c) => keep(c.graph.creatures)`,
	`(e, c) => keep(c.graph.creatures())`,
	`(e, c) => keep(c.graph.creatures({species: "scribe"}))`,
	`(e, c) => keep(c.graph.creatures()[0])`,
	`(e, c) => keep(c.graph.channels()[0])`,
	`(e, c) => keep(c.graph.channels()[0].listeners)`,
	`(e, c) => keep(c.state)`,
	`(e, c) => keep(c.state.list)`,
	`(e, c) => keep(c.state.deep.er)`,
	`(e, c) => keep(deny("x"))`,
	`(e, c) => keep(Object.getPrototypeOf(deny("x")))`,
	`(e, c) => keep(patch)`,
	`(e, c) => keep(/a/g)`,
	"(e, c) => keep((s => s)`a`)",
	"(e, c) => keep((s => s)`a`.raw)",
	`(e, c) => keep(Object.prototype)`,
	`(e, c) => keep(Array.prototype)`,
	`(e, c) => keep(Error)`,
	`(e, c) => keep(globalThis)`,
	`(e, c) => keep(c.graph.creatures().constructor)`,
	`function judge(e, c) { return keep(judge); }`,
}

// keep modifies a value; a modification must fail or have no effect on a later call.
const keep = `const keep = (o) => {
	const found = [String(o.kept), Object.keys(o).length, o.length, o.id, o.name, o.n, o.lastIndex, Object.getPrototypeOf(o) && Object.getPrototypeOf(o).kept].join();
	for (const change of [
		() => { Object.setPrototypeOf(o, {kept: 1}); }, () => { o.__proto__ = {kept: 2}; }, () => { o.kept = 3; }, () => { o.name = "kept"; },
		() => { o.id = "kept"; }, () => { o.n = 4; }, () => { o[0] = "kept"; }, () => { o.push("kept"); }, () => { o.length = 0; }, () => { o.sort(); },
		() => { o.reverse(); }, () => { delete o.name; }, () => { delete o[0]; }, () => { o.lastIndex = 5; }, () => { o.exec("aaa"); },
		() => { o[Symbol.for("kept")] = 6; }, () => { Object.defineProperty(o, "kept", {get() { return 7; }}); }, () => { Object.assign(o, {kept: 8}); },
		() => { o.state = {kept: 9}; }, () => { o.payload = "kept"; }, () => { Object.freeze(o); }, () => { o.splice(0, 1); }, () => { o.fill(0); },
	]) { try { change(); } catch (e) {} }
	return warn(found);
};`

// keeper gives a script the function keep.
func keeper(script string) string {
	head, body, _ := strings.Cut(script, ") ")
	if strings.HasPrefix(body, "=> ") {
		return head + ") => { " + keep + " return " + strings.TrimPrefix(body, "=> ") + "; }"
	}
	return head + ") { " + keep + strings.TrimPrefix(body, "{")
}

// surrounded returns a message with a graph and a memory.
func surrounded(view *deploy.GraphView) *deploy.SendEvent {
	e := event("x")
	e.Surroundings = deploy.Surroundings{View: func() *deploy.GraphView { return view }, Memory: memory{
		"send.p0": `{"n":0,"list":[1,2],"deep":{"er":{}}}`, "send.p1": `{"n":0,"list":[1,2],"deep":{"er":{}}}`,
	}}
	return e
}

// Modifications by a script are undone before its next call and before the next policy,
// and never change data of the engine.
func TestWhatIsShownCannotBeChanged(t *testing.T) {
	view := happening(journal.JudgeSpawn, nil).View()
	before, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range keepers {
		t.Run(script, func(t *testing.T) {
			s := set(t, Policy{Source: keeper(script)}, Policy{Source: keeper(script)})
			var first []deploy.Verdict
			for range 3 {
				d := s.Send(t.Context(), surrounded(view))
				if len(d.Warnings) != 2 || d.Warnings[0].Reason != d.Warnings[1].Reason {
					t.Fatal(describeSend(d))
				}
				if first == nil {
					first = d.Warnings
				}
				if !reflect.DeepEqual(d.Warnings, first) {
					t.Fatalf("it found %v, and before %v", d.Warnings, first)
				}
			}
			if after, err := json.Marshal(view); err != nil || string(after) != string(before) {
				t.Errorf("the graph is now %s, %v", after, err)
			}
		})
	}
}

// The state that a script leaves in ctx.state is data: without accessors, prototypes and
// shared objects.
func TestStateIsData(t *testing.T) {
	for _, c := range []struct{ script, kept, next string }{
		{`(e, c) => { let n = 0; c.state = {get n() { return ++n; }}; }`, `{"n":1}`, `"1,1"`},
		{`(e, c) => { const o = {n: 1}; c.state = {a: o, b: o}; }`, `{"a":{"n":1},"b":{"n":1}}`, `","`},
		{`(e, c) => { c.state = Object.create({n: 5}, {m: {value: 1, enumerable: true}}); }`, `{"m":1}`, `","`},
		{`(e, c) => { c.state = Object.freeze({n: 1}); }`, `{"n":1}`, `"1,1"`},
		{`(e, c) => { c.state.__proto__ = {n: 5}; c.state.m = 1; }`, `{"m":1}`, `","`},
		{`(e, c) => { Object.defineProperty(c.state, "n", {value: 1}); c.state.m = 1; }`, `{"m":1}`, `","`},
		{`(e, c) => { c.state = JSON.parse('{"__proto__": {"n": 5}}'); }`, `{"__proto__":{"n":5}}`, `","`},
		{`(e, c) => { c.state = {n: {toJSON() { return 7; }}}; }`, `{"n":7}`, `"7,7"`},
		{`(e, c) => { c.state = {n: new Date(5)}; }`, `{"n":"1970-01-01T00:00:00.005Z"}`, ``},
	} {
		m := memory{}
		s := set(t, Policy{Name: "p", Source: c.script})
		e := event("x")
		e.Memory = m
		if d := s.Send(t.Context(), e); describeSend(d) != "" || m["send.p"] != c.kept {
			t.Errorf("%s: %s, kept %s, want %s", c.script, describeSend(d), m["send.p"], c.kept)
		}
		e.Memory = memory{"send.p": m["send.p"]}
		d := set(t, Policy{Name: "p", Source: `(e, c) => warn([c.state.n, c.state.n].join())`}).Send(t.Context(), e)
		if got := fmt.Sprintf("%q", d.Warnings[0].Reason); c.next != "" && got != c.next {
			t.Errorf("%s: the next finds %s, want %s", c.script, got, c.next)
		}
	}
}

// A failed call leaves no state, in any runtime.
func TestWhatFailsIsNotRemembered(t *testing.T) {
	s := set(t, Policy{Name: "p", Source: `(e, c) => { c.state.n++; c.state.list.push(c.state.n); if (e.payload === "bad") throw new Error("bad"); }`})
	m := memory{"send.p": `{"n":0,"list":[]}`}
	for _, payload := range []string{"bad", "good", "bad", "bad", "good"} {
		e := event(payload)
		e.Memory = m
		s.Send(t.Context(), e)
	}
	if want := `{"n":2,"list":[1,2]}`; m["send.p"] != want {
		t.Errorf("it remembers %s, want %s", m["send.p"], want)
	}
}
