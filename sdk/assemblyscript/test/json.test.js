import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeHost } from "terrarium-assemblyscript/fake";

const host = new FakeHost(new URL("../build/probe.wasm", import.meta.url));

function output(alias, payload) {
  host.message(alias, payload);
  return host.outputs.pop();
}

test("documents are understood as by JSON.parse", () => {
  for (const document of [
    "{}", "[]", " [ ] ", "null", "true", "[false, null]", "0", "-7", "123456789012345678", "\"\"", "\"a\\u00e9\\n\\\\\\\"\\/\\t\\b\\f\\r\"",
    "\"\\ud83d\\ude00 é 😀\"", "{\"a\": {\"b\": [1, {\"c\": \"}\"}]}, \"\": \"]\", \"é\\u0041\": [[], {}]}", "\"\\u0000\\u001f\"",
  ]) {
    assert.deepEqual(JSON.parse(output("in", document)), JSON.parse(document), document);
  }
  for (const number of ["1.5", "-0.25e+10", "1E3", "1234567890123456789012"]) assert.equal(output("in", number), number);
});

test("what is not JSON is missing", () => {
  for (const document of [
    "", " ", "nul", "01", "-", "1.", "1e", ".5", "+1", "[1,]", "[1 2]", "[", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "\"", "\"\\x\"",
    "\"\\u12g4\"", "\"a\nb\"", "1 2", "]", "[1", "{\"a\":1", "tru", "[".repeat(200) + "]".repeat(200),
  ]) {
    assert.throws(() => JSON.parse(document.length > 300 ? "" : document), SyntaxError);
    assert.equal(output("in", document), "missing", document);
  }
});

test("the arguments of tools are JSON", () => {
  const wires = "[{\"channel\":\"c\"},{\"channel\":\"d\",\"alias\":\"e\"}]";
  for (const bytes of [[0xff], [0xff, 0x00], [0xfe, 0x61, 0x62], [0xc3, 0x28, 0xa0, 0xa1]]) {
    const expected = JSON.stringify({ channel: "a\"\n", payload: { base64: Buffer.from(bytes).toString("base64") } });
    assert.deepEqual(JSON.parse(output("tool", Uint8Array.from(bytes)).slice(0, -wires.length)), JSON.parse(expected));
  }
  assert.equal(output("tool", "é\u0001"), `{"channel":"a\\u0022\\u000a","payload":"é\\u0001"}${wires}`.replaceAll("\\u0022", "\\\""));
});
