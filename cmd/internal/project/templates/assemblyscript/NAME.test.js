import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeHost } from "./terrarium-kit/fake/host.js";

test("capital letters", () => {
  const host = new FakeHost("NAME.wasm", { channels: ["out"] });
  host.message("in", "frog 7");
  assert.deepEqual(host.sent, [{ channel: "out", payload: "FROG 7", headers: {} }]);
});
