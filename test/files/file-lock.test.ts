/** The lock of a file that several processes change. Their processes are real ones, or what is known of them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { withFileLock } from "../../src/files/file-lock.ts";
import { ownIdentity } from "../../src/files/process-identity.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lodestone-lock-"));
  file = join(folder, "file");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lockOf = (identity: object | string, token = "other"): string => {
  const lock = join(folder, `file.lock-${token}`);
  writeFileSync(lock, typeof identity === "string" ? identity : JSON.stringify(identity));
  return lock;
};
const PATIENCE_MS = 300;

it("is had by one at a time, in the order in which they asked, and by the next after a failure", async () => {
  const log: string[] = [];
  const work = (name: string) => async (): Promise<string> => {
    log.push(`${name} begins`);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^file\.lock-/)]);
    await new Promise((resolve) => setImmediate(resolve));
    log.push(`${name} ends`);
    if (name === "b") throw new Error("no");
    return name;
  };
  expect(await Promise.allSettled(["a", "b", "c"].map((name) => withFileLock(file, work(name))))).toMatchObject([
    { value: "a" },
    { reason: new Error("no") },
    { value: "c" },
  ]);
  expect(log).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  expect(readdirSync(folder)).toEqual([]);
});

it("of a living process is respected, and it is named", async () => {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "ignore"] });
  try {
    await once(child, "spawn");
    // The start time is unknown: that it lives decides.
    lockOf({ ...ownIdentity(), pid: child.pid, startTime: null });
    await expect(withFileLock(file, async () => "mine", PATIENCE_MS)).rejects.toMatchObject({
      code: "CONFLICT",
      message: `file is being changed by process ${child.pid}. Try again when that has finished.`,
    });
    expect(readdirSync(folder)).toEqual(["file.lock-other"]);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  expect(await withFileLock(file, async () => "mine", PATIENCE_MS)).toBe("mine");
  expect(readdirSync(folder)).toEqual([]);
});

it.each<[string, object | string]>([
  ["a process whose number another one has now", { ...ownIdentity(), pid: process.pid, startTime: "1" }],
  ["a process before the machine was restarted, after some patience", { ...ownIdentity(), realm: "another boot" }],
  ["nobody, since a power cut left it without content", ""],
])("of %s is taken over", async (_, identity) => {
  lockOf(identity);
  expect(await withFileLock(file, async () => "mine", PATIENCE_MS)).toBe("mine");
  expect(readdirSync(folder)).toEqual([]);
});

it("that was taken over meanwhile stops the change", async () => {
  const changed = withFileLock(file, async (requireLock) => {
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    requireLock();
  });
  await expect(changed).rejects.toMatchObject({ code: "CONFLICT" });
});
