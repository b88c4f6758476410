/**
 * Memory for indexes is bounded: the largest user gives way, the others continue, and it returns when there
 * is room.
 */

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { FeedBatch } from "../../src/records/feed/feed-types.ts";
import type { BranchRef } from "../../src/records/schema.ts";
import { IndexRoom } from "../../src/search/index-room.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import { branchKey } from "../../src/search/search-messages.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { snapshotFileName } from "../../src/search/snapshot/snapshot-schedule.ts";
import { startSearchWorker, WorkerClient } from "../../src/search/worker-client.ts";
import { LIMIT_MS, until } from "../support/patience.ts";
import { MemoryRecords } from "./memory-records.ts";

describe("room for indexes", () => {
  it("the largest branch of the database that uses most gives way, until the rest fits", () => {
    const room = new IndexRoom<{ incarnation: string }>(100);
    const [fair, one, two] = [{ incarnation: "1" }, { incarnation: "2" }, { incarnation: "3" }];
    room.set(fair, "a:main", 40);
    room.set(one, "b:one", 25);
    room.set(two, "b:two", 30);
    expect(room.giveWay()).toBeUndefined();
    room.set(one, "b:one", 35);
    expect(room.giveWay()).toBe(one);
    expect(room.giveWay()).toBeUndefined();
    expect(() => room.require("b:one", "2")).toThrow(
      expect.objectContaining({ code: "OUT_OF_MEMORY", message: expect.stringContaining("b:one") }),
    );
    expect([room.isRefused("b:one"), room.isRefused("b:two")]).toEqual([true, false]);
    // When it is rebuilt, its size may differ.
    room.require("b:one", "4");
    room.require("a:main", "1");
    room.delete(two);
    room.require("b:one", "2");
  });
});

describe("the search store, when there is too little memory for all indexes", () => {
  const DIMENSION = 256;
  const [small, large]: BranchRef[] = [
    { database: "small", branch: "main" },
    { database: "large", branch: "main" },
  ];
  let store: SearchStore | undefined;
  afterEach(() => store?.close());

  it("refuses the searches of the largest branch with the reason, answers all others, and is ready", async () => {
    const records = new MemoryRecords();
    for (const ref of [small!, large!]) {
      records.createBranch(ref);
      records.createTable(ref, "items", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    }
    const faults: unknown[] = [];
    store = await openSearchStore(records, {
      pollMs: 50,
      waitMs: LIMIT_MS,
      maxIndexBytes: 24 * 2 ** 20,
      onFault: (error) => faults.push(error),
    });
    const vector = (n: number) => Array.from({ length: DIMENSION }, (_, i) => Math.sin(n + i));
    const rows = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ id: `r${from + i}`, v: vector(from + i) }));
    const search = (ref: BranchRef) =>
      store!.vectorSearch(ref, "items", { column: "v", queryVector: vector(7), size: 1, consistency: "strong" });
    records.write(small!, "items", rows(0, 50));
    records.write(large!, "items", rows(0, 1_000));
    expect((await search(large!)).totalCount).toBe(1_000);
    for (let from = 1_000; from < 20_000; from += 2_000) records.write(large!, "items", rows(from, 2_000));
    const refused = {
      code: "UNAVAILABLE",
      retryAfterSeconds: 60,
      message: expect.stringContaining("branch large:main cannot be searched"),
    };
    await expect(search(large!)).rejects.toMatchObject(refused);
    await expect(search(large!)).rejects.toMatchObject(refused);
    expect((await search(small!)).results[0]!.id).toBe("r7");
    records.write(small!, "items", rows(50, 50));
    expect((await search(small!)).totalCount).toBe(100);
    expect(store.status()).toMatchObject({ ready: true, pending: [] });
    expect(store.status().memoryBytes).toBeLessThan(24 * 2 ** 20);
    expect(faults.length).toBeGreaterThan(0);
    // A branch that is recreated, and smaller.
    records.dropBranch(large!);
    records.createBranch(large!);
    records.createTable(large!, "items", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    records.write(large!, "items", rows(0, 10));
    await expect
      .poll(() =>
        search(large!).then(
          (answer) => answer.totalCount,
          () => 0,
        ),
      )
      .toBe(10);
  });
});

describe("the search worker, when a branch has gone", () => {
  it("applies nothing to its next copy that was staged for the former one", async () => {
    const client = new WorkerClient({ onLost: () => {}, onRestart: () => {} }, () => startSearchWorker());
    const key = "db:main";
    const column = { id: 2, name: "v", type: "vector", vector: { dimension: 1 } } as const;
    const schema = new Map([["items", { id: 1, name: "items", columns: new Map([["v", column]]) }]]);
    const batch = (id: string): FeedBatch => ({
      table: "items",
      ids: [id],
      columns: new Map([["v", { kind: "vector", dimension: 1, rows: Uint32Array.of(0), elements: Float32Array.of(1) }]]),
      deleted: [],
    });
    try {
      await client.call("stage", { key, batch: batch("stale") });
      const position = "1:1:";
      await expect(client.call("commit", { key, batches: [], position })).rejects.toMatchObject({ code: "OUT_OF_MEMORY" });
      await client.call("begin", { build: 1, key, incarnation: "a", version: 1, tables: schema });
      await client.call("install", { build: 1, key, position });
      expect(await client.call("commit", { key, batches: [batch("fresh")], position })).toMatchObject({ vectors: 1 });
    } finally {
      await client.close();
    }
  });
});

