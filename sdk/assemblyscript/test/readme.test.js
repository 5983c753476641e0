import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { FakeHost } from "terrarium-assemblyscript/fake";

const kit = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(kit, "README.md"), "utf8");
const blocks = (language) => [...page.matchAll(new RegExp("```" + language + "\\n([^]*?)```", "g"))].map((m) => m[1]);

/** Builds the creatures of the page, and runs a function in the folder with build/0.wasm and so on. */
function withCreatures(run) {
  const folder = mkdtempSync(join(tmpdir(), "readme-"));
  try {
    mkdirSync(join(folder, "assembly"));
    blocks("ts").forEach((text, i) => writeFileSync(join(folder, "assembly", `${i}.ts`), text));
    const build = spawnSync(process.execPath, [join(kit, "examples", "build.js"), join(folder, "build"), join(folder, "assembly")]);
    assert.equal(build.status, 0, String(build.stderr));
    run(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the code of the page", () => withCreatures((folder) => {
  const [code] = blocks("js");
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(kit, join(folder, "node_modules", "terrarium-assemblyscript"), "junction");
  writeFileSync(join(folder, "page.mjs"), code.replace("repeat.wasm", "0.wasm"));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const ran = spawnSync(process.execPath, ["page.mjs"], { cwd: folder, env });
  assert.equal(ran.status, 0, String(ran.stdout) + ran.stderr);

  const host = new FakeHost(join(folder, "build", "1.wasm"), { channels: [] });
  assert.throws(() => host.message("in", ""), { code: "invalid_argument", message: "there is no text" });
  host.message("in", "rain");
  assert.deepEqual(host.outputs, ["not sent: not_connected"]);
}));

test("the smallest creature has at most ten lines", () => assert.ok(blocks("ts")[0].split("\n").length <= 10));
