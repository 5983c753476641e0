import { codes, effects, features, importModule, levels, limits, results, sources } from "./abi.js";
import { byBytes, bytesOf, decodeHeaders, textOf } from "./text.js";

const sourceNames = Object.fromEntries(Object.entries(sources).map(([name, number]) => [number, name]));

const ellipsis = bytesOf("…"); // ends a log line that was cut

/** Returns at most size bytes of a text, without a part of a character. */
function wholeCharacters(bytes, size) {
  let end = size;
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}

/** A call that the host refuses. */
class Refused extends Error {
  constructor(code, text) {
    super(text);
    this.code = code;
  }
}

function refuse(code, text) {
  throw new Refused(code, text);
}

function atMost(limit, size, what) {
  if (size > limits[limit]) refuse("too_large", `${what} has ${size} bytes; the limit ${limit} is ${limits[limit]}`);
}

function within(limit, amount) {
  if (amount > limits[limit]) refuse("limit", `the limit ${limit} of ${limits[limit]} is reached`);
}

/** The functions of the contract for one instance. turn holds what the current turn has collected. */
export class Calls {
  constructor(host) {
    this.host = host;
    this.handles = [];
    this.memory = null;
    this.turn = null;
  }

  /** Returns the imports of an instance. */
  imports() {
    const functions = {};
    for (const name in results) functions[name] = (...args) => this.#call(name, args);
    return { [importModule]: functions, env: { abort: (...args) => this.#abort(...args) } };
  }

  #call(name, args) {
    let result;
    try {
      if (this.turn.readOnly && effects.includes(name)) {
        refuse("denied", `${name}: effects are only collected while a delivery is handled`);
      }
      result = this[name](...args);
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      this.turn.sources.error = bytesOf(e.message);
      result = -codes[e.code];
    }
    return results[name] === "i64" ? BigInt(result) : result;
  }

  #abort(message, file, line, column) {
    const place = file ? ` (${this.#string(file)}:${line}:${column})` : "";
    const error = new Error(`the guest aborted: ${this.#string(message)}${place}`);
    error.aborted = true;
    throw error;
  }

