/** Builds can be told apart. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeBuildIdentity } from "../../scripts/build-identity.mjs";
import { runCommand, startServer } from "../support/server.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lodestone-build-"));
  for (const folder of ["dist", "src", "assembly", "scripts"]) {
    mkdirSync(join(root, folder));
    writeFileSync(join(root, folder, "a.txt"), "a");
  }
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const written = (): unknown => {
  writeBuildIdentity(`${root}/`);
  return JSON.parse(readFileSync(join(root, "dist", "build.json"), "utf8"));
};
const git = (...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t.example", ...args], { cwd: root, encoding: "utf8" }).trim();

test("a build without the history has no commit, another its own, and says when the sources differ", () => {
  expect(written()).toEqual({});
  git("init", "--quiet");
  expect(written()).toEqual({});
  git("add", "src", "assembly", "scripts");
  git("commit", "--quiet", "--message", "first");
  const commit = git("rev-parse", "--short=12", "HEAD");
  expect(written()).toEqual({ commit });
  writeFileSync(join(root, "src", "a.txt"), "b");
  expect(written()).toEqual({ commit: `${commit}-changed` });
});

test("a server says its version and commit in /livez, in the first line of its log, and as --version", async () => {
  const { commit } = JSON.parse(readFileSync(new URL("../../dist/build.json", import.meta.url), "utf8")) as { commit?: string };
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
  const identity = commit === undefined ? { version } : { version, commit };
  const { stdout } = await runCommand(["--version"]);
  expect(stdout).toBe(`${commit === undefined ? version : `${version} (${commit})`}\n`);
  const server = await startServer();
  try {
    expect((await server.get("/livez")).body).toEqual({ status: "alive", ...identity });
    expect(JSON.parse(server.log.slice(0, server.log.indexOf("\n")))).toMatchObject({ msg: "starting", ...identity });
  } finally {
    await server.stop();
  }
});
