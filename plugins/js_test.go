package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
	"github.com/seed47132306/terrarium/plugins"
)

// script returns a world in which js runs a script.
func script(text string) *world {
	return &world{config: map[string]any{"script": text, "step": 2}, channels: []string{"out"}}
}

// onMessage is a script with one handler.
func onMessage(body string) *world {
	return script("export default { message(turn) {\n" + body + "\n} };")
}

func TestJSSendsValues(t *testing.T) {
	m := builtin(t, "js")
	w := onMessage(`turn.sendAll(turn.text()); turn.send("out", { a: [1, "ü"] }, { n: 1, t: "x" }); turn.output(Uint8Array.of(255));
		turn.output(turn.config); turn.state.set("n", (turn.state.get("n") ?? 0) + turn.config.step)`)
	equal(t, run(t, m, w, messages("a", "b")...),
		sent("out", "a", ""), sent("out", `{"a":[1,"ü"]}`, "n\x001\x00t\x00x\x00"), `output "\xff"`, `output "{\"step\":2}"`,
		sent("out", "b", ""), sent("out", `{"a":[1,"ü"]}`, "n\x001\x00t\x00x\x00"), `output "\xff"`, `output "{\"step\":2}"`)
	if w.state["n"] != "4" {
		t.Errorf("the state is %q", w.state)
	}
}

// A script that cannot be loaded prevents the creature from starting, and says why.
func TestJSRefusesScripts(t *testing.T) {
	m := builtin(t, "js")
	for _, c := range []struct{ script, want string }{
		{"export default {\n  message(turn) { return 1 +; }\n};", "SyntaxError: unexpected token in expression: ';'\n    at self.js:2"},
		{"const x = 1;", "the script exports no handlers: write export default { message(turn) { … } }"},
		{"export default { message: 7 };", "the handler message is not a function"},
		{"\nnull.x;", "TypeError: cannot read property 'x' of null\n    at <anonymous> (self.js:2"},
		{`import "fs"; export default {};`, `a creature is one file: it cannot import "fs"`},
		{`await new Promise(() => {}); export default {};`, "the script waits for a promise that nothing resolves"},
		{`export default { init(turn) { throw new TerrariumError("denied", "not here"); } };`, "not here"},
		{`export default { init(turn) { turn.output("x"); } };`, "creature_init may only read; call it in creature_handle (denied)"},
		{`throw 7`, "7"},
	} {
		w := script(c.script)
		turn := w.turn(delivery{}, true)
		i, err := m.Instantiate(t.Context(), &limits, turn)
		if err == nil {
			t.Errorf("%s is accepted", c.script)
			_ = i.Close(t.Context())
		}
		if logs := strings.Join(turn.logs, "\n"); !strings.Contains(logs, c.want) {
			t.Errorf("%s: the log does not say %q:\n%s", c.script, c.want, logs)
		}
	}
	w := &world{}
	turn := w.turn(delivery{}, true)
	if _, err := m.Instantiate(t.Context(), &limits, turn); abi.CodeOf(err) != abi.NotFound || !strings.Contains(strings.Join(turn.logs, ""), "config script: it is required") {
		t.Errorf("without a script: %v, %q", err, turn.logs)
	}
}

