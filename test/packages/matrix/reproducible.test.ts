import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { createProject, newFolder, pack, removeFolder } from "../packed.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

it("the library carries the sources of its WebAssembly: compiled again they give the same bytes", () => {
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

it("a build of the same sources in another folder gives the same two tarballs, byte for byte", () => {
  const copy = newFolder("rebuilt");
  try {
    for (const name of [
      "assembly",
      "src",
      "scripts",
      "docs",
      "asconfig.json",
      "tsconfig.json",
      "package.json",
      "LICENSE",
      "README.md",
      "CHANGELOG.md",
    ])
      cpSync(join(ROOT, name), join(copy, name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: copy, stdio: "ignore" });
    for (const name of ["library", "server"] as const) {
      const rebuilt = pack(name, undefined, join(copy, "dist/packages"));
      expect([name, sha256(rebuilt)]).toEqual([name, sha256(pack(name))]);
    }
  } finally {
    removeFolder(copy);
  }
});
