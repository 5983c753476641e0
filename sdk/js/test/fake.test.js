// Tests of the fake host, and of what every turn has.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FakeHost } from "../fake.js";

const host = (message, options) => new FakeHost({ message }, options);

test("a failed turn has no effects but its log lines", async () => {
	const h = host((turn) => {
		turn.state.set("n", 1);
		turn.sendAll("x");
		turn.output("x");
		turn.setTimer("t");
		console.log("here", { a: 1 }, undefined);
		throw new Error("no");
	}, { channels: ["out"] });
	await assert.rejects(h.message("in", ""));
	assert.deepEqual([h.state.size, h.sent, h.outputs, h.timers.size], [0, [], [], 0]);
	assert.equal(h.logs[0], 'info here {"a":1} undefined');
	assert.match(h.logs[1], /^error no\n/);
});

test("init may only read", async () => {
	const h = new FakeHost({ init(turn) { turn.output("x"); } });
	await assert.rejects(h.start(), { code: "denied" });
});

test("time and random numbers are those of the turn", async () => {
	const drawn = [];
	const h = host((turn) => drawn.push(Date.now(), new Date().getTime(), turn.now.getTime(), Math.random()));
	h.now = 5000;
	await h.message("in", "");
	assert.deepEqual(drawn.slice(0, 3), [5000, 5000, 5000]);
	assert.ok(drawn[3] >= 0 && drawn[3] < 1);
	const before = Date.now();
	assert.ok(before > 5000, "Date is Node's again after the turn");
});

test("promises end with the turn", async () => {
	const h = host(async (turn) => {
		await null;
		if (turn.text() === "wait") await new Promise(() => {});
		turn.output("done");
	});
	await h.message("in", "");
	assert.deepEqual(h.outputs, ["done"]);
	await assert.rejects(h.message("in", "wait"), { message: /nothing resolves in this turn/ });
});

test("values are sent as text, as bytes or as JSON", async () => {
	const h = host((turn) => [turn.text(), Uint8Array.of(1, 2), { a: [1] }, 7, null, "\ud800"].forEach((v) => turn.output(v)));
	await h.message("in", "a");
	assert.deepEqual(h.outputs, ["a", "\u0001\u0002", '{"a":[1]}', "7", "null", "\ufffd"]);
});

test("state has texts, bytes, numbers and JSON", async () => {
	const h = host((turn) => {
		const { state } = turn;
		state.set("json", { a: 1 });
		state.setText("text", "ü");
		state.setBytes("bytes", Uint8Array.of(255));
		state.setWhole("whole", -3);
		assert.deepEqual(state.get("json"), { a: 1 });
		assert.deepEqual(state.getBytes("bytes"), Uint8Array.of(255));
		assert.equal(state.getWhole("whole"), -3);
		assert.equal(state.getWhole("missing"), 0);
		assert.equal(state.get("missing"), undefined);
		assert.throws(() => state.getText("bytes"), { message: "state bytes: it is not UTF-8" });
		assert.throws(() => state.getWhole("text"), { message: "state text: it is not a whole number" });
		assert.throws(() => state.setWhole("whole", 0.5), { code: "invalid_argument" });
		assert.throws(() => state.set("f", () => 1), TypeError);
		assert.deepEqual(state.list(), ["bytes", "json", "text", "whole"]);
		assert.equal(state.delete("json"), true);
		assert.equal(state.delete("json"), false);
	});
	await h.message("in", "");
	assert.deepEqual([...h.state.keys()].sort(), ["bytes", "text", "whole"]);
});

test("limits hold", async () => {
	const h = host((turn) => {
		const large = "x".repeat(1048577);
		assert.throws(() => turn.sendAll(large), { code: "too_large" });
		assert.throws(() => turn.sendTo("a", large), { code: "too_large" });
		assert.throws(() => turn.state.setText("k", large), { code: "too_large" });
		assert.throws(() => turn.state.setText("k".repeat(513), ""), { code: "too_large" });
		assert.throws(() => turn.sendAll("x", { "Terrarium-X": "1" }), { code: "invalid_argument" });
		assert.throws(() => turn.sendAll("x", { a: "\0" }), { code: "invalid_argument" });
		assert.throws(() => turn.reply("x"), { code: "denied" });
	});
	await h.message("in", "");
});

test("a long text of an error is cut", async () => {
	const h = host(() => { throw new TerrariumError("failed", "\u00e4".repeat(40000)); });
	await assert.rejects(h.message("in", ""));
	assert.equal(h.logs[0], `error ${"\u00e4".repeat(32766)}\u2026`);
	const flood = host(() => { for (let i = 0; i < 300; i++) console.log(i); });
	await flood.message("in", "");
	assert.equal(flood.logs.length, 256);
});

test("mistakes of a script are named", () => {
	assert.throws(() => new FakeHost(undefined), { message: /exports no handlers/ });
	assert.throws(() => new FakeHost({ message: 1 }), { message: "the handler message is not a function" });
	assert.throws(() => new TerrariumError("nope", "x"), { message: "nope is not a code of the contract" });
});

test("HTTP requests are recorded, and answered", async () => {
	const h = new FakeHost({
		message(turn) {
			turn.http("https://example.com/v1", { method: "POST", headers: { "x-number": 7 }, body: { frogs: 2 }, tag: 5 });
			turn.http("https://example.com/v2");
		},
		result(turn) { turn.output([turn.tag, turn.status, turn.header("content-type"), turn.text()].join(" ")); },
	}, { features: ["http"] });
	await h.message("in", "");
	assert.deepEqual(h.https.map(({ head, body, tag }) => ({ head, body, tag })), [
		{ head: { method: "POST", url: "https://example.com/v1", headers: { "x-number": "7" } }, body: '{"frogs":2}', tag: 5 },
		{ head: { url: "https://example.com/v2" }, body: "", tag: 0 },
	]);
	await h.respond(5, 201, "made", { "content-type": "text/plain" });
	assert.deepEqual(h.outputs, ["5 201 text/plain made"]);
});

test("HTTP requests are refused where the host has none, and above the limits", async () => {
	const without = host((turn) => turn.http("https://example.com"));
	await assert.rejects(without.message("in", ""), { code: "unsupported" });
	const many = new FakeHost({ message(turn) { for (let i = 0; i < 1025; i++) turn.http("https://example.com"); } }, { features: ["http"] });
	await assert.rejects(many.message("in", ""), { code: "limit" });
	assert.deepEqual(many.https, []);
	const wrong = new FakeHost({ message(turn) { turn.http("https://example.com", { tag: 0.5 }); } }, { features: ["http"] });
	await assert.rejects(wrong.message("in", ""), { code: "invalid_argument" });
});