func TestJSExceptionsFailTheTurn(t *testing.T) {
	m := builtin(t, "js")
	for _, c := range []struct {
		body, want string
		code       abi.Code
	}{
		{`throw new Error("it went wrong")`, "error: it went wrong\n    at message (self.js:2", abi.Failed},
		{`undefined.x`, "error: TypeError: cannot read property 'x' of undefined\n    at message (self.js:2", abi.Failed},
		{`throw new TerrariumError("denied", "not today")`, "error: not today", abi.Denied},
		{`throw new TerrariumError("nope", "x")`, "error: TypeError: nope is not a code of the contract", abi.Failed},
		{`turn.send("nowhere", "x")`, `error: send: no alias "nowhere" (not_connected)`, abi.NotConnected},
		{`turn.json()`, "error: SyntaxError: ", abi.Failed},
		{`throw "a text"`, "error: a text", abi.Failed},
		{`throw undefined`, "error: undefined", abi.Failed},
		{`throw Symbol("s")`, "error: Symbol(s)", abi.Failed},
		{`throw { get message() { throw 1 }, a: 1 }`, `error: [object Object]`, abi.Failed},
		{`throw new Proxy({}, { getPrototypeOf() { throw 1 } })`, "error: the script threw a value that cannot be shown", abi.Failed},
		{`class Mine extends Error { constructor(m) { super(m); this.name = "Mine"; } } throw new Mine("own")`, "error: Mine: own\n", abi.Failed},
		{`return Promise.reject(new Error("later"))`, "error: later\n", abi.Failed},
		{`Promise.reject(new Error("unseen"))`, "error: unseen\n", abi.Failed},
		{`return new Promise(() => {})`, "error: the handler waits for a promise that nothing resolves in this turn", abi.Failed},
		{`return (async () => { await null; turn.send("nowhere", "x") })()`, "(not_connected)", abi.NotConnected},
		{`setTimeout(() => {}, 1)`, "ReferenceError: setTimeout does not exist in a creature: use turn.setTimer", abi.Failed},
		{`return import("fs")`, `a creature is one file: it cannot import "fs"`, abi.Failed},
		{`turn.send("out", 1n)`, "TypeError: ", abi.Failed},
		{`turn.state.set("k", () => 1)`, "TypeError: a function has no JSON", abi.Failed},
		{`globalThis.x = 1`, "TypeError: ", abi.Failed},
		{`Array.prototype.x = 1`, "TypeError: ", abi.Failed},
	} {
		r := play(t, m, onMessage(c.body), false, messages("x"))[0]
		if abi.CodeOf(r.err) != c.code || len(r.logs) != 1 || !strings.Contains(r.logs[0], c.want) {
			t.Errorf("%s: %v, %q; want the code %v and %q", c.body, r.err, r.logs, c.code, c.want)
		}
	}
}

func TestJSPromisesEndWithTheTurn(t *testing.T) {
	w := onMessage(`return (async () => {
		for (const text of await Promise.all([1, Promise.resolve(2)])) turn.output(text);
		try { await Promise.reject(3) } catch (e) { turn.output(e) }
	})()`)
	equal(t, run(t, builtin(t, "js"), w, messages("x")...), `output "1"`, `output "2"`, `output "3"`)
}

func TestJSConsole(t *testing.T) {
	w := onMessage(`console.log("a", { b: 1 }, [2], undefined, null); console.debug("d"); console.warn("w"); console.error(new Error("e").message); console.info(1n)`)
	r := play(t, builtin(t, "js"), w, false, messages("x"))[0]
	want := []string{`info: a {"b":1} [2] undefined null`, "debug: d", "warn: w", "error: e", "info: 1"}
	if strings.Join(r.logs, "|") != strings.Join(want, "|") {
		t.Errorf("%q", r.logs)
	}
}

