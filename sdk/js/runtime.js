// The part of the kit between a script and the contract. builtin:js and the fake host of
// the tests both run this file, so a script finds the same turn in both.
//
// Its value is a function. host has the functions of the contract, and abi the tables of
// abi.js. The result has the turn, TerrariumError, and what runs a script.
(function (host, abi) {
	"use strict";

	const { codes, sources, kinds, features, levels } = abi;
	const codeNames = new Map(Object.entries(codes).map(([name, status]) => [status, name]));
	const kindNames = new Map(Object.entries(kinds).map(([name, kind]) => [kind, name]));
	const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

	class TerrariumError extends Error {
		#code;
		constructor(code, message) {
			if (!Object.hasOwn(codes, code)) throw new TypeError(`${text(code)} is not a code of the contract`);
			super(message);
			Object.defineProperty(this, "name", { value: "TerrariumError", configurable: true, writable: true });
			this.#code = code;
		}
		get code() { return this.#code; }
		get status() { return codes[this.#code]; }
		static is(value) { return typeof value === "object" && value !== null && #code in value; }
	}

	const invalid = (message) => new TerrariumError("invalid_argument", message);

	// check throws the host's error for a negative status.
	function check(op, status) {
		if (status >= 0) return status;
		const code = codeNames.get(status) ?? "internal";
		throw new TerrariumError(code, `${op}: ${host.text(sources.error)} (${code})`);
	}

	const wellFormed = (s) => (s.isWellFormed() ? s : s.toWellFormed());

	function text(value) {
		return typeof value === "string" ? wellFormed(value) : wellFormed(String(value));
	}

	function toJSON(value) {
		const json = JSON.stringify(value);
		if (json === undefined) throw new TypeError(`a ${typeof value} has no JSON`);
		return json;
	}

	// data returns what is sent or stored for a value: bytes as they are, a text as UTF-8,
	// anything else as JSON.
	function data(value) {
		if (typeof value === "string") return wellFormed(value);
		if (value instanceof Uint8Array) return value;
		if (value === undefined) return "";
		return toJSON(value);
	}

	const tagNumber = (tag) => (typeof tag === "bigint" ? tag : whole(tag, "tag"));

	const whole = (value, name) => {
		if (!Number.isSafeInteger(value)) throw invalid(`${name} must be a whole number`);
		return value;
	};

	// parsed returns the text of a JSON document that the host wrote.
	const parsed = (source) => JSON.parse(host.text(source) || "{}");

	function headerBytes(headers) {
		if (headers === undefined || headers === null) return "";
		let bytes = "";
		for (const [name, value] of Object.entries(headers)) {
			const pair = [text(name), text(value)];
			if (pair.some((part) => part.includes("\0"))) throw invalid("a header has a NUL");
			bytes += `${pair[0]}\0${pair[1]}\0`;
		}
		return bytes;
	}

	class State {
		get(key) {
			const value = this.getText(key);
			return value === undefined ? undefined : JSON.parse(value);
		}
		set(key, value) { this.#put(key, toJSON(value)); }
		getText(key) {
			if (!this.#find(key)) return undefined;
			const value = host.text(sources.result);
			if (value === undefined) throw invalid(`state ${text(key)}: it is not UTF-8`);
			return value;
		}
		setText(key, value) { this.#put(key, text(value)); }
		getBytes(key) { return this.#find(key) ? host.read(sources.result) : undefined; }
		setBytes(key, value) {
			if (!(value instanceof Uint8Array)) throw new TypeError("setBytes takes a Uint8Array");
			this.#put(key, value);
		}
		getWhole(key) {
			if (!this.#find(key)) return 0;
			const value = host.text(sources.result);
			if (!/^(0|-?[1-9][0-9]*)$/.test(value ?? "") || !Number.isSafeInteger(Number(value)))
				throw invalid(`state ${text(key)}: it is not a whole number`);
			return Number(value);
		}
		setWhole(key, value) { this.#put(key, String(whole(value, `state ${text(key)}: it`))); }
		delete(key) { return check("state_delete", host.stateDelete(text(key))) > 0; }
		list(prefix = "") {
			check("state_list", host.stateList(text(prefix)));
			return host.text(sources.result).split("\0").slice(0, -1);
		}
		#find(key) {
			const status = host.stateGet(text(key));
			if (status === codes.not_found) return false;
			check("state_get", status);
			return true;
		}
		#put(key, value) { check("state_set", host.stateSet(text(key), value)); }
	}

	// toolArguments writes the arguments of a tool with the names of the host.
	function toolArguments(spec, args) {
		const out = {};
		for (const [name, value] of Object.entries(args ?? {})) {
			const [real, type] = (Object.hasOwn(spec.args, name) ? spec.args[name] : name).split(" ");
			if (value === undefined) continue;
			out[real] = type === "payload" ? toolPayload(data(value)) : value;
		}
		return out;
	}

	function toolPayload(value) {
		if (typeof value === "string") return value;
		let binary = "";
		for (const byte of value) binary += String.fromCharCode(byte);
		return { base64: btoa(binary) };
	}

	function callTool(name, args) {
		check(name, host.tool(text(name), toJSON(args ?? {})));
		return JSON.parse(host.text(sources.result) || "null");
	}

	const tools = {};
	for (const [name, spec] of Object.entries(abi.tools)) tools[name] = (args) => callTool(spec.name, toolArguments(spec, args));
	Object.freeze(tools);

	const state = Object.freeze(new State());

	class Turn {
		#kind; #detail; #headers; #instance;
		constructor(kind, instance) {
			this.#kind = kind;
			this.#instance = instance;
		}

		// The delivery.
		get kind() { return this.#kind; }
		get payload() { return host.read(sources.payload); }
		text() {
			const payload = host.text(sources.payload);
			if (payload === undefined) throw invalid("the payload is not UTF-8");
			return payload;
		}
		json() { return JSON.parse(this.text()); }
		get channel() { return host.text(sources.channel); }
		get sender() { return host.text(sources.sender); }
		get messageId() { return host.text(sources.message_id); }
		get self() { return host.text(sources.self); }
		get headers() { return (this.#headers ??= readHeaders()); }
		header(name) { return Object.hasOwn(this.headers, name) ? this.headers[name] : undefined; }
		get detail() { return (this.#detail ??= parsed(sources.detail)); }
		get direct() { return this.detail.direct === true; }
		get attempt() { return this.detail.attempt ?? 1; }
		get timerName() { return this.detail.name; }
		get tag() {
			const tag = this.detail.tag;
			if (tag === undefined) return undefined;
			return Number.isSafeInteger(Number(tag)) ? Number(tag) : BigInt(tag);
		}
		get resultCode() { return this.detail.code; }
		get status() { return this.detail.status; }

		// The configuration.
		get config() { return (this.#instance.config ??= readConfig()); }
		configText(key, otherwise) {
			return attribute(this.config, key, otherwise, (v) => typeof v === "string", "a text");
		}
		configWhole(key, least, most, otherwise) {
			return attribute(this.config, key, otherwise, (v) => Number.isSafeInteger(v) && v >= least && v <= most,
				`a whole number from ${least} to ${most}`);
		}
		configBool(key, otherwise) {
			return attribute(this.config, key, otherwise, (v) => typeof v === "boolean", "true or false");
		}
		configKnows(...names) {
			for (const key of Object.keys(this.config)) {
				if (names.includes(key)) continue;
				const has = names.length > 0 ? names.join(", ") : "none";
				throw invalid(`config ${key}: the creature has no such attribute; it has ${has}`);
			}
		}

		// Effects.
		get state() { return state; }
		get tools() { return tools; }
		tool(name, args) { return callTool(name, args); }
		send(alias, value, headers) {
			const channel = check("channel", host.channel(text(alias)));
			check("send", host.send(channel, data(value), headerBytes(headers)));
		}
		sendAll(value, headers) { return check("send", host.send(abi.allChannels, data(value), headerBytes(headers))); }
		sendTo(creature, value) { check("send_to", host.sendTo(text(creature), data(value))); }
		output(value) { check("output", host.output(data(value))); }
		request(creature, value, { deadlineMs, tag = 0 }) {
			check("request", host.request(text(creature), data(value), whole(deadlineMs, "deadlineMs"), tagNumber(tag)));
		}
		http(url, { method, headers, body, tag = 0 } = {}) {
			const values = headers && Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, text(value)]));
			check("http", host.http(toJSON({ method, url: text(url), headers: values }), data(body), tagNumber(tag)));
		}
		reply(value) { check("reply", host.reply(data(value))); }
		setTimer(name, { delayMs = 0, periodMs = 0, payload } = {}) {
			check("timer_set", host.timerSet(text(name), data(payload), whole(delayMs, "delayMs"), whole(periodMs, "periodMs")));
		}
		cancelTimer(name) { return check("timer_cancel", host.timerCancel(text(name))) > 0; }

		// Awareness, and others.
		get awareness() { return parsed(sources.awareness_json); }
		get awarenessMarkdown() { return host.text(sources.awareness_markdown); }
		get awarenessRevision() { return Number(host.text(sources.awareness_revision)); }
		log(level, message) {
			if (!Object.hasOwn(levels, level)) throw invalid(`${text(level)} is not a level; use ${Object.keys(levels).join(", ")}`);
			check("log", host.log(levels[level], text(message)));
		}
		get now() { return new Date(host.nowMs()); }
		random(n) {
			const bytes = new Uint8Array(n);
			check("random", host.random(bytes));
			return bytes;
		}
		get fuelLeft() { return host.fuelLeft(); }
		hasFeature(name) { return Object.hasOwn(features, name) && host.feature(features[name]) === 1; }
	}
	Object.freeze(Turn.prototype);

	function readHeaders() {
		const parts = host.text(sources.headers, true).split("\0");
		const headers = {};
		for (let i = 0; i + 1 < parts.length; i += 2)
			Object.defineProperty(headers, parts[i], { value: parts[i + 1], enumerable: true, writable: true, configurable: true });
		return headers;
	}

	// The configuration does not change while an instance lives. It is frozen, because a turn
	// must not change what the next one reads.
	function readConfig() {
		const config = parsed(sources.config);
		if (host.scriptIsConfig) delete config.script;
		return deepFreeze(config);
	}

	function deepFreeze(value) {
		if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
		return value;
	}

	function attribute(config, key, otherwise, valid, what) {
		const value = Object.hasOwn(config, key) ? config[key] : otherwise;
		if (value === undefined) throw new TerrariumError("not_found", `config ${key}: it is required`);
		if (value !== otherwise && !valid(value)) throw invalid(`config ${key}: it must be ${what}`);
		return value;
	}

	// show writes a value for the log.
	function show(value) {
		if (typeof value === "string") return value;
		if (value instanceof Error) return describe(value);
		if (typeof value === "object" && value !== null) {
			try {
				return JSON.stringify(value) ?? String(value);
			} catch {
				return Object.prototype.toString.call(value);
			}
		}
		return String(value);
	}

	const logger = (level) => (...values) => {
		// A log line that the host refuses does not stop a script.
		host.log(levels[level], text(values.map(show).join(" ")));
	};
	const console = {};
	for (const [name, level] of [["log", "info"], ["info", "info"], ["warn", "warn"], ["error", "error"], ["debug", "debug"]])
		console[name] = logger(level);

	// describe returns what is said about an exception: its text, and where the script
	// threw it. An error with a code has its text alone, as in every kit.
	function describe(error) {
		if (TerrariumError.is(error)) return text(error.message);
		if (!(error instanceof Error)) return show(error);
		const message = text(error.message);
		const name = text(error.name);
		const lines = String(error.stack ?? "").split("\n").filter((line) => /^ +at /.test(line) && !/\bterrarium\/|runtime\.js|node:|fake\.js/.test(line) && !/\(native\)$/.test(line));
		return [name === "Error" ? message : `${name}: ${message}`, ...lines].join("\n");
	}

	// failure returns the status and the text with which an exception fails a turn.
	function failure(error) {
		try {
			return [TerrariumError.is(error) ? error.status : codes.failed, describe(error)];
		} catch {
			return [codes.failed, "the script threw a value that cannot be shown"];
		}
	}

	// handlerNames lists the handlers that a script may have, by kind.
	const handlers = new Map([...kindNames].map(([kind, name]) => [kind, camel(name)]));

	// bind takes the default export of a script and returns a function that handles the
	// delivery of a kind; undefined for a kind without a handler. Kind 0 is init.
	function bind(script) {
		if (typeof script !== "object" || script === null)
			throw new TypeError("the script exports no handlers: write export default { message(turn) { … } }");
		const bound = [];
		const instance = {};
		for (const [kind, name] of [[0, "init"], ...handlers]) {
			const handler = script[name];
			if (handler === undefined) continue;
			if (typeof handler !== "function") throw new TypeError(`the handler ${name} is not a function`);
			const kindName = kindNames.get(kind) ?? name;
			bound[kind] = () => handler.call(script, new Turn(kindName, instance));
		}
		return bound;
	}

	const random = (() => {
		const bytes = new Uint8Array(8);
		const words = new Uint32Array(bytes.buffer);
		return () => {
			host.random(bytes);
			return ((words[0] >>> 5) * 0x4000000 + (words[1] >>> 6)) / 0x20000000000000;
		};
	})();

	// absent lists functions of other hosts, and what to use here.
	const absent = {
		setTimeout: "use turn.setTimer", setInterval: "use turn.setTimer", setImmediate: "use turn.setTimer",
		fetch: "use turn.http", require: "a creature is one file",
	};

	// The objects that a script can reach through a turn.
	const reachable = [Turn, state, tools];

	return { TerrariumError, reachable, console, random, bind, failure, absent };
})
