// The fake host answers as the host: sdk/reference/probes.txt has the answers of the host, and describes its lines.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FakeHost } from "terrarium-assemblyscript/fake";

const [, ...groups] = readFileSync(new URL("../../reference/probes.txt", import.meta.url), "utf8").trimEnd().split("\n\n");
const payloadAt = 1 << 16;

function decoded(word, made) {
  if (word === "-") return Buffer.alloc(0);
  const [letter, times] = word.split("^");
  if (times) return Buffer.alloc(Number(times), letter);
  const bytes = word.replace("#", made).replace(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1");
}

/** Returns the calls of probes, on bytes in memory. */
const calls = (f, name, text, size, [a, b]) => ({
  config: () => f.config(...name, 0, 0),
  send() {
    const channel = f.channel(...name);
    return channel < 0 ? channel : f.send(channel, payloadAt, size, ...text);
  },
  send_all: () => f.send(-1, payloadAt, size, ...text),
  send_to: () => f.send_to(...name, payloadAt, size),
  request: () => f.request(...name, payloadAt, size, a, b),
  reply: () => f.reply(payloadAt, size),
  output: () => f.output(payloadAt, size),
  state_get: () => f.state_get(...name, 0, 0),
  state_set: () => f.state_set(...name, payloadAt, size),
  state_delete: () => f.state_delete(...name),
  state_list: () => f.state_list(...name, 0, 0),
  timer_set: () => f.timer_set(...name, a, b, payloadAt, size),
  timer_cancel: () => f.timer_cancel(...name),
  log: () => f.log(Number(a), payloadAt, size),
  tool: () => Math.min(f.tool(...name, ...text), 0),
});

function answer(functions, memory, call) {
  const [op, name, text, ...numbers] = call.split(" ");
  const [size, a, b, times] = numbers.slice(0, 4).map(BigInt);
  const put = (bytes, at) => {
    new Uint8Array(memory.buffer).set(bytes, at);
    return [at, bytes.length];
  };
  let made = 0;
  let status = 0;
  for (; made < times; made++) {
    status = calls(functions, put(decoded(name, made), 0), put(decoded(text, made), 1024), Number(size), [a, b])[op]();
    if (status < 0) break;
  }
  return `${made} ${status}`;
}

function tools(name) {
  if (name !== "group_status") throw Object.assign(new Error("there is no such tool"), { code: "not_found" });
  return {};
}

for (const group of groups) {
  const [title, ...lines] = group.split("\n");
  test(`answers as the host: ${title}`, () => {
    const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
    const host = new FakeHost(empty, {
      channels: ["out", "common"], creatures: ["frog"], config: { text: "a", list: [1, "b"], null: null }, tools: title === "turn tools" ? tools : null,
    });
    const memory = new WebAssembly.Memory({ initial: 20 });
    const creature_handle = () => {
      host.calls.memory = memory;
      const functions = host.calls.imports().terrarium_v1;
      for (const line of lines) {
        const call = line.slice(0, line.indexOf("= ") + 2);
        assert.equal(call + answer(functions, memory, call), line);
      }
      return 0;
    };
    host.instance = { exports: { creature_handle } }; // instead of one of a module
    host.deliver(title.startsWith("request ") ? "request" : "message");
  });
}
