/**
 * What users install: both packages as `npm pack` makes them, once per test run, and projects in fresh
 * folders that install them.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Below test/packages, so that a project finds the tools installed there, as in a workspace. */
const WORK = fileURLToPath(new URL("./work/", import.meta.url));
const STAGED = fileURLToPath(new URL("../../dist/packages/", import.meta.url));

export type PackageName = "library" | "server";

/** The tarball of a package, as `npm pack` writes it, in a folder of its own. */
export function pack(name: PackageName, folder = newFolder("tarball")): string {
  const [{ filename }] = JSON.parse(npm(folder, "pack", "--json", join(STAGED, name))) as [{ filename: string }];
  return join(folder, filename);
}

let library: string | undefined;

/** A fresh folder with `files` in which the library's tarball is installed by npm. */
export function createProject(name: string, files: Readonly<Record<string, string>>, manifest: object = { type: "module" }): string {
  library ??= pack("library");
  const folder = newFolder(name);
  write(folder, { "package.json": JSON.stringify({ name: `test-${name}`, version: "0.0.0", private: true, ...manifest }), ...files });
  // Offline: the library has no dependencies, so no registry may be contacted.
  npm(folder, "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", library);
  return folder;
}

export function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

export function newFolder(name: string): string {
  mkdirSync(WORK, { recursive: true });
  return mkdtempSync(join(WORK, `${name}-`));
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** @returns npm's output. */
export function npm(folder: string, ...args: string[]): string {
  return execFileSync("npm", args, {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, npm_config_loglevel: "error" },
    stdio: ["ignore", "pipe", "pipe"],
  });
}
