import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { lockSnapshots } from "../../src/search/snapshot/lock-snapshots.ts";

let directory: string;
let notices: string[];
const lock = () => lockSnapshots(directory, (sentence) => notices.push(sentence));

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lodestone-lock-snapshots-"));
  notices = [];
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(directory, { recursive: true, force: true });
});

test("a second server on the directory runs without snapshots, and is told which server holds them", async () => {
  const first = await lock();
  expect(notices).toEqual([]);
  expect(await lock()).toBeUndefined();
  expect(notices).toEqual([
    expect.stringMatching(
      new RegExp(
        `^The search snapshots in ${directory} are held by process ${process.pid} \\(since .*\\)\\. This server runs without snapshots, .* Give it a --data-dir of its own\\.$`,
      ),
    ),
  ]);
  first?.release();
  const next = await lock();
  expect(next).toBeDefined();
  next?.release();
  expect(notices).toHaveLength(1);
});

test("the lock of a predecessor in another container is taken over at once", async () => {
  const content = { state: "held", token: "left", since: "2026-01-01T00:00:00.000Z", pid: 1, startTime: "1", realm: "another" };
  writeFileSync(join(directory, "lodestone.lock.3"), JSON.stringify(content));
  // With a stopped clock, a process that watched for the heartbeat would never finish.
  vi.useFakeTimers({ toFake: ["performance"] });
  const taken = await lock();
  expect(taken).toBeDefined();
  expect(notices).toEqual([]);
  taken?.release();
});

test("a server starts even if the place cannot be written", async () => {
  const file = join(directory, "file");
  writeFileSync(file, "");
  expect(await lockSnapshots(join(file, "search"), (sentence) => notices.push(sentence))).toBeUndefined();
  expect(notices).toEqual([expect.stringMatching(/file\/search cannot be written \(.+\)\. This server runs without snapshots/)]);
});
