// Builds all creatures of a folder as OUT/NAME.wasm: node examples/build.js OUT [FOLDER]. The folder is this one by default. ASC is
// the path of asc.js, unless assemblyscript is installed for this package.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const examples = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2]);
const folder = resolve(process.argv[3] ?? examples);

function compiler() {
  if (process.env.ASC) return resolve(process.env.ASC);
  return join(dirname(createRequire(import.meta.url).resolve("assemblyscript/package.json")), "bin", "asc.js");
}

// The examples import the package by its name, as an author does.
const packages = mkdtempSync(join(tmpdir(), "examples-"));
try {
  symlinkSync(dirname(examples), join(packages, "terrarium-assemblyscript"), "junction");
  mkdirSync(out, { recursive: true });
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".ts"))) {
    const module = join(out, file.replace(/ts$/, "wasm"));
    const args = [compiler(), file, "--path", packages, "-O", "--runtime", "minimal", "-o", module];
    const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" });
    if (status !== 0) process.exitCode = 1;
  }
} finally {
  rmSync(packages, { recursive: true });
}
