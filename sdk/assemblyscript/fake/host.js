// A fake host: it runs a built creature with the WebAssembly of node, for tests.
import { readFileSync } from "node:fs";
import { codes, kinds, sources } from "./abi.js";
import { Calls } from "./calls.js";
import { bytesOf, encodeHeaders, textOf } from "./text.js";

/** Why a turn failed: the name of the code, and in message what the creature logged last as an error. */
export class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.name = "Failure";
    this.code = code;
  }
}

/**
 * The environment of one creature. A payload is a string, or a Uint8Array if it is not UTF-8. A failed turn throws a Failure and
 * leaves nothing but its logs. The fake host cannot stop a creature that never returns.
 */
export class FakeHost {
  /** module is the path of the creature, or its bytes. Options are the fields of the same name, and fresh. */
  constructor(module, options = {}) {
    const bytes = typeof module === "string" || module instanceof URL ? readFileSync(module) : module;
    this.module = new WebAssembly.Module(bytes);
    /** The name of the creature. */
    this.name = "self";
    /** The configuration, which must not change once the creature runs. */
    this.config = {};
    /** The send aliases that are bound to a channel. */
    this.channels = [];
    /** The creatures that it can reach directly; null means any. */
    this.creatures = null;
    /** The state, as successful turns left it. */
    this.state = new Map();
    /** The time of the next delivery, in milliseconds since 1970. */
    this.time = 0;
    /** Handles a tool call: (name, args) => result. It may throw an error with a code. Without it the host has no tools. */
    this.tools = null;
    /** Whether every turn has a fresh instance. */
    this.fresh = false;
    Object.assign(this, options);
    if (!(this.state instanceof Map)) this.state = new Map(Object.entries(this.state));
    /** What successful turns sent, in order: {channel, payload, headers}, or {to, payload} for a direct message. */
    this.sent = [];
    /** The output of successful turns. */
    this.outputs = [];
    /** The requests that wait for a result: {to, payload, deadline, tag}. */
    this.requests = [];
    /** The log lines of all turns: {level, text}. */
    this.logs = [];
    /** The timers by name: {due, period, payload}. */
    this.timers = new Map();
    this.awareness = { revision: 1, json: "", markdown: "" };
    this.instance = null;
    this.turns = 0;
  }

  /** Makes a new instance and initializes it. A later delivery does so if there is none. */
  init() {
    this.#begin({}, "creature_init");
    this.instance = new WebAssembly.Instance(this.module, this.calls.imports());
    this.calls.memory = this.instance.exports.memory;
    const { creature_init: init } = this.instance.exports;
    if (init) this.#run("creature_init", () => init());
  }

  /** Delivers the start of the creature's life. */
  start() {
    this.deliver("start");
  }

  /** Delivers a message on a listen alias. Options: headers, sender, direct. */
  message(alias, payload, { headers = {}, sender = "", direct = false } = {}) {
    this.deliver("message", {
      payload, sender, channel: direct ? this.name : alias, headers: encodeHeaders(headers), detail: { direct },
    });
  }

  /** Delivers a request and returns the reply, or null if there is none. */
  request(payload, { sender = "asker", deadline = 1000 } = {}) {
    const turn = this.deliver("request", { payload, sender, channel: this.name, detail: { direct: true, deadline_ms: deadline } });
    return turn.reply;
  }

  /** Delivers the reply to a request of the creature. */
  answer(tag, payload) {
    this.#result(tag, "ok", payload);
  }

  /** Delivers the failure of a request of the creature, with the name of a code. */
  fail(tag, code, text) {
    this.#result(tag, code, text);
  }

  #result(tag, code, payload) {
    const at = this.requests.findIndex((r) => r.tag === BigInt(tag));
    if (at < 0) throw new Error(`no request with the tag ${tag} waits for a result`);
    this.requests.splice(at, 1);
    this.deliver("result", { payload, detail: { tag: String(tag), code } });
  }

  /** Moves the time, and delivers the timers that come due in their order. */
  advance(ms) {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.timers].filter(([, t]) => t.due <= end).sort((a, b) => a[1].due - b[1].due || (a[0] < b[0] ? -1 : 1));
      if (due.length === 0) break;
      const [name, timer] = due[0];
      this.time = Math.max(this.time, timer.due);
      if (timer.period > 0) timer.due += timer.period;
      else this.timers.delete(name);
      this.deliver("timer", { payload: timer.payload, detail: { name } });
    }
    this.time = end;
  }

  /** Sets the awareness document, whose revision rises, and delivers it if the creature exports terrarium_graph_changed. */
  setAwareness(json, markdown = "") {
    const revision = json.revision ?? this.awareness.revision + 1;
    this.awareness = { revision, json: JSON.stringify({ ...json, revision }), markdown };
    const wants = WebAssembly.Module.exports(this.module).some((e) => e.name === "terrarium_graph_changed");
    if (wants) this.deliver("graph_changed", { detail: { revision } });
  }

  /** Makes a delivery of any kind. sources are by name; detail is an object. */
  deliver(kind, given = {}) {
    if (!(kind in kinds)) throw new Error(`there is no kind ${kind}`);
    if (this.fresh || !this.instance) this.init();
    this.turns++;
    const payload = bytesOf(given.payload ?? "");
    const detail = JSON.stringify({ kind, attempt: 1, time: this.time * 1e6, ...given.detail });
    const turn = this.#begin({ ...given, payload, detail }, "creature_handle");
    turn.answers = kind === "request";
    this.#run("creature_handle", () => this.instance.exports.creature_handle(kinds[kind], payload.length));
    this.state = turn.state;
    this.timers = turn.timers;
    this.sent.push(...turn.sent);
    this.requests.push(...turn.requests);
    if (turn.output.length > 0) this.outputs.push(textOf(turn.output));
    return turn;
  }

  #begin(given, phase) {
    const content = {
      message_id: `m${this.turns}`, self: this.name, config: JSON.stringify(this.config), awareness_json: this.awareness.json,
      awareness_markdown: this.awareness.markdown, awareness_revision: String(this.awareness.revision), ...given,
    };
    const turn = {
      readOnly: phase !== "creature_handle", sources: {}, seed: this.turns, sent: [], requests: [], output: new Uint8Array(0),
      reply: null, answers: false, sends: 0, sendBytes: 0, written: new Set(), tools: 0, logLines: 0, logBytes: 0, state: new Map(this.state),
      timers: new Map([...this.timers].map(([name, timer]) => [name, { ...timer }])),
    };
    for (const name in sources) turn.sources[name] = bytesOf(content[name] ?? "");
    if (phase === "creature_init" || !this.calls) this.calls = new Calls(this);
    this.calls.turn = turn;
    return turn;
  }

  /** Calls into the instance, which is discarded if the call fails. */
  #run(phase, call) {
    const logged = this.logs.length;
    let status;
    try {
      status = call();
    } catch (e) {
      this.instance = null;
      if (!(e instanceof WebAssembly.RuntimeError) && !e.aborted) throw e;
      throw new Failure("trapped", `${phase}: ${e.message}`);
    }
    if (status >= 0) return;
    this.instance = null;
    const code = Object.keys(codes).find((name) => codes[name] === -status) ?? "trapped";
    const words = this.logs.slice(logged).filter((l) => l.level === "error" || l.level === "warn").at(-1);
    throw new Failure(code, words ? words.text : `${phase}: the guest returned ${status}`);
  }
}

