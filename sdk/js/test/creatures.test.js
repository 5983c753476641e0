// Tests of the reference creatures with the fake host.
import assert from "node:assert/strict";
import { test } from "node:test";

import oracle from "../examples/oracle.js";
import picky from "../examples/picky.js";
import scout from "../examples/scout.js";
import shout from "../examples/shout.js";
import tally from "../examples/tally.js";
import ticker from "../examples/ticker.js";
import { FakeHost, TerrariumError } from "../fake.js";

const payloads = (messages) => messages.map((message) => message.payload);

test("shout keeps bytes that are not letters", async () => {
	const host = new FakeHost(shout, { channels: ["a", "b"] });
	await host.message("in", "frog 7 ü");
	await host.message("in", Uint8Array.of(0xff, 0x61));
	assert.deepEqual(payloads(host.sent), ["FROG 7 ü", "FROG 7 ü", "\ufffdA", "\ufffdA"]);
	assert.deepEqual(host.sent[2].bytes, Uint8Array.of(0xff, 0x41));
});

test("tally counts", async () => {
	const host = new FakeHost(tally, { config: { step: 2, prefix: "the " }, channels: ["counts"] });
	for (const text of ["?", "frog", "frog", "newt", "?", "-newt", "-newt"]) await host.message("in", text);
	assert.deepEqual(host.outputs, ["empty\n", "frog=4\nnewt=2\n"]);
	assert.deepEqual(payloads(host.sent), ["the frog=2", "the frog=4", "the newt=2", "newt removed", "newt unknown"]);
	assert.deepEqual(host.sent[1].headers, { count: "4" });
	assert.equal(host.stateText("n/frog"), "4");
});

test("tally refuses a configuration", async () => {
	for (const [config, message] of [
		[{ step: 0 }, "config step: it must be a whole number from 1 to 1000000"],
		[{ step: 1.5 }, "config step: it must be a whole number from 1 to 1000000"],
		[{ prefix: 7 }, "config prefix: it must be a text"],
		[{ stepp: 1 }, "config stepp: the creature has no such attribute; it has step, prefix"],
	]) {
		const host = new FakeHost(tally, { config });
		await assert.rejects(host.init(), { code: "invalid_argument", message });
		assert.deepEqual(host.logs, [`error ${message}`]);
	}
});

test("ticker sets timers", async () => {
	const host = new FakeHost(ticker, { config: { limit: 3 }, channels: ["out"] });
	await host.start();
	await host.advance(999);
	assert.deepEqual(host.sent, []);
	await host.advance(1501);
	await host.message("in", "in 100 soon hello there");
	await host.advance(1500);
	assert.deepEqual(payloads(host.sent), ["tick 1 at 1000", "tick 2 at 2000", "soon: hello there", "tick 3 at 3000"]);
	await host.message("in", "stop");
	assert.deepEqual(host.logs, ["info done after 3 ticks", "info was not running"]);
	await assert.rejects(host.message("in", "in -1 a b"), { code: "failed", message: "unknown command: in -1 a b" });
});

test("oracle asks and answers", async () => {
	const host = new FakeHost(oracle, { channels: ["answers"], creatures: ["sage"] });
	await host.message("in", "ask sage why not");
	assert.deepEqual(host.requests.map(({ creature, payload, deadlineMs, tag }) => ({ creature, payload, deadlineMs, tag })),
		[{ creature: "sage", payload: "why not", deadlineMs: 1000, tag: 1 }]);
	await host.answer(1, "because");
	await host.fail(2, "deadline", "too late");
	assert.deepEqual(payloads(host.sent), ["#1 ok: because", "#2 deadline: too late"]);
	await assert.rejects(host.message("in", "tell nobody x"), { code: "not_found" });
	await host.message("in", "tell sage x");
	assert.equal(host.direct[0].payload, "x");
	await host.message("in", "draw");
	await host.message("in", "hello", {}, { direct: true, sender: "frog" });
	assert.deepEqual(host.outputs, ["different", "direct from frog: hello"]);
	assert.equal(await host.request("why"), "you asked: why");
	assert.equal(await host.request("silence"), undefined);
	await assert.rejects(host.request("refuse"), { code: "denied", message: "I refuse" });
	await assert.rejects(host.request("twice"), { message: "reply: the request has a reply already; reply once (already_exists)" });
});

test("scout calls tools and reads the awareness document", async () => {
	const calls = [];
	const host = new FakeHost(scout, {
		tools(name, args) {
			calls.push([name, args]);
			if (name === "group_send") throw new TerrariumError("not_found", "there is none");
			return name === "group_status" ? { creatures: [{ name: "a" }, { name: "b" }] } : { name: "ted" };
		},
	});
	await host.start();
	host.setAwareness({ channels: { items: [{ listen: "in" }, { send: "out" }, { listen: "water" }] } }, "# `subject`\n");
	await host.graphChanged();
	for (const text of ["members", "title", "make pond", "tell frog hi", "spawn tadpole ted", "route frog", "say out hello there"]) await host.message("in", text);
	assert.deepEqual(host.outputs, [
		"subject starts at revision 1", "revision 2: listens on in, water", "members: a, b", "# `subject`", "made pond",
		"group_send: not_found", "spawned ted", "routed to frog",
	]);
	assert.deepEqual(calls.at(-2), ["group_wire", { action: "add", from: "subject", to: "frog", with_content: true }]);
	assert.deepEqual(calls.at(-1), ["send_channel", { channel: "out", payload: "hello there", headers: { tone: "loud" } }]);
	await assert.rejects(host.message("in", "dance"), { message: "unknown command: dance" });
	const bare = new FakeHost(scout);
	await bare.message("in", "members");
	assert.deepEqual(bare.outputs, ["no tools"]);
});

test("picky fails", async () => {
	const host = new FakeHost(picky, { config: { want: "fly" }, channels: ["out"] });
	const send = (payload) => host.message("in", payload, { want: "fly", colour: "green" });
	await send("echo");
	assert.deepEqual(host.sent[0].headers, { want: "fly", colour: "green", seen: "yes" });
	for (const [payload, code, message] of [
		["big", "too_large", 'state_set: the value of "big" has 1048577 bytes; the limit state_value is 1048576; split the value, or raise the limit (too_large)'],
		["alias", "not_connected", 'send: the creature has no send alias "nowhere"; connect the creature to a channel under that alias (not_connected)'],
		["key", "invalid_argument", "state_set: a key is UTF-8 without NUL and not empty; use another key (invalid_argument)"],
		["fail", "failed", "it went wrong"],
		["denied", "denied", "not today"],
		[Uint8Array.of(0xfe), "invalid_argument", "the payload is not UTF-8"],
		["12345678901", "too_large", "the payload has 11 bytes, and at most 10 are allowed"],
	]) {
		await assert.rejects(send(payload), { code, message });
		assert.equal(host.logs.at(-1), `error ${message}`);
	}
	await assert.rejects(send("panic"), { message: "out of cheese" });
	assert.match(host.logs.at(-1), /^error out of cheese\n +at .*picky\.js:\d+/);
	for (const payload of ["caught", "missing", "fuel", "ok"]) await send(payload);
	assert.deepEqual(host.outputs, ["caught too_large", "no state", "not counted", "ok"]);
	await assert.rejects(host.message("in", "echo"), { message: "the header want is missing" });
	await assert.rejects(new FakeHost(picky).init(), { code: "not_found", message: "config want: it is required" });
});
