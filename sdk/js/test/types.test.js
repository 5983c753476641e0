// Proves that terrarium.d.ts declares exactly the members that exist.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { FakeHost } from "../fake.js";

const declarations = readFileSync(new URL("../terrarium.d.ts", import.meta.url), "utf8");

/** declared returns the names of the members of an interface or a class. */
function declared(name) {
	const body = new RegExp(`(?:interface|class) ${name} \\{\n(.*?)\n\\}`, "s").exec(declarations)[1];
	return [...body.matchAll(/^\t(?:readonly )?(\w+)[(?:]/gm)].map((member) => member[1]).sort();
}

const members = (prototype) => Object.getOwnPropertyNames(prototype).sort();

test("the types have every member of the turn and of the state", async () => {
	const seen = {};
	const host = new FakeHost({
		message(turn) {
			seen.turn = members(Object.getPrototypeOf(turn));
			seen.state = members(Object.getPrototypeOf(turn.state));
		},
	});
	await host.message("in", "");
	assert.deepEqual(declared("Turn"), seen.turn.filter((name) => name !== "constructor"));
	assert.deepEqual(declared("State"), seen.state.filter((name) => name !== "constructor"));
	assert.deepEqual(declared("FakeHost").filter((name) => !Object.hasOwn(host, name)), members(FakeHost.prototype));
});