  /** Returns a string of AssemblyScript: UTF-16, with its length in bytes before it. */
  #string(ptr) {
    if (ptr === 0) return "";
    const size = new DataView(this.memory.buffer).getUint32(ptr - 4, true);
    return new TextDecoder("utf-16le").decode(new Uint8Array(this.memory.buffer, ptr, size));
  }

  /** Returns a copy of a range of memory. */
  #bytes(ptr, size) {
    return size === 0 ? new Uint8Array(0) : this.#range(ptr, size).slice();
  }

  #range(ptr, size) {
    const start = ptr >>> 0;
    if (size < 0 || start + size > this.memory.buffer.byteLength) refuse("invalid_argument", "the range is not inside memory");
    return new Uint8Array(this.memory.buffer, size === 0 ? 0 : start, size);
  }

  #text(ptr, size) {
    const text = textOf(this.#bytes(ptr, size));
    return typeof text === "string" ? text : refuse("invalid_argument", "a name is not UTF-8");
  }

  /** Stores a result, and returns its full length. */
  #lookup(value, ptr, cap) {
    const room = this.#range(ptr, cap);
    room.set(value.subarray(0, Math.min(cap, value.length)));
    this.turn.sources.result = value;
    return value.length;
  }

  /** Returns a key of the state or the name of a timer. */
  #key(ptr, size, what = "key") {
    atMost("state_key", size, `the ${what}`);
    const key = textOf(this.#bytes(ptr, size));
    if (typeof key !== "string" || key === "" || key.includes("\0")) {
      refuse("invalid_argument", `a ${what} is UTF-8 without NUL and not empty; use another ${what}`);
    }
    return key;
  }

  /** Refuses a creature that the graph does not have. */
  #reachable(name) {
    const { creatures } = this.host;
    if (creatures && !creatures.includes(name)) refuse("not_found", `there is no creature "${name}" in this graph`);
    return name;
  }

  /** Counts the keys that the turn has written. */
  #write(key) {
    const { written } = this.turn;
    if (!written.has(key)) within("state_writes", written.size + 1);
    written.add(key);
  }

  /** Refuses bytes that the state has no room for. */
  #stateRoom(key, value) {
    const { turn } = this;
    const cost = (k, v) => (v === undefined ? 0 : bytesOf(k).length + bytesOf(v).length + 32);
    turn.stateBytes ??= [...turn.state].reduce((sum, [k, v]) => sum + cost(k, v), 0);
    const size = turn.stateBytes - cost(key, turn.state.get(key)) + cost(key, value);
    within("state", size);
    return size;
  }

  size(source) {
    if (!(source in sourceNames)) refuse("not_found", `there is no source ${source}`);
    return (this.turn.sources[sourceNames[source]] ?? []).length;
  }

  read(source, offset, ptr, cap) {
    const length = this.size(source);
    if (offset < 0) refuse("invalid_argument", `the offset ${offset} is negative`);
    const room = this.#range(ptr, cap);
    if (length === 0) return 0;
    const part = this.turn.sources[sourceNames[source]].subarray(offset, offset + cap);
    room.set(part);
    return part.length;
  }

  feature(feature) {
    if (feature === features.tools) return this.host.tools ? 1 : 0;
    return [features.timers, features.requests, features.awareness].includes(feature) ? 1 : 0;
  }

  config(keyPtr, keySize, ptr, cap) {
    const key = this.#text(keyPtr, keySize);
    if (!Object.hasOwn(this.host.config, key)) refuse("not_found", `the configuration has no attribute "${key}"`);
    const value = this.host.config[key];
    return this.#lookup(bytesOf(typeof value === "string" ? value : JSON.stringify(value)), ptr, cap);
  }

  channel(ptr, size) {
    const alias = this.#text(ptr, size);
    if (alias === "") refuse("invalid_argument", "an alias is not empty");
    const known = this.handles.indexOf(alias);
    if (known >= 0) return known;
    within("handles", this.handles.length + 1);
    return this.handles.push(alias) - 1;
  }

  send(channel, ptr, size, headersPtr, headersSize) {
    if (channel < -1 || channel >= this.handles.length) refuse("invalid_argument", `${channel} is not a channel handle`);
    const to = channel < 0 ? this.host.channels : [this.handles[channel]];
    if (channel >= 0 && !this.host.channels.includes(to[0])) {
      refuse("not_connected", `the creature has no send alias "${to[0]}"; connect the creature to a channel under that alias`);
    }
    atMost("message", size + headersSize, "the message");
    const headers = decodeHeaders(this.#bytes(headersPtr, headersSize));
    if (!headers) refuse("invalid_argument", "the headers are malformed, or a name is reserved");
    const payload = this.#message(ptr, size, to.length, headersSize);
    for (const alias of to) this.turn.sent.push({ channel: alias, payload, headers });
    return to.length;
  }

  /** Returns a payload that a turn may send. */
  #message(ptr, size, copies, headersSize = 0) {
    atMost("message", size + headersSize, "the message");
    within("sends", this.turn.sends + copies);
    within("send_bytes", this.turn.sendBytes + copies * (size + headersSize));
    const payload = textOf(this.#bytes(ptr, size));
    this.turn.sends += copies;
    this.turn.sendBytes += copies * (size + headersSize);
    return payload;
  }

  send_to(toPtr, toSize, ptr, size) {
    const to = this.#reachable(this.#text(toPtr, toSize));
    this.turn.sent.push({ to, payload: this.#message(ptr, size, 1) });
    return 0;
  }

  request(toPtr, toSize, ptr, size, deadline, tag) {
    if (deadline <= 0n) refuse("invalid_argument", "a request needs a deadline; say in milliseconds how long to wait");
    const to = this.#reachable(this.#text(toPtr, toSize));
    within("requests", this.host.requests.length + this.turn.requests.length + 1);
    this.turn.requests.push({ to, payload: this.#message(ptr, size, 1), deadline: Number(deadline), tag });
    return 0;
  }

  reply(ptr, size) {
    if (!this.turn.answers) refuse("denied", "there is no request to reply to; reply while a delivery of the kind request is handled");
    if (this.turn.reply !== null) refuse("already_exists", "the request has a reply already; reply once");
    atMost("message", size, "the reply");
    this.turn.reply = textOf(this.#bytes(ptr, size));
    return 0;
  }

  output(ptr, size) {
    const { output } = this.turn;
    within("output", output.length + size);
    this.turn.output = bytesOf(Buffer.concat([output, this.#bytes(ptr, size)]));
    return 0;
  }

  state_get(keyPtr, keySize, ptr, cap) {
    const key = keySize > limits.state_key ? "" : this.#key(keyPtr, keySize); // the state has no longer ones
    if (!this.turn.state.has(key)) refuse("not_found", `the state has no key "${key}"`);
    return this.#lookup(bytesOf(this.turn.state.get(key)), ptr, cap);
  }

  state_set(keyPtr, keySize, ptr, size) {
    const key = this.#key(keyPtr, keySize);
    atMost("state_value", size, `the value of "${key}"`);
    const value = textOf(this.#bytes(ptr, size));
    const stateBytes = this.#stateRoom(key, value);
    this.#write(key);
    this.turn.stateBytes = stateBytes;
    this.turn.state.set(key, value);
    return 0;
  }

  state_delete(keyPtr, keySize) {
    const key = this.#key(keyPtr, keySize);
    if (!this.turn.state.has(key)) return 0; // which is no write
    this.#write(key);
    this.turn.stateBytes = this.#stateRoom(key, undefined);
    this.turn.state.delete(key);
    return 1;
  }

  state_list(prefixPtr, prefixSize, ptr, cap) {
    const prefix = this.#text(prefixPtr, prefixSize);
    const keys = [...this.turn.state.keys()].filter((key) => key.startsWith(prefix)).sort(byBytes);
    return this.#lookup(bytesOf(keys.map((key) => `${key}\0`).join("")), ptr, cap);
  }

  timer_set(namePtr, nameSize, delay, period, ptr, size) {
    if (delay < 0n || period < 0n) refuse("invalid_argument", "a time is negative");
    const name = this.#key(namePtr, nameSize, "name");
    atMost("message", size, "the payload");
    const payload = textOf(this.#bytes(ptr, size));
    const { timers } = this.turn;
    within("timers", timers.has(name) ? timers.size : timers.size + 1);
    const others = [...timers].filter(([other]) => other !== name);
    within("timer_bytes", others.reduce((sum, [other, timer]) => sum + bytesOf(other).length + bytesOf(timer.payload).length, nameSize + size));
    timers.set(name, { due: this.host.time + Number(delay), period: Number(period), payload });
    return 0;
  }

  timer_cancel(ptr, size) {
    return this.turn.timers.delete(textOf(this.#bytes(ptr, size))) ? 1 : 0;
  }

  tool(namePtr, nameSize, ptr, size) {
    if (!this.host.tools) refuse("unsupported", "this host has no group tools");
    const name = this.#text(namePtr, nameSize);
    const args = this.#text(ptr, size);
    within("tools", ++this.turn.tools);
    let result;
    try {
      result = this.host.tools(name, args === "" ? {} : JSON.parse(args));
    } catch (e) {
      if (!(e.code in codes)) throw e;
      refuse(e.code, e.message);
    }
    return this.#lookup(bytesOf(JSON.stringify(result ?? {})), 0, 0);
  }

  http() {
    refuse("unsupported", "the fake host sends no HTTP requests");
  }

  log(level, ptr, size) {
    if (!(level in levels)) refuse("invalid_argument", `there is no level ${level}`);
    const { turn } = this;
    within("log_lines", turn.logLines + 1);
    const room = limits.log_bytes - turn.logBytes;
    const bytes = this.#bytes(ptr, size);
    if (size > room) within("log_bytes", turn.logBytes + ellipsis.length);
    turn.logLines++;
    turn.logBytes += Math.min(size, room);
    const kept = size > room ? Buffer.concat([wholeCharacters(bytes, room - ellipsis.length), ellipsis]) : bytes;
    this.host.logs.push({ level: levels[level], text: new TextDecoder().decode(kept) });
    return 0;
  }

  now() {
    return BigInt(this.host.time) * 1000000n;
  }

  /** Fills memory with numbers that depend on the delivery (xorshift). */
  random(ptr, size) {
    const room = this.#range(ptr, size);
    let x = this.turn.random ?? (this.turn.seed * 2654435761 + 1) >>> 0;
    for (let i = 0; i < size; i++) {
      x ^= x << 13;
      x ^= x >>> 17;
      x ^= x << 5;
      room[i] = x;
    }
    this.turn.random = x;
    return 0;
  }

  fuel_left() {
    return -1;
  }
}
