package hostile

import (
	"encoding/json"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/plugins"
)

// scripts returns scripts that attack the interpreter of builtin:js and, through it, the
// host.
func scripts() []Module {
	failed := func(says ...string) []End { return once(abi.ExportHandle, abi.Failed, says...) }
	const tooDeep, full = "Maximum call stack size exceeded", "out of memory"
	return []Module{
		onMessage("js-loop", "the worker: a script that does not return", "for (;;);", stoppedScript(abi.ExportHandle)),
		onMessage("js-regexp", "the worker: a regular expression that tries 2⁴⁰ ways to match", `/(a*)*b/.test("a".repeat(40))`, stoppedScript(abi.ExportHandle)),
		onMessage("js-promises", "the end of the turn: promises without end", "return (async () => { for (;;) await null })()", stoppedScript(abi.ExportHandle)),
		onMessage("js-error-text", "the text of an error: one that does not end", "throw { toJSON() { for (;;); } }", stoppedScript(abi.ExportHandle)),
		scripted("js-loop-in-script", "adding a creature: a script that does not end while it is loaded", "for (;;);", stoppedScript(abi.ExportInit)),
		scripted("js-syntax", "the compiler: a script that is not JavaScript", "export default { message( }", once(abi.ExportInit, abi.Failed, "SyntaxError", ".js:1")),
		scripted("js-nested-source", "the compiler: 100,000 brackets inside each other", `eval("[".repeat(100000))`, once(abi.ExportInit, abi.Failed, tooDeep)),
		onMessage("js-recursion", "the stack: a function that calls itself", "const f = (n) => f(n + 1) + 1; f(0)", failed(tooDeep)),
		onMessage("js-nested-json", "the stack: a value nested 10,000 times, as JSON", "let v = []; for (let i = 0; i < 10000; i++) v = [v]; turn.output(v)", failed(tooDeep)),
		onMessage("js-nested-text", "the stack: JSON nested 500,000 times", `JSON.parse("[".repeat(500000))`, failed(tooDeep)),
		onMessage("js-proxies", "the stack: 10,000 proxies around each other", "let p = {}; for (let i = 0; i < 10000; i++) p = new Proxy(p, {}); p.x", failed(tooDeep)),
		onMessage("js-strings", "the memory: a text that doubles", `let s = "x"; for (;;) s += s`, failed("string too long")),
		onMessage("js-objects", "the memory: objects without end", "const all = []; for (;;) all.push({ all })", failed("the memory is used up")),
		onMessage("js-buffer", "the memory: a buffer of a gigabyte", "new Uint8Array(1e9).fill(1)", failed(full)),
		onMessage("js-array", "the memory: an array of 2³²−1 elements", "new Array(2 ** 32 - 1).fill(0)", failed(full)),
		onMessage("js-bigint", "the memory: a number that squares itself", "for (let n = 2n; ; ) n *= n", failed("BigInt is too large")),
		onMessage("js-replacements", "the memory: a replacement that contains what it replaces", `let s = "xx"; for (;;) s = s.replaceAll("x", "$'$'x")`, failed(full)),
		onMessage("js-memory-again", "the memory: the error for lack of memory, caught again and again", "for (let i = 0; i < 3; i++) try { new Uint8Array(1e9) } catch {}", comesToNothing()),
		onMessage("js-getter", "the conversion of a value: a getter that throws", `turn.send("loot", { get x() { throw new Error("from the getter") } })`, failed("from the getter")),
		onMessage("js-getter-sends", "the conversion of a value: a getter that sends", `turn.send("loot", { get x() { turn.output("again"); return 1 } })`, comesToNothing()),
		onMessage("js-detached", "the conversion of a value: bytes that disappear while the alias is converted",
			`const b = new Uint8Array(1000); turn.send({ toString() { b.buffer.transfer(); return "loot" } }, b)`, failed("ArrayBuffer is detached")),
		onMessage("js-shrinking", "the conversion of a value: bytes that shrink while the headers are converted",
			`const b = new ArrayBuffer(1000, { maxByteLength: 2000 }); turn.send("loot", new Uint8Array(b), { get x() { b.resize(1); return 1 } })`, comesToNothing()),
		onMessage("js-proxy-thrown", "the text of an error: a proxy that throws when it is looked at",
			"throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })", failed("a value that cannot be shown")),
		onMessage("js-prototypes", "the next turn: a prototype that the kit uses", `Map.prototype.get = Array.prototype[Symbol.iterator] = () => 1`, failed("TypeError")),
		onMessage("js-sends", "the channels: messages without end", `for (;;) turn.sendAll("x")`, once(abi.ExportHandle, abi.LimitExceeded, "limit sends")),
		onMessage("js-huge-message", "the channels: a message of 2 MiB", `turn.sendAll("x".repeat(2 ** 21))`, once(abi.ExportHandle, abi.TooLarge, "limit message")),
		onMessage("js-log", "the log: lines without end", `for (;;) console.log("x")`, []End{{
			Limits: abi.Limits{Calls: 10_000}, In: abi.ExportHandle, Code: abi.LimitExceeded, Says: []string{"limit calls"},
		}}),
	}
}

// stoppedScript is stopped for scripts: the start of the interpreter takes more than
// littleFuel.
func stoppedScript(in string) []End {
	ends := stopped(in)
	ends[0].Limits.Fuel *= 10
	return ends
}

// onMessage returns a script whose handler for messages has that body.
func onMessage(name, attacks, body string, ends []End) Module {
	return scripted(name, attacks, "export default { message(turn) { "+body+" } };", ends)
}

func scripted(name, attacks, script string, ends []End) Module {
	config, err := json.Marshal(map[string]string{"script": script})
	if err != nil {
		config = nil // a text always has JSON
	}
	return Module{Name: name, Attacks: attacks, Build: interpreter, Config: string(config), Ends: ends}
}

// interpreter returns the module of builtin:js, which is embedded.
func interpreter() []byte {
	module, err := plugins.Get("js")
	if err != nil {
		return nil
	}
	return module
}