// Nothing that is built in can be changed, so that a turn cannot leave anything to the
// next one. The script walks over everything that it can reach.
func TestJSNothingBuiltInChanges(t *testing.T) {
	w := onMessage(`
		const seen = new Set(), open = [];
		// Accessors of the language, which change nothing that is frozen.
		const known = new Set(["__proto__", "constructor", "caller", "arguments", Symbol.toStringTag]);
		const waiting = [[globalThis, "globalThis"], [(function* () {}).__proto__, "generator"], [(async () => {}).__proto__, "async"],
			[(async function* () {}).__proto__, "async generator"], [[].values().__proto__, "iterator"], [new Map().entries().__proto__, "map iterator"],
			["".matchAll(/./g).__proto__, "matches"], [[].values().map((x) => x).__proto__, "helper"], [turn.__proto__, "turn"], [turn.state, "state"],
			[Iterator.from({ next() {} }).__proto__, "wrap"], [Iterator.concat([]).__proto__, "concat"]];
		for (let next; (next = waiting.pop()); ) {
			const [object, path] = next;
			if (seen.has(object)) continue;
			seen.add(object);
			if (Object.isExtensible(object)) open.push(path);
			for (const key of Reflect.ownKeys(object)) {
				const p = Object.getOwnPropertyDescriptor(object, key);
				if (p.configurable || p.writable) open.push(path + "." + String(key));
				if (p.set && !known.has(key) && !p.set.name.startsWith("set")) open.push("setter " + path + "." + String(key));
				for (const value of [p.value, p.get, p.set])
					if (Object(value) === value) waiting.push([value, path + "." + String(key)]);
			}
			const proto = Object.getPrototypeOf(object);
			if (proto) waiting.push([proto, path + ".__proto__"]);
		}
		turn.output({ open, seen: seen.size > 500 });
		const inherits = { toString: () => "own" };
		inherits.valueOf = () => 1;
		turn.output(String(inherits) + inherits.valueOf() + typeof WeakRef + typeof performance + Error.stackTraceLimit);`)
	equal(t, run(t, builtin(t, "js"), w, messages("x")...),
		`output "{\"open\":[],\"seen\":true}"`, `output "own1undefinedundefinedundefined"`)
}

// Time and random numbers are those of the turn. The fake's are constant.
func TestJSTimeAndRandom(t *testing.T) {
	w := onMessage(`turn.output([Date.now(), new Date().toISOString(), Math.random(), turn.random(2).length, new Date(0).getTimezoneOffset()])`)
	equal(t, run(t, builtin(t, "js"), w, messages("x", "y")...),
		`output "[0,\"1970-01-01T00:00:00.000Z\",0,2,0]"`, `output "[0,\"1970-01-01T00:00:00.000Z\",0,2,0]"`)
}

// Nesting too deeply is an exception and not a trap.
func TestJSNesting(t *testing.T) {
	m := builtin(t, "js")
	for _, body := range []string{
		`const f = (a) => f(a + 1) + 1; f(1)`,
		`const f = (...a) => f(...a, 1); f(1)`,
		`const f = () => [2, 1].sort(f); f()`,
		`const o = { get x() { return this.x } }; o.x`,
		`let p = {}; for (let i = 0; i < 2e4; i++) p = new Proxy(p, {}); p.x`,
		`JSON.parse("[".repeat(5e5))`,
		`let o = []; for (let i = 0; i < 2e4; i++) o = [o]; turn.send("out", o)`,
		`let o = []; for (let i = 0; i < 1e5; i++) o = [o]; o.flat(Infinity)`,
		`let o = []; for (let i = 0; i < 1e5; i++) o = [o]; o.join()`,
		`const o = { toJSON: () => JSON.stringify(o) }; turn.state.set("k", o)`,
		`const o = { toString() { return "" + this } }; turn.send(o, "x")`,
		`const f = () => "a".replace(/a/, f); f()`,
		`const f = () => [1].map(f); f()`,
		`const f = () => Reflect.apply(f, null, []); f()`,
		`class A { constructor() { new A() } } new A()`,
		`const o = { [Symbol.iterator]: () => [...o] }; [...o]`,
		`const f = () => eval("f()"); f()`,
		`eval("(".repeat(1e5))`, `eval("[".repeat(1e5))`, `eval("a?".repeat(1e5))`, `eval("x=>".repeat(1e5))`, `eval("if(1)".repeat(1e5))`,
	} {
		w := onMessage("try { " + body + " } catch (e) { turn.output(e.name) }")
		r := play(t, m, w, false, messages("x"))[0]
		if r.err != nil || len(r.effects) != 1 || r.effects[0] != `output "RangeError"` {
			t.Errorf("%s: %v %q", body, r.err, r.effects)
		}
	}
}

