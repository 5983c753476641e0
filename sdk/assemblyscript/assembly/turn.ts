import { ToolCall } from "./call";
import { read } from "./delivery";
import { Headers } from "./headers";
import { Json, isDecimal } from "./json";
import * as raw from "./raw";
import { Code, Feature, Level, Source } from "./raw";
import { Settings } from "./settings";
import { decode, encode, toBytes } from "./text";

/**
 * One call into a creature: its input and its effects. A payload is a string, which is sent in UTF-8, or a Uint8Array.
 * A call that the host refuses fails the turn, with a text such as "state_set: … (too_large)"; caught() returns it and
 * lets the turn continue.
 */
export class Turn extends Settings {
  /** Returns a value of the state, or null if there is none. */
  stateGet(key: string): Uint8Array | null {
    const name = encode(key);
    const size = raw.state_get(name.dataStart, name.length, 0, 0);
    if (size == -Code.NotFound) return null;
    this.check("state_get", size);
    return size < 0 ? null : read(Source.Result, size);
  }

  /** Writes a value of the state. */
  stateSet<P>(key: string, value: P): void {
    const name = encode(key);
    const bytes = toBytes<P>(value);
    this.check("state_set", raw.state_set(name.dataStart, name.length, bytes.dataStart, bytes.length));
  }

  /** Deletes a value of the state and returns whether there was one. */
  stateDelete(key: string): bool {
    const name = encode(key);
    return this.check("state_delete", raw.state_delete(name.dataStart, name.length)) > 0;
  }

  /** Returns the keys with a prefix, in the order of their bytes. */
  stateList(prefix: string): string[] {
    const name = encode(prefix);
    const size = this.check("state_list", raw.state_list(name.dataStart, name.length, 0, 0));
    if (size == 0) return [];
    return String.UTF8.decodeUnsafe(read(Source.Result, size).dataStart, size - 1).split("\0");
  }

  /** Returns a whole number of the state, or 0 if there is none. */
  stateWhole(key: string): i64 {
    const value = this.stateGet(key);
    if (value === null) return 0;
    const text = decode(value);
    if (text !== null && isDecimal(text)) return I64.parseInt(text);
    this.fail(Code.InvalidArgument, "state " + key + ": it is not a whole number");
    return 0;
  }

  /** Writes a whole number to the state, as decimal text. */
  stateSetWhole(key: string, value: i64): void {
    this.stateSet(key, value.toString());
  }

  /** Sends a message on the channel that the creature knows as alias. */
  send<P>(alias: string, payload: P, headers: Headers | null = null): void {
    const name = encode(alias);
    const handle = raw.channel(name.dataStart, name.length);
    this.check("channel", handle);
    if (handle >= 0) this.sendOn(handle, toBytes<P>(payload), headers);
  }

  /** Sends a message on every channel that the creature may send on, and returns how many there are. */
  sendAll<P>(payload: P, headers: Headers | null = null): i32 {
    return this.sendOn(-1, toBytes<P>(payload), headers);
  }

  private sendOn(handle: i32, payload: Uint8Array, headers: Headers | null): i32 {
    let start: usize = 0;
    let size = 0;
    if (headers !== null) {
      start = headers.raw.dataStart;
      size = headers.raw.length;
    }
    return this.check("send", raw.send(handle, payload.dataStart, payload.length, start, size));
  }

  /** Sends a direct message to a creature of the sender's graph, by id or name. */
  sendTo<P>(creature: string, payload: P): void {
    const name = encode(creature);
    const bytes = toBytes<P>(payload);
    this.check("send_to", raw.send_to(name.dataStart, name.length, bytes.dataStart, bytes.length));
  }

  /** Appends to the output of the turn. */
  output<P>(payload: P): void {
    const bytes = toBytes<P>(payload);
    this.check("output", raw.output(bytes.dataStart, bytes.length));
  }

  /** Requests a reply of a creature. It arrives as a delivery of the kind Result with the same tag. */
  request<P>(creature: string, payload: P, deadlineMs: i64, tag: i64): void {
    const name = encode(creature);
    const bytes = toBytes<P>(payload);
    this.check("request", raw.request(name.dataStart, name.length, bytes.dataStart, bytes.length, deadlineMs, tag));
  }

  /** Answers the request that is being handled. */
  reply<P>(payload: P): void {
    const bytes = toBytes<P>(payload);
    this.check("reply", raw.reply(bytes.dataStart, bytes.length));
  }

  /** Sets or replaces a timer; a period of 0 means once. The payload is that of the delivery of the kind Timer. */
  setTimer<P>(name: string, delayMs: i64, periodMs: i64, payload: P): void {
    const key = encode(name);
    const bytes = toBytes<P>(payload);
    this.check("timer_set", raw.timer_set(key.dataStart, key.length, delayMs, periodMs, bytes.dataStart, bytes.length));
  }

  /** Cancels a timer and returns whether it was set. */
  cancelTimer(name: string): bool {
    const key = encode(name);
    return this.check("timer_cancel", raw.timer_cancel(key.dataStart, key.length)) > 0;
  }

  /** Calls a group tool and returns its result, of the type Missing if the host refuses the call. */
  call(call: ToolCall): Json {
    return this.tool(call.tool, call.json);
  }

  /** Calls a group tool with JSON arguments. */
  tool(name: string, args: string): Json {
    const key = encode(name);
    const bytes = encode(args);
    const size = this.check("tool", raw.tool(key.dataStart, key.length, bytes.dataStart, bytes.length));
    const result = decode(read(Source.Result, size));
    return Json.parse(result === null || this.failed ? "" : result);
  }

  /** Sends an HTTP request, JSON with method, url and headers, after the turn has taken effect. */
  http(request: string, body: Uint8Array, tag: i64): void {
    const bytes = encode(request);
    this.check("http", raw.http(bytes.dataStart, bytes.length, body.dataStart, body.length, tag));
  }

  /** Writes a log line. Lines beyond the limits of the turn are dropped. */
  log(level: Level, text: string): void {
    const bytes = encode(text);
    raw.log(level, bytes.dataStart, bytes.length);
  }

  /** The time of the delivery in nanoseconds since 1970, unless the creature was granted the real clock. */
  get now(): i64 {
    return raw.now();
  }

  /** Returns random bytes, the same when the turn is run again, unless the creature was granted real randomness. */
  random(length: i32): Uint8Array {
    const bytes = new Uint8Array(length);
    raw.random(bytes.dataStart, length);
    return bytes;
  }

  /** The fuel left in the turn, or -1 if fuel is not counted. */
  get fuelLeft(): i64 {
    return raw.fuel_left();
  }

  /** Whether the host has an optional part of the contract. */
  hasFeature(feature: Feature): bool {
    return raw.feature(feature) > 0;
  }
}
