// The fake host answers as the host: sdk/reference/probes.txt has the answers of the host,
// and describes its lines.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInThisContext } from "node:vm";

import { hostcalls, unused } from "../hostcalls.js";

const abi = runInThisContext(readFileSync(new URL("../abi.js", import.meta.url), "utf8"));
const [, ...groups] = readFileSync(new URL("../../reference/probes.txt", import.meta.url), "utf8").trimEnd().split("\n\n");

// What a script cannot say: a text that is not UTF-8. And scripts have no call for an attribute of the configuration.
const foreign = (line) => line.includes("%ff") || line.startsWith("config ");

function decoded(word, made) {
	if (word === "-") return "";
	const [letter, times] = word.split("^");
	return times ? letter.repeat(Number(times)) : decodeURIComponent(word.replace("#", made));
}

const calls = (host, [name, text], payload, [a, b]) => ({
	send() {
		const channel = host.channel(name);
		return channel < 0 ? channel : host.send(channel, payload, text);
	},
	send_all: () => host.send(abi.allChannels, payload, text),
	send_to: () => host.sendTo(name, payload),
	request: () => host.request(name, payload, a, b),
	reply: () => host.reply(payload),
	output: () => host.output(payload),
	state_get: () => host.stateGet(name),
	state_set: () => host.stateSet(name, payload),
	state_delete: () => host.stateDelete(name),
	state_list: () => host.stateList(name),
	timer_set: () => host.timerSet(name, payload, a, b),
	timer_cancel: () => host.timerCancel(name),
	log: () => host.log(a, "\0".repeat(payload.length)),
	tool: () => Math.min(host.tool(name, text), 0),
});

function answer(host, call) {
	const [op, name, text, ...numbers] = call.split(" ");
	const [size, a, b, times] = numbers.map(Number);
	const payload = new Uint8Array(size);
	let made = 0;
	let status = 0;
	for (; made < times; made++) {
		status = calls(host, [decoded(name, made), decoded(text, made)], payload, [a, b])[op]();
		if (status < 0) break;
	}
	return `${made} ${status}`;
}

const tools = (name) => {
	if (name !== "group_status") throw Object.assign(new Error("there is no such tool"), { code: "not_found" });
	return {};
};

for (const group of groups) {
	const [title, ...lines] = group.split("\n");
	test(`answers as the host: ${title}`, () => {
		const turn = {
			kind: title.startsWith("request ") ? "request" : "message", sources: {}, effects: { sent: [], direct: [], outputs: [], requests: [], https: [] }, readOnly: false,
			now: 0, logs: [], used: unused(0), aliases: [], state: new Map(), timers: new Map(), channels: ["out", "common"], features: [], creatures: ["frog"],
			tools: title === "turn tools" ? tools : undefined,
		};
		const host = hostcalls(() => turn, abi);
		for (const line of lines.filter((line) => !foreign(line))) {
			const call = line.slice(0, line.indexOf("= ") + 2);
			assert.equal(call + answer(host, call), line);
		}
	});
}
