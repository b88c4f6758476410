import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { createProject, newFolder, removeFolder } from "../packed.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

it("the library contains the sources of its WebAssembly, which compile to the same bytes", () => {
  const project = createProject("wasm", {});
  try {
    const installed = join(project, "node_modules/lodestone");
    for (const name of ["assembly", "asconfig.json"]) cpSync(join(installed, name), join(project, name), { recursive: true });
    for (const [target, file] of [
      ["simd", "core.wasm"],
      ["relaxed", "core.relaxed.wasm"],
    ] as const) {
      execFileSync(join(ROOT, "node_modules/.bin/asc"), ["assembly/index.ts", "--target", target], { cwd: project, stdio: "ignore" });
      expect(sha256(join(project, `build/core.${target}.wasm`))).toBe(sha256(join(installed, "dist", file)));
    }
  } finally {
    removeFolder(project);
  }
});

/**
 * Path and hash of each file of both packages. Texts for people are copied, and may have been edited since.
 */
function hashes(staged: string): string[] {
  return readdirSync(staged, { recursive: true, encoding: "utf8", withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".md"))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path.slice(staged.length)} ${sha256(path)}`)
    .sort();
}

it("a build of the same sources in another folder gives the same files in both packages, byte for byte", () => {
  const copy = newFolder("rebuilt");
  const texts = ["LICENSE", "README.md", "CHANGELOG.md"];
  try {
    for (const name of [
      "assembly",
      "src",
      "scripts",
      "docs",
      "adapters",
      "asconfig.json",
      "tsconfig.json",
      "package.json",
      "package-lock.json",
      ...texts,
    ])
      cpSync(join(ROOT, name), join(copy, name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    // The other folder has no history.
    const { commit } = JSON.parse(readFileSync(join(ROOT, "dist/build.json"), "utf8")) as { commit?: string };
    const env = { ...process.env, ...(commit === undefined ? {} : { LODESTONE_COMMIT: commit }) };
    execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: copy, env, stdio: "ignore" });
    const own = hashes(join(ROOT, "dist/packages"));
    expect(own.length).toBeGreaterThan(200);
    expect(hashes(join(copy, "dist/packages"))).toEqual(own);
  } finally {
    removeFolder(copy);
  }
});
