// A fake host, which runs a script in unit tests, natively and without terrarium.
import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { runInThisContext } from "node:vm";

import { bytesOf, hostcalls, textOf, unused } from "./hostcalls.js";

const load = (name) => {
	const url = new URL(name, import.meta.url);
	return runInThisContext(readFileSync(url, "utf8"), { filename: url.pathname });
};

const abi = load("./abi.js");

let running; // the turn that is running
const host = hostcalls(() => running, abi);
const runtime = load("./runtime.js")(host, abi);

export const { TerrariumError } = runtime;
globalThis.TerrariumError = TerrariumError;

const RealDate = Date;
const pending = Symbol("pending");

/** randomBytes returns a generator that gives the same bytes in every test. */
function randomBytes() {
	let x = 2463534242;
	return () => {
		x ^= x << 13;
		x ^= x >>> 17;
		x ^= x << 5;
		return x & 255;
	};
}

/** globals are what a script finds in a turn instead of Node's. */
function globals() {
	class TurnDate extends RealDate {
		constructor(...args) { super(...(args.length > 0 ? args : [running.now])); }
		static now() { return running.now; }
	}
	return { console: runtime.console, Date: TurnDate };
}

// packed are headers as the contract has them.
const packed = (headers) => Object.entries(headers).map(([name, value]) => `${name}\0${value}\0`).join("");

export class FakeHost {
	config; channels; features; creatures; tools;
	self = "subject";
	now = 0;
	state = new Map();
	timers = new Map();
	sent = [];
	direct = []; // messages to one creature
	outputs = [];
	requests = [];
	https = []; // HTTP requests
	logs = [];
	#bound; #started = false; #aliases = []; #awareness = {}; #revision = 1; #markdown = ""; #random = randomBytes(); #messages = 0; #waiting = 0;

	constructor(script, { config = {}, channels = [], features, creatures, tools } = {}) {
		this.config = config;
		this.channels = channels;
		this.creatures = creatures;
		this.tools = tools;
		this.features = features ?? ["timers", "requests", "awareness", ...(tools ? ["tools"] : [])];
		this.#bound = runtime.bind(script);
	}

	/** init runs the handler init, as every other method does before its first delivery. */
	async init() {
		if (this.#started) return;
		await this.#run("init", 0, {});
		this.#started = true;
	}

	/** deliver delivers anything: sources has the sources of the contract, by name. */
	async deliver(kind, sources = {}) {
		await this.init();
		if (kind === "result") this.#waiting = Math.max(this.#waiting - 1, 0);
		return this.#run(kind, abi.kinds[kind], sources);
	}

	message(alias, payload, headers = {}, { sender = "", direct = false } = {}) {
		return this.deliver("message", {
			payload, channel: direct ? this.self : alias, sender, headers: packed(headers), message_id: `m${++this.#messages}`, detail: { direct },
		});
	}

	start() { return this.deliver("start"); }

	output(source, payload) { return this.deliver("output", { payload, detail: { source } }); }

	/** request delivers a request and returns the reply, or undefined. */
	async request(payload, { sender = "" } = {}) {
		return (await this.deliver("request", { payload, channel: this.self, sender })).reply;
	}

	/** answer delivers the reply to a request of the creature. */
	answer(tag, payload) { return this.deliver("result", { payload, detail: { tag: String(tag), code: "ok" } }); }

	/** fail delivers the failure of a request of the creature. */
	fail(tag, code, text) { return this.deliver("result", { payload: text, detail: { tag: String(tag), code } }); }

	/** respond delivers the response to an HTTP request of the creature. */
	respond(tag, status, body, headers = {}) {
		return this.deliver("result", { payload: body, headers: packed(headers), detail: { tag: String(tag), code: "ok", status } });
	}

	/** advance moves the time and fires the timers that come due, in their order. */
	async advance(ms) {
		await this.init();
		const end = this.now + ms;
		for (;;) {
			const due = [...this.timers.values()].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
			if (due === undefined) break;
			this.now = Math.max(this.now, due.at);
			if (due.periodMs > 0) this.timers.set(due.name, { ...due, at: due.at + due.periodMs });
			else this.timers.delete(due.name);
			await this.deliver("timer", { payload: due.payload, detail: { name: due.name } });
		}
		this.now = end;
	}

	/** setAwareness sets the awareness document and raises its revision. */
	setAwareness(document, markdown = "") {
		this.#awareness = document;
		this.#markdown = markdown;
		this.#revision++;
	}

	graphChanged() { return this.deliver("graph_changed", { detail: { revision: this.#revision } }); }

	/** stateText returns a state value as text, or undefined. */
	stateText(key) { return this.state.has(key) ? textOf(this.state.get(key)) : undefined; }

	#sources(kind, { detail = {}, ...sources }) {
		return {
			self: this.self, config: JSON.stringify(this.config), awareness_json: JSON.stringify(this.#awareness),
			awareness_markdown: this.#markdown, awareness_revision: String(this.#revision), ...sources,
			detail: JSON.stringify({ kind, attempt: 1, time: this.now * 1e6, ...detail }),
		};
	}

	async #run(kind, number, sources) {
		if (running) throw new Error("a turn is running: await every delivery");
		const bytes = Object.fromEntries(Object.entries(this.#sources(kind, sources)).map(([name, value]) => [name, bytesOf(value)]));
		const effects = { sent: [], direct: [], outputs: [], requests: [], https: [], reply: undefined };
		const turn = {
			kind, sources: bytes, effects, readOnly: kind === "init", now: this.now, logs: this.logs, used: unused(this.#waiting), aliases: this.#aliases,
			state: new Map(this.state), timers: new Map(this.timers), channels: this.channels, features: this.features,
			creatures: this.creatures, tools: this.tools, randomByte: this.#random,
		};
		await this.#call(turn, number);
		this.#waiting += effects.requests.length + effects.https.length;
		this.state = turn.state;
		this.timers = turn.timers;
		for (const name of ["sent", "direct", "outputs", "requests", "https"]) this[name].push(...effects[name]);
		return effects;
	}

	// #call runs a handler, with the globals of a creature, until no promise has work left.
	async #call(turn, number) {
		const own = { console: globalThis.console, Date: RealDate };
		const { random } = Math;
		running = turn;
		Object.assign(globalThis, globals());
		Math.random = runtime.random;
		try {
			const result = this.#bound[number]?.();
			const settled = await Promise.race([result, setImmediate(pending)]);
			if (settled === pending && result instanceof Promise)
				throw new TerrariumError("failed", "the handler waits for a promise that nothing resolves in this turn; results and timers arrive in later turns");
		} catch (error) {
			host.log(abi.levels.error, runtime.failure(error)[1]);
			throw error;
		} finally {
			running = undefined;
			Object.assign(globalThis, own);
			Math.random = random;
		}
	}
}