describe("a snapshot that there is no room for", () => {
  const DIMENSION = 256;
  const ROWS = 20_000;
  const LIMIT_BYTES = 8 * 2 ** 20;
  const [small, large]: BranchRef[] = [
    { database: "db", branch: "small" },
    { database: "db", branch: "large" },
  ];
  let directory: string;
  let records: MemoryRecords;
  let store: SearchStore;
  let faults: Error[];

  const open = async (maxIndexBytes?: number): Promise<void> => {
    records.reads = { all: 0, since: 0 };
    faults = [];
    store = await openSearchStore(records, {
      pollMs: 50,
      waitMs: LIMIT_MS,
      snapshotDir: directory,
      snapshotCloseMs: LIMIT_MS,
      onFault: (error) => faults.push(error as Error),
      ...(maxIndexBytes === undefined ? {} : { maxIndexBytes }),
    });
    await until("the store is ready", () => store.status().ready);
  };
  const search = (ref: BranchRef) =>
    store.vectorSearch(ref, "items", { column: "v", queryVector: Array<number>(DIMENSION).fill(1), size: 1, consistency: "strong" });
  const snapshot = (ref: BranchRef): string => join(directory, snapshotFileName(branchKey(ref)));
  const flip = (bytes: Buffer, place: number): void => {
    bytes[place] = bytes[place]! ^ 1;
  };

  /** With the snapshots that each test gets a copy of. */
  const made = mkdtempSync(join(tmpdir(), "lodestone-rooms-"));
  beforeAll(async () => {
    directory = made;
    records = new MemoryRecords();
    for (const [ref, count] of [
      [small!, 1_500],
      [large!, ROWS],
    ] as const) {
      records.createBranch(ref);
      records.createTable(ref, "items", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
      const rows = Array.from({ length: count }, (_, n) => ({ id: `r${n}`, v: Array.from({ length: DIMENSION }, (_, i) => (n * i) % 17) }));
      records.write(ref, "items", rows);
    }
    await open();
    await store.close();
  });
  afterAll(() => rmSync(made, { recursive: true }));
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "lodestone-room-"));
    cpSync(made, directory, { recursive: true });
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  const refused = async (): Promise<void> => {
    await open(LIMIT_BYTES);
    const full = {
      code: "UNAVAILABLE",
      message: expect.stringMatching(/^The vectors of branch db:large cannot be searched: indexes may take 8 MiB/),
    };
    await expect(search(large!)).rejects.toMatchObject(full);
    await expect(search(large!)).rejects.toMatchObject(full);
    expect((await search(small!)).totalCount).toBe(1_500);
    // Told once. Whoever had read the damage would have told of it.
    expect(faults).toEqual([expect.objectContaining(full)]);
  };

  it("is refused before its rows are read, and read when there is room", async () => {
    const bytes = readFileSync(snapshot(large!));
    flip(bytes, 10_000);
    writeFileSync(snapshot(large!), bytes);
    await refused();
    await store.close();
    flip(bytes, 10_000);
    writeFileSync(snapshot(large!), bytes);
    await open(64 * 2 ** 20);
    expect((await search(large!)).totalCount).toBe(ROWS);
    expect(records.reads.all).toBe(0);
  });

  it("of a format that does not say its size is read as far as there is room", async () => {
    const bytes = readFileSync(snapshot(large!));
    const old = Buffer.concat([bytes.subarray(0, 12), bytes.subarray(24)]);
    old.writeUInt32LE(1, 8);
    flip(old, old.length - 20);
    writeFileSync(snapshot(large!), old);
    await refused();
  });

  it("is searched as soon as another branch makes room", async () => {
    const limit = 30 * 2 ** 20;
    await open(limit);
    const held = store.status().memoryBytes;
    await store.close();
    await open(held - 2 ** 16);
    await expect(search(large!)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    // The last test: the others need both.
    records.dropBranch(small!);
    await expect.poll(() => store.branchStatus(large!).vectors).toBe(ROWS);
    expect((await search(large!)).totalCount).toBe(ROWS);
    expect(faults).toHaveLength(1);
  });
});

it("the heap of the search thread holds all that indexes may take, even if it is only texts", async () => {
  const maxIndexBytes = 24 * 2 ** 30; // more than V8 gives to any thread by itself
  const worker = startSearchWorker({ maxIndexBytes });
  expect(worker.resourceLimits?.maxOldGenerationSizeMb).toBeGreaterThan(maxIndexBytes / 2 ** 20);
  await worker.terminate();
});