// The memory of an instance does not grow with its turns.
func TestJSMemoryIsBounded(t *testing.T) {
	turns := 10_000
	if more, err := strconv.Atoi(os.Getenv("TERRARIUM_TURNS")); err == nil {
		turns = more
	}
	w := onMessage(`
		const cycle = { payload: turn.text(), list: Array.from({ length: 20 }, (_, i) => ({ i })) };
		cycle.self = cycle;
		turn.state.set("n", (turn.state.get("n") ?? 0) + 1);
		turn.sendAll({ n: turn.state.get("n"), at: new Date() });
		Promise.resolve(cycle).then((c) => c.self);
		if (/a(.)c/.exec(turn.text())?.[1] !== "b") throw new Error("no");`)
	m := builtin(t, "js")
	i, err := m.Instantiate(t.Context(), &limits, w.turn(delivery{}, true))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close(context.Background())
	var early int64
	for n := range turns {
		turn := w.turn(delivery{payload: "abc"}, false)
		if err := i.Handle(t.Context(), turn, abi.KindMessage, 3); err != nil {
			t.Fatal(n, err, turn.logs)
		}
		w.state = turn.state
		if n == turns/10 {
			early = i.MemoryBytes()
		}
	}
	if now := i.MemoryBytes(); now > early {
		t.Errorf("the memory grew from %d to %d bytes", early, now)
	}
}

// Whatever a packed script contains arrives in the interpreter.
func TestJSPackedScripts(t *testing.T) {
	module, err := plugins.Get("js")
	if err != nil {
		t.Fatal(err)
	}
	text := "\" \\ \x01 \u2028 \ufeff ü 🐸 \t`${"
	literal, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	source := "export default { message(turn) { turn.output(" + string(literal) + "); turn.output(turn.config) } };\n"
	source += strings.Repeat("// ü 🐸\n", (pack.MaxScriptBytes-len(source)-100)/len("// ü 🐸\n"))
	packed, err := pack.Script(module, "a b ü.js", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	largest := &world{config: map[string]any{"script": "not this"}}
	equal(t, run(t, compile(t, packed), largest, messages("x")...), fmt.Sprintf("output %q", text), `output "{\"script\":\"not this\"}"`)
	packed, err = pack.Script(module, "bad.js", []byte("\n\nx.y;"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	turn := w.turn(delivery{}, true)
	if _, err := compile(t, packed).Instantiate(t.Context(), &limits, turn); err == nil || !strings.Contains(strings.Join(turn.logs, ""), "(bad.js:3") {
		t.Errorf("%v %q", err, turn.logs)
	}
}

// stateful is what a turn usually does: it reads, counts, keeps and sends.
const stateful = `export default { message(turn) {
	const { step } = turn.config;
	const n = (turn.state.get("n") ?? 0) + step;
	turn.state.set("n", n);
	turn.send("out", { n, text: turn.text() }, { n });
} };`

func BenchmarkJSTurn(b *testing.B) {
	for _, c := range []struct {
		name, script string
		kind         abi.Kind
	}{
		{"stateful", stateful, abi.KindMessage},
		{"shout", "export default { message(turn) { turn.sendAll(turn.text().toUpperCase()) } };", abi.KindMessage},
		{"without a handler", stateful, abi.KindGraphChanged},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := script(c.script)
			m := builtin(b, "js")
			i, err := m.Instantiate(b.Context(), &limits, w.turn(delivery{}, true))
			if err != nil {
				b.Fatal(err)
			}
			defer i.Close(context.Background())
			for b.Loop() {
				if err := i.Handle(b.Context(), w.turn(delivery{payload: "abc"}, false), c.kind, 3); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(i.MemoryBytes()), "memory")
		})
	}
}

// BenchmarkJSSpawn measures instances after the first one, which share its memory.
func BenchmarkJSSpawn(b *testing.B) {
	w := script(stateful)
	m := builtin(b, "js")
	for b.Loop() {
		i, err := m.Instantiate(b.Context(), &limits, w.turn(delivery{}, true))
		if err != nil {
			b.Fatal(err)
		}
		if err := i.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
