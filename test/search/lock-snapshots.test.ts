import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { lockSnapshots } from "../../src/search/snapshot/snapshot-schedule.ts";
import { item, REF, ROWS, snapshotStore } from "./snapshot-store.ts";

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

const OF_ANOTHER = { state: "held", token: "left", since: "2026-01-01T00:00:00.000Z", pid: 1, startTime: "1", realm: "another" };

test("the lock of a predecessor in another container is taken over at once", async () => {
  writeFileSync(join(directory, "lodestone.lock.3"), JSON.stringify(OF_ANOTHER));
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

describe("a server whose lock another one has taken", () => {
  const at = snapshotStore();

  test("writes nothing into the directory any more, says so once, and does not keep the feed from forgetting", async () => {
    await at.store.close();
    const held = (await lockSnapshots(at.directory, (sentence) => notices.push(sentence)))!;
    await at.open({ snapshotsLost: held.lost, snapshotEveryMs: 100 });
    await at.ready();
    at.records.write(REF, "items", [item(5_000)]);
    await expect.poll(() => at.records.acknowledged).toBe(at.records.changeCount(REF));
    const kind = (file: string): string => file.replace(/^.*\./, "");
    expect(readdirSync(at.directory).map(kind)).toEqual(expect.arrayContaining(["snapshot", "journal"]));

    const lost = new Promise((resolve) => held.lost.addEventListener("abort", resolve));
    // As a server in another container does.
    writeFileSync(join(at.directory, "lodestone.lock.2"), JSON.stringify(OF_ANOTHER));
    rmSync(join(at.directory, "lodestone.lock.1"));
    await lost;
    const checksum = (file: string) =>
      createHash("sha256")
        .update(readFileSync(join(at.directory, file)))
        .digest("hex");
    const files = () => readdirSync(at.directory).map((file) => [file, checksum(file)]);
    const before = files();
    for (let round = 0; round < 3; round++) {
      at.records.write(REF, "items", [item(6_000 + round)]);
      await expect.poll(() => at.records.acknowledged).toBe(at.records.changeCount(REF));
    }
    // A change of the schema, and a branch that is read anew, would begin new files.
    at.records.alter(REF, (tables) => {
      const items = tables.find(({ name }) => name === "items")!;
      items.columns = items.columns.filter(({ name }) => name !== "at");
    });
    at.records.trimmedBelow = at.records.changeCount(REF);
    at.records.write(REF, "items", [item(7_000)]);
    await expect.poll(() => at.records.acknowledged).toBe(at.records.changeCount(REF));
    const found = await at.store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3], size: 1000, consistency: "strong" });
    expect(found.totalCount).toBe([...Array(ROWS).keys(), 5_000, 6_000, 6_001, 6_002, 7_000].filter((i) => i % 10 !== 0).length);
    await at.store.close();
    expect(files()).toEqual(before);
    expect(notices).toEqual([
      `Another server has taken over the search snapshots in ${at.directory}. This server goes on without snapshots, so its next start reads all records. Give each server a --data-dir of its own.`,
    ]);
    expect(at.faults).toEqual([]);
  });
});
