// builtin:agent: a language model with a task. Its system text is its task and its awareness,
// and its functions are the group tools that it may call. Everything that it remembers is in
// its state, so it continues wherever it was interrupted.
//
// groupTools, the descriptions of the group tools, is defined in front of this file.

const defaults = { steps: 16, history: 64, historyBytes: 49152 };

// Bounds of one answer of a model.
const mostCalls = 16;
const mostAttempts = 2; // at handling it

const functionName = /^[A-Za-z0-9_-]{1,64}$/;

// A function of this creature itself: with it, a model says that it has no answer yet.
const wait = {
	name: "wait",
	description: "Ends your turn without an answer. Call it after you have given work to others; their messages and outputs reach you later.",
	parameters: { type: "object", properties: {}, additionalProperties: false },
};

function settings(turn) {
	turn.configKnows("task", "llm", "model", "tools", "answer", "steps", "max_tokens", "history", "history_bytes");
	const s = {
		task: turn.configText("task"),
		llm: turn.configText("llm"),
		model: turn.configText("model", ""),
		tools: names(turn, "tools"),
		answer: names(turn, "answer") ?? [],
		steps: turn.configWhole("steps", 1, 1000, defaults.steps),
		maxTokens: turn.configWhole("max_tokens", 1, 1e9, 0),
		history: turn.configWhole("history", 8, 1000, defaults.history),
		historyBytes: turn.configWhole("history_bytes", 8192, 262144, defaults.historyBytes),
	};
	if (s.task.trim() === "") throw new TerrariumError("invalid_argument", "config task: it is empty; say what the agent is and does");
	for (const name of s.tools ?? [])
		if (!groupTools.some((t) => t.name === name))
			throw new TerrariumError("invalid_argument", `config tools: there is no group tool ${name}; there are ${groupTools.map((t) => t.name).join(", ")}`);
	return s;
}

function names(turn, key) {
	const list = turn.config[key];
	if (list !== undefined && !(Array.isArray(list) && list.every((n) => typeof n === "string")))
		throw new TerrariumError("invalid_argument", `config ${key}: it must be a list of texts`);
	return list;
}

// bytes is at least the length of a text in UTF-8.
const bytes = (text) => text.length + 2 * (text.match(/[^\x00-\x7f]/g)?.length ?? 0);

// clip bounds a text.
function clip(text, most) {
	if (bytes(text) <= most) return text;
	let cut = text;
	while (bytes(cut) > most) cut = cut.slice(0, Math.floor((cut.length * most) / bytes(cut)));
	return `${cut.toWellFormed()}… (cut)`;
}

// The history is a list of groups of messages, because a call of a function and its result
// belong together: a group is a message of a user, or what the model said with the results of
// its calls.
const load = (turn) => turn.state.get("history") ?? [];
const size = (group) => bytes(JSON.stringify(group));

// trim drops the oldest groups. It keeps the last one, and the last message of a user, which
// the model is working on. Neither is large: see heard and answered.
function trim(groups, s) {
	let count = groups.reduce((n, g) => n + g.length, 0);
	let total = groups.reduce((n, g) => n + size(g), 0);
	const task = groups[groups.findLastIndex((g) => g[0].role === "user")];
	for (let i = 0; i < groups.length - 1 && (count > s.history || total > s.historyBytes);) {
		if (groups[i] === task) {
			i++;
			continue;
		}
		const [old] = groups.splice(i, 1);
		count -= old.length;
		total -= size(old);
	}
	return groups;
}

// look keeps the awareness document in the state. Other turns read it there: what is in the
// state is in the log too, so a replay can compare these turns.
function look(turn) {
	const seen = { tools: turn.awareness.tools ?? [], text: turn.awarenessMarkdown };
	turn.state.set("awareness", seen);
	return seen;
}

const awareness = (turn) => turn.state.get("awareness") ?? look(turn);

// functions are those that the model may call.
function functions(turn, s) {
	const may = new Set(awareness(turn).tools);
	return [...groupTools.filter((t) => may.has(t.name) && (!s.tools || s.tools.includes(t.name))), wait];
}

// ask sends the history to the model.
function ask(turn, s, groups) {
	turn.state.set("history", trim(groups, s));
	const request = {
		messages: [{ role: "system", content: `${s.task}\n\nThis is what you know about yourself and your surroundings:\n\n${awareness(turn).text}` }, ...groups.flat()],
		tools: functions(turn, s).map((f) => ({ type: "function", function: f })),
	};
	if (s.model) request.model = s.model;
	if (s.maxTokens) request.max_tokens = s.maxTokens;
	try {
		turn.request(`capability:llm.${s.llm}`, request, { deadlineMs: 0 });
	} catch (error) {
		if (!TerrariumError.is(error) || error.code === "conflict") throw error;
		return done(turn, s, `Stopped, because the model cannot be used. ${error.message}`);
	}
	turn.state.set("busy", true);
}

// say gives the last word on a message.
function say(turn, s, text) {
	turn.output(text);
	for (const alias of s.answer) {
		try {
			turn.send(alias, text);
		} catch (error) {
			if (!TerrariumError.is(error) || error.code === "conflict") throw error;
			turn.log("error", `the answer could not be sent on ${alias}: ${error.message}`);
		}
	}
}

// done ends the work on a message, with a last word unless it is undefined, and begins with
// the message that has waited longest.
function done(turn, s, text) {
	if (text !== undefined) say(turn, s, text);
	turn.state.delete("busy");
	turn.state.delete("steps");
	const waiting = turn.state.get("waiting") ?? [];
	if (waiting.length === 0) return;
	const first = waiting.shift();
	if (waiting.length > 0) turn.state.set("waiting", waiting);
	else turn.state.delete("waiting");
	ask(turn, s, [...load(turn), [{ role: "user", content: first }]]);
}

