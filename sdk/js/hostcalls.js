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

	function checkKey(key) {
		const bytes = bytesOf(key);
		if (bytes.length === 0 || key.includes("\0")) return fail("invalid_argument", "a key is UTF-8 without NUL and not empty; use another key");
		if (bytes.length > limits.state_key)
			return fail("too_large", `the key has ${bytes.length} bytes; the limit state_key is ${limits.state_key}; use a shorter key`);
		return 0;
	}

	function parseHeaders(packed) {
		const parts = packed.split("\0");
		const headers = {};
		for (let i = 0; i + 1 < parts.length; i += 2) headers[parts[i]] = parts[i + 1];
		return headers;
	}

	function badHeaders(headers) {
		const name = Object.keys(headers).find((name) => name === "" || name.toLowerCase().startsWith("terrarium-"));
		return name === undefined ? 0 : fail("invalid_argument", `the header name ${JSON.stringify(name)} is empty or reserved; use another name`);
	}

	const unknown = (creature) =>
		turn().creatures && !turn().creatures.includes(creature)
			? fail("not_found", `there is no creature ${JSON.stringify(creature)} in this graph; name a creature of this graph, by its id or name`)
			: 0;

	const tooLarge = (length) =>
		length > limits.message
			? fail("too_large", `the message has ${length} bytes; the limit message is ${limits.message}; send less, or raise the limit`)
			: 0;

	function send(channel, payload, packed) {
		const { aliases, channels, effects } = turn();
		const bytes = bytesOf(payload);
		const headers = parseHeaders(packed);
		const refused = tooLarge(bytes.length + bytesOf(packed).length) || badHeaders(headers);
		if (refused) return refused;
		const to = channel === abi.allChannels ? channels : [aliases[channel]];
		if (channel !== abi.allChannels && !channels.includes(to[0]))
			return fail("not_connected", `the creature has no send alias ${JSON.stringify(to[0])}; connect the creature to a channel under that alias`);
		for (const alias of to) effects.sent.push({ channel: alias, payload: textOf(bytes), bytes, headers });
		return to.length;
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
			const bytes = bytesOf(text);
			const room = limits.log_bytes - used.logBytes;
			if (used.logLines >= limits.log_lines) return over("log_lines");
			if (bytes.length > room && room < ellipsis.length) return over("log_bytes");
			used.logLines++;
			used.logBytes += Math.min(bytes.length, room);
			logs.push(`${Object.keys(abi.levels)[level]} ${bytes.length > room ? shortened(bytes, room) : text}`);
			return 0;
		},
		random: (bytes) => (bytes.forEach((_, i) => (bytes[i] = turn().randomByte())), 0),
		channel(alias) {
			const { aliases } = turn();
			if (!aliases.includes(alias)) aliases.push(alias);
			return aliases.indexOf(alias);
		},
		send: effect(send),
		sendTo: effect((creature, payload) => {
			const bytes = bytesOf(payload);
			const refused = tooLarge(bytes.length) || unknown(creature);
			if (!refused) turn().effects.told.push({ creature, payload: textOf(bytes), bytes });
			return refused;
		}),
		request: effect((creature, payload, deadlineMs, tag) => {
			const bytes = bytesOf(payload);
			const refused = deadlineMs < 0 ? fail("invalid_argument", "the deadline is negative; use 0 or more") : tooLarge(bytes.length) || unknown(creature);
			if (!refused) turn().effects.requests.push({ creature, payload: textOf(bytes), bytes, deadlineMs, tag });
			return refused;
		}),
		reply: effect((payload) => {
			if (turn().kind !== "request") return fail("denied", "the turn handles no request; reply in the handler request");
			if (turn().effects.reply !== undefined) return fail("already_exists", "the request has a reply already; reply once");
			turn().effects.reply = textOf(bytesOf(payload));
			return 0;
		}),
		output: effect((payload) => (turn().effects.outputs.push(textOf(bytesOf(payload))), 0)),
		stateGet(key) {
			const refused = checkKey(key);
			if (refused) return refused;
			const value = turn().state.get(key);
			return value === undefined ? fail("not_found", `there is no key ${JSON.stringify(key)}`) : result(value);
		},
		stateSet: effect((key, value) => {
			const bytes = bytesOf(value);
			const refused = checkKey(key);
			if (refused) return refused;
			if (bytes.length > limits.state_value)
				return fail("too_large", `the value of ${JSON.stringify(key)} has ${bytes.length} bytes; the limit state_value is ${limits.state_value}; split the value, or raise the limit`);
			turn().state.set(key, bytes);
			return 0;
		}),
		stateDelete: effect((key) => checkKey(key) || Number(turn().state.delete(key))),
		stateList(prefix) {
			const keys = [...turn().state.keys()].filter((key) => key.startsWith(prefix));
			keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
			return result(bytesOf(keys.map((key) => key + "\0").join("")));
		},
		timerSet: effect((name, payload, delayMs, periodMs) => {
			if (delayMs < 0 || periodMs < 0) return fail("invalid_argument", "a time is negative; use 0 or more");
			turn().timers.set(name, { name, at: turn().now + delayMs, periodMs, payload: bytesOf(payload) });
			return 0;
		}),
		timerCancel: effect((name) => Number(turn().timers.delete(name))),
		tool: effect((name, args) => {
			if (!turn().tools) return fail("unsupported", "the host has no group tools");
			try {
				return result(bytesOf(JSON.stringify(turn().tools(name, JSON.parse(args)) ?? null)));
			} catch (error) {
				if (!Object.hasOwn(codes, error.code)) throw error;
				return fail(error.code, error.message);
			}
		}),
	};
}
