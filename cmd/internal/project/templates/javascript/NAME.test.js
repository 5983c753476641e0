import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeHost } from "./terrarium-kit/fake.js";
import creature from "./NAME.js";

test("capital letters", async () => {
  const host = new FakeHost(creature, { channels: ["out"] });
  await host.message("in", "frog 7");
  assert.equal(host.sent[0].payload, "FROG 7");
});
