import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeHost } from "terrarium-assemblyscript/fake";

const module = (name) => new URL(`../build/${name}.wasm`, import.meta.url);

/** Runs a test with a warm instance, and with a fresh one for every turn. */
function both(name, run) {
  for (const fresh of [false, true]) {
    test(`${name}, ${fresh ? "fresh" : "warm"}`, () => run((options) => new FakeHost(module(name), { ...options, fresh })));
  }
}

both("shout", (make) => {
  const host = make({ channels: ["loud", "log"] });
  host.start();
  host.message("in", "frog é 1");
  host.message("in", Uint8Array.of(0x61, 0xff));
  assert.deepEqual(host.sent[0], { channel: "loud", payload: "FROG é 1", headers: {} });
  assert.equal(host.sent[1].channel, "log");
  assert.deepEqual(host.sent[2].payload, Uint8Array.of(0x41, 0xff));
});

both("tally", (make) => {
  const host = make({ channels: ["counts"], config: { step: 7, prefix: "> " } });
  host.message("in", "frog");
  host.message("in", "ünï");
  host.message("in", "-newt");
  host.message("in", "?");
  assert.deepEqual(host.sent.map((s) => s.payload), ["> frog=7", "> ünï=7", "newt unknown"]);
  assert.deepEqual(host.sent[0].headers, { count: "7" });
  assert.deepEqual(host.outputs, ["frog=7\nünï=7\n"]);
  for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf4, 0x90, 0x80, 0x80]]) {
    const failure = { code: "invalid_argument", message: "the payload is not UTF-8" };
    assert.throws(() => host.message("in", Uint8Array.from(bad)), failure);
  }
  host.state.set("n/frog", "many");
  const failure = { code: "invalid_argument", message: "state n/frog: it is not a whole number" };
  assert.throws(() => host.message("in", "frog"), failure);
  assert.equal(host.state.get("n/frog"), "many");
});

test("tally refuses a wrong configuration", () => {
  const init = (config) => () => new FakeHost(module("tally"), { config }).init();
  assert.throws(init({ step: "7" }), { message: "config step: it must be a whole number from 1 to 1000000" });
  assert.throws(init({ prefix: 7 }), { message: "config prefix: it must be a text" });
  assert.throws(init({ stepp: 7 }), { message: "config stepp: the creature has no such attribute; it has step, prefix" });
});

both("ticker", (make) => {
  const host = make({ channels: ["out"], config: { every_ms: 100, limit: 3 } });
  host.start();
  host.message("in", "in 250 tea is ready");
  host.advance(1000);
  assert.deepEqual(host.sent.map((s) => s.payload), ["tick 1 at 100", "tick 2 at 200", "tea: is ready", "tick 3 at 300"]);
  assert.deepEqual(host.logs, [{ level: "info", text: "done after 3 ticks" }]);
  assert.equal(host.timers.size, 0);
  assert.throws(() => host.message("in", "in -1 a b"), { code: "failed", message: "unknown command: in -1 a b" });
});

both("oracle", (make) => {
  const host = make({ channels: ["answers"] });
  assert.equal(host.request("why"), "you asked: why");
  assert.equal(host.request("silence"), null);
  assert.throws(() => host.request("refuse"), { code: "denied", message: "I refuse" });
  assert.throws(() => host.request("twice"), { code: "already_exists", message: /^reply: .* \(already_exists\)$/ });
  host.message("in", "ask sage what is a pond");
  assert.deepEqual(host.requests, [{ to: "sage", payload: "what is a pond", deadline: 1000, tag: 1n }]);
  host.answer(1, Uint8Array.of(0xff));
  host.message("in", "ask sage more");
  host.fail(2, "deadline", "too late");
  assert.deepEqual(host.sent[0].payload, new Uint8Array([...Buffer.from("#1 ok: "), 0xff]));
  assert.equal(host.sent[1].payload, "#2 deadline: too late");
  host.message("in", "draw");
  host.message("in", "hello", { direct: true, sender: "newt" });
  assert.deepEqual(host.outputs, ["different", "direct from newt: hello"]);
});

both("scout", (make) => {
  const calls = [];
  const tools = (name, args) => {
    calls.push([name, args]);
    if (args.name === "taken") throw Object.assign(new Error("it exists"), { code: "already_exists" });
    return name === "group_status" ? { creatures: [{ name: "a" }, { name: "b \"q\"" }] } : { name: args.name };
  };
  const host = make({ name: "scout", tools });
  host.start();
  host.setAwareness({ channels: { items: [{ listen: "in" }, { send: "out" }, { listen: "x" }] } }, "# `scout`\n\nmore");
  for (const text of ["members", "make pond", "make taken", "wire pond in", "spawn frog f", "route f", "say out a b", "title"]) {
    host.message("in", text);
  }
  assert.deepEqual(host.outputs, [
    "scout starts at revision 1", "revision 2: listens on in, x", "members: a, b \"q\"", "made pond", "group_channel: already_exists",
    "wired pond", "spawned f", "routed to f", "# `scout`",
  ]);
  assert.deepEqual(calls[3], ["group_channel", { action: "wire", channel: "pond", creature: "scout", direction: "listen", alias: "in" }]);
  assert.deepEqual(calls.at(-1), ["send_channel", { channel: "out", payload: "a b", headers: { tone: "loud" } }]);
});

both("picky", (make) => {
  const host = make({ channels: ["out"], config: { want: "fly", most: 6, strict: true } });
  const say = (text) => host.message("in", text, { headers: { want: "fly", other: "x" } });
  say("echo");
  assert.deepEqual(host.sent[0].headers, { want: "fly", other: "x", seen: "yes" });
  say("caught");
  say("missing");
  say("plain");
  assert.deepEqual(host.outputs, ["caught too_large", "no state", "plain"]);
  assert.throws(() => say("big"), { code: "too_large", message: /^state_set: .*1048577.* \(too_large\)$/ });
  assert.throws(() => say("alias"), { code: "not_connected" });
  assert.throws(() => say("key"), { code: "invalid_argument" });
  assert.throws(() => say("fail"), { code: "failed", message: "it went wrong" });
  assert.throws(() => say("denied"), { code: "denied", message: "not today" });
  assert.throws(() => say("panic"), { code: "trapped", message: /out of cheese \(picky\.ts:\d+:\d+\)/ });
  assert.throws(() => say("too long"), { code: "too_large", message: "the payload has 8 bytes, and at most 6 are allowed" });
  assert.throws(() => host.message("in", "echo"), { message: "the header want is missing" });
  assert.equal(host.state.size, 0);
  // A long text of an error is cut at the end of a character.
  assert.throws(() => host.message("in", "echo", { headers: { want: "\u00e4".repeat(40000) } }), { code: "invalid_argument" });
  const words = host.logs.at(-1).text;
  assert.match(words, /^the header want is \u00e4+\u2026$/);
  assert.equal(Buffer.byteLength(words), 65536);
});

test("memory does not grow with the number of turns", () => {
  const host = new FakeHost(module("tally"), { channels: ["counts"] });
  const turn = (i) => {
    host.message("in", `word ${i % 4}`);
    host.sent.length = 0;
  };
  for (let i = 0; i < 1000; i++) turn(i);
  const { memory } = host.instance.exports;
  const settled = memory.buffer.byteLength;
  for (let i = 0; i < 100_000; i++) turn(i);
  assert.equal(host.instance.exports.memory, memory, "the instance is still the same");
  assert.equal(memory.buffer.byteLength, settled);
});
