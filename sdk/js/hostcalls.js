// The functions of the contract for the fake host. They return numbers, as the host does;
// runtime.js makes errors of them.
import { limits } from "./limits.js";

const encoder = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lossy = new TextDecoder("utf-8", { ignoreBOM: true });

export const bytesOf = (value) => (typeof value === "string" ? encoder.encode(value) : Uint8Array.from(value ?? []));

export const textOf = (bytes) => lossy.decode(bytes);

const ellipsis = bytesOf("…"); // ends a log line that was cut

/** shortened cuts a log line to at most size bytes, with the ellipsis. */
function shortened(bytes, size) {
	let end = size - ellipsis.length;
	while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;
	return textOf(bytes.subarray(0, end)) + "…";
}

/** unused is what a turn has used of its limits when it begins. waiting is the number of requests without a result. */
export const unused = (waiting) => ({ waiting, sends: 0, sendBytes: 0, output: 0, tools: 0, written: new Set(), state: undefined, logLines: 0, logBytes: 0 });

/** hostcalls returns the functions for runtime.js. turn() returns the turn that is running. */
export function hostcalls(turn, abi) {
	const { codes, sources } = abi;
	const sourceNames = new Map(Object.entries(sources).map(([name, number]) => [number, name]));
	const fail = (code, message) => {
		turn().sources.error = bytesOf(message);
		return codes[code];
	};
	const over = (limit) => fail("limit", `the limit ${limit} (${limits[limit]}) is reached; do less in one turn, or raise the limit`);
	const read = (source) => turn().sources[sourceNames.get(source)] ?? new Uint8Array();
	const result = (bytes) => ((turn().sources.result = bytes), bytes.length);

	// effect makes a function that does nothing while the creature may only read.
	const effect = (perform) => (...args) => (turn().readOnly ? fail("denied", "the phase is read-only; do it in a turn") : perform(...args));

	// checkName checks a key of the state or the name of a timer.
	function checkName(what, name) {
		const { length } = bytesOf(name);
		if (length > limits.state_key) return fail("too_large", `the ${what} has ${length} bytes; the limit state_key is ${limits.state_key}; use a shorter ${what}`);
		if (length === 0 || name.includes("\0")) return fail("invalid_argument", `a ${what} is UTF-8 without NUL and not empty; use another ${what}`);
		return 0;
	}

	// cost is what a key counts against the limit of the state.
	const cost = (key, value) => (value === undefined ? 0 : bytesOf(key).length + value.length + 32);

	// written counts the keys that the turn has written.
	function written(key) {
		const { written } = turn().used;
		if (!written.has(key) && written.size >= limits.state_writes) return over("state_writes");
		written.add(key);
		return 0;
	}

	function parseHeaders(packed) {
		const parts = packed.split("\0");
		const headers = {};
		for (let i = 0; i + 1 < parts.length; i += 2) headers[parts[i]] = parts[i + 1];
		return headers;
	}

	function badHeaders(packed) {
		const parts = packed.split("\0");
		const names = parts.filter((_, i) => i % 2 === 0).slice(0, -1);
		if (parts.at(-1) !== "" || parts.length % 2 === 0 || names.includes("")) return fail("invalid_argument", "the headers are malformed; a name is not empty, and no NUL is in it");
		const name = names.find((name) => name.toLowerCase().startsWith("terrarium-"));
		return name === undefined ? 0 : fail("invalid_argument", `the header name ${JSON.stringify(name)} is reserved; use another name`);
	}

	const unknown = (creature) =>
		turn().creatures && !turn().creatures.includes(creature)
			? fail("not_found", `there is no creature ${JSON.stringify(creature)} in this graph; name a creature of this graph, by its id or name`)
			: 0;

	const tooLarge = (length) =>
		length > limits.message
			? fail("too_large", `the message has ${length} bytes; the limit message is ${limits.message}; send less, or raise the limit`)
			: 0;

	// crowded counts messages of one size, unless they are too many for the turn.
	function crowded(copies, size) {
		const { used } = turn();
		if (used.sends + copies > limits.sends) return over("sends");
		if (used.sendBytes + copies * size > limits.send_bytes) return over("send_bytes");
		used.sends += copies;
		used.sendBytes += copies * size;
		return 0;
	}

	function send(channel, payload, packed) {
		const { aliases, channels, effects } = turn();
		const bytes = bytesOf(payload);
		const to = channel === abi.allChannels ? channels : [aliases[channel]];
		if (channel !== abi.allChannels && !channels.includes(to[0]))
			return fail("not_connected", `the creature has no send alias ${JSON.stringify(to[0])}; connect the creature to a channel under that alias`);
		const size = bytes.length + bytesOf(packed).length;
		const refused = tooLarge(size) || badHeaders(packed) || crowded(to.length, size);
		if (refused) return refused;
		const headers = parseHeaders(packed);
		for (const alias of to) effects.sent.push({ channel: alias, payload: textOf(bytes), bytes, headers });
		return to.length;
	}

	function setState(key, value) {
		const { state, used } = turn();
		const bytes = bytesOf(value);
		const refused = checkName("key", key);
		if (refused) return refused;
		if (bytes.length > limits.state_value)
			return fail("too_large", `the value of ${JSON.stringify(key)} has ${bytes.length} bytes; the limit state_value is ${limits.state_value}; split the value, or raise the limit`);
		const size = (used.state ??= [...state].reduce((sum, [k, v]) => sum + cost(k, v), 0)) - cost(key, state.get(key)) + cost(key, bytes);
		if (size > limits.state) return over("state");
		const many = written(key);
		if (many) return many;
		used.state = size;
		state.set(key, bytes);
		return 0;
	}

	function deleteState(key) {
		const { state, used } = turn();
		const refused = checkName("key", key);
		if (refused || !state.has(key)) return refused; // a key that is missing is no write
		const many = written(key);
		if (many) return many;
		if (used.state !== undefined) used.state -= cost(key, state.get(key));
		return Number(state.delete(key));
	}

	function setTimer(name, payload, delayMs, periodMs) {
		const { timers, now } = turn();
		const bytes = bytesOf(payload);
		if (delayMs < 0 || periodMs < 0) return fail("invalid_argument", "a time is negative; use 0 or more");
		const refused = checkName("name", name) || tooLarge(bytes.length);
		if (refused) return refused;
		if (!timers.has(name) && timers.size >= limits.timers) return over("timers");
		const others = [...timers.values()].filter((timer) => timer.name !== name);
		const size = others.reduce((sum, timer) => sum + bytesOf(timer.name).length + timer.payload.length, bytesOf(name).length + bytes.length);
		if (size > limits.timer_bytes) return over("timer_bytes");
		timers.set(name, { name, at: now + delayMs, periodMs, payload: bytes });
		return 0;
	}

	function request(creature, payload, deadlineMs, tag) {
		const { effects, used } = turn();
		const bytes = bytesOf(payload);
		if (deadlineMs <= 0) return fail("invalid_argument", "a request needs a deadline; say in milliseconds how long to wait");
		const refused = unknown(creature) || (used.waiting + effects.requests.length + effects.https.length >= limits.requests ? over("requests") : tooLarge(bytes.length) || crowded(1, bytes.length));
		if (!refused) effects.requests.push({ creature, payload: textOf(bytes), bytes, deadlineMs, tag });
		return refused;
	}

	function callTool(name, args) {
		const { tools, used } = turn();
		if (!tools) return fail("unsupported", "the host has no group tools");
		if (used.tools >= limits.tools) return over("tools");
		used.tools++;
		try {
			return result(bytesOf(JSON.stringify(tools(name, JSON.parse(args)) ?? null)));
		} catch (error) {
			if (!Object.hasOwn(codes, error.code)) throw error;
			return fail(error.code, error.message);
		}
	}

	return {
		scriptIsConfig: true,
		read: (source) => read(source).slice(),
		text(source, anything) {
			if (anything) return textOf(read(source));
			try {
				return strict.decode(read(source));
			} catch {
				return undefined;
			}
		},
		feature: (number) => (turn().features.includes(Object.keys(abi.features).find((name) => abi.features[name] === number)) ? 1 : 0),
		nowMs: () => turn().now,
		fuelLeft: () => -1,
		log: (level, text) => {
			const { used, logs } = turn();
			const name = Object.keys(abi.levels)[level];
			if (name === undefined) return fail("invalid_argument", `there is no level ${level}`);
			const bytes = bytesOf(text);
			const room = limits.log_bytes - used.logBytes;
			if (used.logLines >= limits.log_lines) return over("log_lines");
			if (bytes.length > room && room < ellipsis.length) return over("log_bytes");
			used.logLines++;
			used.logBytes += Math.min(bytes.length, room);
			logs.push(`${name} ${bytes.length > room ? shortened(bytes, room) : text}`);
			return 0;
		},
		random: (bytes) => (bytes.forEach((_, i) => (bytes[i] = turn().randomByte())), 0),
		channel(alias) {
			const { aliases } = turn();
			if (alias === "") return fail("invalid_argument", "an alias is not empty");
			if (!aliases.includes(alias)) aliases.push(alias);
			return aliases.indexOf(alias);
		},
		send: effect(send),
		sendTo: effect((creature, payload) => {
			const bytes = bytesOf(payload);
			const refused = unknown(creature) || tooLarge(bytes.length) || crowded(1, bytes.length);
			if (!refused) turn().effects.direct.push({ creature, payload: textOf(bytes), bytes });
			return refused;
		}),
		request: effect(request),
		http: effect((head, payload, tag) => {
			const { used, effects } = turn();
			const bytes = bytesOf(payload);
			if (!turn().features.includes("http")) return fail("unsupported", "the host has no http; give FakeHost features with it");
			const open = used.waiting + effects.requests.length + effects.https.length;
			const refused = open >= limits.requests ? over("requests") : tooLarge(bytes.length + bytesOf(head).length);
			if (!refused) effects.https.push({ head: JSON.parse(head), body: textOf(bytes), bytes, tag });
			return refused;
		}),
		reply: effect((payload) => {
			if (turn().kind !== "request") return fail("denied", "the turn handles no request; reply in the handler request");
			if (turn().effects.reply !== undefined) return fail("already_exists", "the request has a reply already; reply once");
			const refused = tooLarge(bytesOf(payload).length);
			if (refused) return refused;
			turn().effects.reply = textOf(bytesOf(payload));
			return 0;
		}),
		output: effect((payload) => {
			const { used, effects } = turn();
			const bytes = bytesOf(payload);
			if (used.output + bytes.length > limits.output) return over("output");
			used.output += bytes.length;
			effects.outputs.push(textOf(bytes));
			return 0;
		}),
		stateGet(key) {
			const refused = bytesOf(key).length > limits.state_key ? 0 : checkName("key", key); // the state has no longer ones
			if (refused) return refused;
			const value = turn().state.get(key);
			return value === undefined ? fail("not_found", `there is no key ${JSON.stringify(key)}`) : result(value);
		},
		stateSet: effect(setState),
		stateDelete: effect(deleteState),
		stateList(prefix) {
			const keys = [...turn().state.keys()].filter((key) => key.startsWith(prefix));
			keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
			return result(bytesOf(keys.map((key) => key + "\0").join("")));
		},
		timerSet: effect(setTimer),
		timerCancel: effect((name) => Number(turn().timers.delete(name))),
		tool: effect(callTool),
	};
}
