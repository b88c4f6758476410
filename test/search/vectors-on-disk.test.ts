/** Columns whose vectors are in files: the same answers, after any stop; a file that is not what was written is never an answer. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import type { BranchRef } from "../../src/records/schema.ts";
import { openSearchStore, type SearchStoreOptions } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { KeptItems } from "./kept-items.ts";
import { MemoryRecords } from "./memory-records.ts";

const REF: BranchRef = { database: "db", branch: "main" };
const DIMENSION = 128;
const ROWS = 6_000;

describe("vectors on disk", () => {
  let records: MemoryRecords;
  let store: SearchStore;
  let directory: string;
  let faults: string[];
  const random = seededRandom(23);
  let items: KeptItems;

  const open = async (options: SearchStoreOptions = {}): Promise<void> => {
    faults = [];
    store = await openSearchStore(records, {
      pollMs: 50,
      waitMs: LIMIT_MS,
      snapshotDir: directory,
      snapshotEveryMs: 3_600_000,
      onDiskFromBytes: 4 * DIMENSION * 1_000,
      onFault: (error) => faults.push((error as Error).message),
      ...options,
    });
    await expect.poll(() => store.status().ready, { timeout: LIMIT_MS }).toBe(true);
  };
  const vectorOf = (i: number): number[] | null =>
    i % 50 === 0 ? null : Array.from({ length: DIMENSION }, (_, j) => (j % 8 < 4 ? random() : 0.1 * random()));
  const write = (from: number, to: number, deleted: string[] = []): void => items.write(from, to, deleted);
  const check = async (): Promise<void> => {
    const query = Array.from({ length: DIMENSION }, () => random());
    for (const more of [{}, { color: "red" }]) {
      for (const similarity of ["cosineSimilarity", "l2", "l1"] as const)
        await items.check(store, query, similarity, { size: 20, ...more });
    }
  };
  const restart = async (between: () => void = () => {}): Promise<void> => {
    await store.close();
    between();
    records.reads = { all: 0, since: 0 };
    await open();
  };
  const folders = (): string[] => readdirSync(directory).filter((name) => name.endsWith(".vectors"));
  const fileOf = (shard: number): string => join(directory, folders()[0]!, `shard-${shard}.vectors`);
  const files = (): string[] => readdirSync(join(directory, folders()[0]!)).map((name) => join(directory, folders()[0]!, name));

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "lodestone-vectors-on-disk-"));
    records = new MemoryRecords();
    records.createBranch(REF);
    records.createTable(REF, "items", [
      { name: "v", type: "vector", vector: { dimension: DIMENSION } },
      { name: "color", type: "string" },
    ]);
    items = new KeptItems(REF, records, vectorOf);
    write(0, ROWS);
    await open();
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  test("are in files of one folder, and answers and restarts are as with vectors in memory", async () => {
    await check();
    const { memoryBytes, fileBytes } = store.status();
    expect(fileBytes).toBeGreaterThan(0);
    expect(folders()).toHaveLength(1);
    expect(memoryBytes).toBeGreaterThan(0);
    for (let round = 0; round < 3; round++) {
      write(round * 700, round * 700 + 500, [`i${3_000 + round}`, `i${4_000 + round}`]);
      write(ROWS + round * 10, ROWS + round * 10 + 10);
      await check();
      await restart(() => write(round, round + 20, [`i${5_000 + round}`]));
      expect(records.reads.all).toBe(0);
      await check();
      expect(folders()).toHaveLength(1);
    }
    expect(faults).toEqual([]);
  });

  test("go there when a column grows beyond the limit, and again when it is read anew", async () => {
    records.createTable(REF, "later", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    const { fileBytes } = store.status();
    for (let from = 0; from < 6_000; from += 1_000) {
      const rows = Array.from({ length: 1_000 }, (_, i) => ({ id: `l${from + i}`, v: vectorOf(1) }));
      records.write(REF, "later", rows);
      const answer = await store.vectorSearch(REF, "later", {
        column: "v",
        queryVector: rows[7]!.v as number[],
        size: 1,
        consistency: "strong",
      });
      expect(answer.results).toMatchObject([{ id: `l${from + 7}` }]);
    }
    expect(store.status().fileBytes).toBeGreaterThan(fileBytes);
    expect(folders()).toHaveLength(2);
    await check();
    await restart();
    expect(records.reads.all).toBe(0);
    expect(store.status().fileBytes).toBeGreaterThan(fileBytes);
    await check();
    expect(faults).toEqual([]);
  });

  test("are part of a new snapshot soon after they went there, so that no start moves them once more", async () => {
    await store.close();
    rmSync(directory, { recursive: true });
    mkdirSync(directory);
    const options = { snapshotEveryMs: 100, onDiskFromBytes: 4 * DIMENSION * (ROWS + 1_000) };
    await open(options);
    const snapshots = (): string[] => readdirSync(directory).filter((name) => name.endsWith(".snapshot"));
    await expect.poll(() => snapshots().length, { timeout: LIMIT_MS }).toBe(1);
    expect(folders()).toEqual([]);
    write(ROWS, ROWS + 2_000);
    await check();
    const [folder] = folders();
    const isNamed = (): boolean => readFileSync(join(directory, snapshots()[0]!)).includes(folder!);
    await expect.poll(isNamed, { timeout: LIMIT_MS }).toBe(true);
    await store.close();
    await open(options);
    await check();
    expect(folders()).toEqual([folder]);
    expect(faults).toEqual([]);
  });

  test("stay with their snapshot through a kill at any moment: what is on disk leads to the present", async () => {
    await check();
    await restart();
    for (let round = 0; round < 6; round++) {
      write(round * 200, round * 200 + 150, [`i${2_000 + round}`]);
      await check();
      if (round % 2 === 1) await restart();
      write(round * 200 + 50, round * 200 + 250);
      await check();
      // The folder as a kill would leave it, while the store goes on.
      const copy = mkdtempSync(join(tmpdir(), "lodestone-killed-"));
      cpSync(directory, copy, { recursive: true });
      const left = await openSearchStore(records, {
        pollMs: 50,
        waitMs: LIMIT_MS,
        snapshotDir: copy,
        onDiskFromBytes: 4 * DIMENSION * 1_000,
        onFault: (error) => faults.push((error as Error).message),
      });
      const before = store;
      store = left;
      await check();
      store = before;
      await left.close();
      rmSync(copy, { recursive: true });
    }
    expect(faults).toEqual([]);
  });

  test.each([
    ["cut short", () => truncateSync(fileOf(0), 1_000)],
    ["missing", () => rmSync(fileOf(0))],
    ["emptied", () => truncateSync(fileOf(0), 0)],
    ["another column's", () => writeFileSync(fileOf(0), Buffer.alloc(statSync(fileOf(0)).size, 63))],
  ] as const)("a file that is %s: the records are read anew, and the answers are right", async (_, damage) => {
    await check();
    await restart(damage);
    await check().catch(() => {}); // told once, when the row is read
    await expect.poll(() => check().then(() => "right"), { timeout: LIMIT_MS }).toBe("right");
    expect(faults.join()).toMatch(/vectors (is|are) damaged|shorter/);
    faults = [];
    await restart();
    expect(records.reads.all).toBe(0);
    await check();
    expect(faults).toEqual([]);
    expect(folders()).toHaveLength(1);
  });

  test("one row edited while the store runs: 503 with the reason, never another answer, and the records are read anew", async () => {
    await check();
    for (const file of files()) {
      const bytes = readFileSync(file);
      for (let at = 64; at < bytes.length; at += 4 * DIMENSION) bytes[at]! ^= 1;
      writeFileSync(file, bytes);
    }
    const failed = expect.objectContaining({ code: "UNAVAILABLE", retryAfterSeconds: 1 });
    await expect(check()).rejects.toEqual(failed);
    await expect.poll(() => faults.length).toBe(1);
    expect(faults[0]).toMatch(
      /^The index of branch db:main is made again from its records\. .*damaged: a row is not the one that was written/,
    );
    await expect.poll(() => check().then(() => "right"), { timeout: LIMIT_MS }).toBe("right");
    expect(faults).toHaveLength(1);
  });

  test("are in memory without a directory for snapshots", async () => {
    await store.close();
    await open({ snapshotDir: undefined as unknown as string });
    await check();
    expect(store.status().fileBytes).toBe(0);
  });

  test("a branch that is dropped takes its files along", async () => {
    await check();
    await restart();
    records.dropBranch(REF);
    await expect.poll(() => store.status().rows, { timeout: LIMIT_MS }).toBe(0);
    await restart();
    await expect.poll(folders, { timeout: LIMIT_MS }).toEqual([]);
  });
});