// origin says where a message comes from. Its id is the one that its sender knows: that which
// a tool has given it, or else that of the log.
function origin(turn, where) {
	const id = turn.header("terrarium-message") ?? turn.messageId, answered = turn.header("terrarium-reply-to");
	return `${where} from ${turn.sender || "the outside"}, id ${id}${answered ? `, answers ${answered}` : ""}`;
}

// heard is a message for the model. While the model is busy, messages wait in the state.
function heard(turn, where) {
	const s = settings(turn);
	let text;
	try {
		text = turn.text();
	} catch {
		text = `(${turn.payload.length} bytes that are not a text)`;
	}
	text = clip(`[${where}] ${text}`, s.historyBytes / 4);
	if (!turn.state.get("busy")) return ask(turn, s, [...load(turn), [{ role: "user", content: text }]]);
	const waiting = turn.state.get("waiting") ?? [];
	if (waiting.length >= s.history) throw new TerrariumError("limit", `the agent is busy, and ${waiting.length} messages are waiting`);
	turn.state.set("waiting", [...waiting, text]);
}

// read checks a call of a function, and returns it as it may be sent to the model again, with
// its arguments or with what is wrong. Some servers refuse a history with names that cannot
// be or with arguments that are not JSON.
function read(c, n, known, most) {
	const name = c.function?.name ?? "", text = c.function?.arguments || "{}";
	const call = {
		id: typeof c.id === "string" && /^[\x21-\x7e]{1,64}$/.test(c.id) ? c.id : `call_${n}`,
		type: "function",
		function: { name: functionName.test(name) ? name : "invalid_name", arguments: "{}" },
	};
	if (!known.includes(name)) return { call, error: `there is no function ${JSON.stringify(clip(name, 64))}; there are ${known.join(", ")}` };
	if (bytes(text) > most) return { call, error: `the arguments of this answer have too many bytes; use at most ${most}` };
	let args;
	try {
		args = JSON.parse(text);
	} catch (error) {
		return { call, error: `the arguments are not JSON: ${error.message}` };
	}
	if (typeof args !== "object" || args === null || Array.isArray(args)) return { call, error: "the arguments are not a JSON object" };
	call.function.arguments = text;
	return { call, args };
}

// run calls a function. A tool that refuses tells the model why.
function run(turn, call, args) {
	if (call.function.name === wait.name) return {};
	try {
		return turn.tool(call.function.name, args) ?? {};
	} catch (error) {
		if (!TerrariumError.is(error) || error.code === "conflict") throw error; // the turn is run again
		return { error: error.message };
	}
}

// answered handles what the model has said.
function answered(turn, s, said) {
	const known = functions(turn, s).map((f) => f.name);
	const content = said.content ?? "";
	const asked = said.tool_calls ?? [];
	const calls = asked.slice(0, mostCalls);
	let room = s.historyBytes / 4;
	const results = [], kept = [];
	let waits = false;
	calls.forEach((c, n) => {
		const r = read(c, n + 1, known, room);
		room -= bytes(r.call.function.arguments);
		while (kept.some((k) => k.id === r.call.id)) r.call.id = `call_${n + 1}_${kept.length}`;
		const result = r.error ? { error: r.error } : run(turn, r.call, r.args);
		waits ||= !r.error && r.call.function.name === wait.name;
		if (n === calls.length - 1 && asked.length > calls.length) result.note = `${asked.length - calls.length} more calls were not made; call at most ${mostCalls} functions at a time`;
		kept.push(r.call);
		results.push({ role: "tool", tool_call_id: r.call.id, content: clip(JSON.stringify(result), Math.floor(s.historyBytes / 4 / calls.length)) });
	});
	const message = { role: "assistant", content: clip(content, s.historyBytes / 8) };
	if (kept.length > 0) message.tool_calls = kept;
	const groups = trim([...load(turn), [message, ...results]], s);
	turn.state.set("history", groups);
	if (waits) return done(turn, s);
	if (kept.length === 0) return done(turn, s, content.trim() === "" ? "Stopped, because the model gave no answer." : content);
	const steps = turn.state.getWhole("steps") + 1;
	if (steps >= s.steps) return done(turn, s, `Stopped after ${steps} steps without an answer.`);
	turn.state.setWhole("steps", steps);
	ask(turn, s, groups);
}

export default {
	init: settings,
	start: look,
	graphChanged: look,
	message(turn) { heard(turn, origin(turn, turn.direct ? "message" : turn.channel)); },
	output(turn) { heard(turn, `output of ${turn.sender || "the outside"}`); },
	result(turn) {
		const s = settings(turn);
		if (turn.resultCode === "limit") {
			// The last word is said once. Messages that come later try again, because the
			// operator may have raised the budget.
			const again = turn.state.get("spent");
			turn.state.set("spent", true);
			const waiting = turn.state.get("waiting") ?? [];
			turn.state.delete("waiting");
			if (waiting.length > 0) turn.state.set("history", trim([...load(turn), ...waiting.map((content) => [{ role: "user", content }])], s));
			return done(turn, s, again ? undefined : `Stopped, because the budget is used up. ${turn.text()}`);
		}
		turn.state.delete("spent");
		if (turn.resultCode !== "ok") {
			// The history may be what the server refuses.
			if (turn.resultCode === "invalid_argument" || turn.resultCode === "too_large") turn.state.delete("history");
			return done(turn, s, `Stopped, because the model did not answer. ${turn.text()}`);
		}
		if (turn.attempt > mostAttempts) return done(turn, s, `Stopped, because the calls of the model have failed ${mostAttempts} times.`);
		answered(turn, s, turn.json().message);
	},
};
