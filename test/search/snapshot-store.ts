/** A search store with snapshots, over records with every type of column, for all tests of one suite. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import type { BranchRef } from "../../src/records/schema.ts";
import { openSearchStore, type SearchStoreOptions } from "../../src/search/open-search-store.ts";
import type { SearchStore, VectorSearchResponse } from "../../src/search/search-store.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { type MemoryRecord, MemoryRecords } from "./memory-records.ts";

export const REF: BranchRef = { database: "db", branch: "main" };
export const ROWS = 3_000;

export const item = (i: number, more: object = {}): MemoryRecord => ({
  id: `i${i}`,
  v: i % 10 === 0 ? null : [i % 7, i % 11, 1],
  title: ["a", "é", null][i % 3],
  count: i % 4 === 0 ? null : BigInt(i) * 2n ** 40n,
  price: i % 5 === 0 ? Number.NaN : i / 3,
  done: [true, false, null][i % 3],
  at: BigInt(i) * 1_000_001n,
  tags: [null, [], ["a", null], ["b", "b"]][i % 4],
  config: [null, '{"k": 1}', '{"k": "x"}'][i % 3],
  other: `o${i % 5}`,
  ...more,
});

const FILTERS: unknown[] = [
  undefined,
  { title: "é" },
  { count: { $gt: String(2n ** 50n) } },
  { price: { $ge: 100 } },
  { done: false },
  { at: { $lt: "1970-01-01T00:05:00Z" } },
  { tags: { $includes: "b" } },
  { "config->k": 1 },
  { "other.name": "n3" },
  { $notExists: "v" },
  { $exists: "v" },
];
/** Each test has records, a directory, and a store that has read them. */
export class SnapshotStore {
  records!: MemoryRecords;
  directory!: string;
  store!: SearchStore;
  /** What the store reported since it was opened. */
  faults!: Error[];

  async open(options: SearchStoreOptions = {}): Promise<void> {
    const faults: Error[] = [];
    this.faults = faults;
    this.store = await openSearchStore(this.records, {
      pollMs: 50,
      snapshotDir: this.directory,
      snapshotEveryMs: 3_600_000,
      // A close on a busy machine takes longer than the three seconds that people wait.
      snapshotCloseMs: LIMIT_MS,
      onFault: (error) => faults.push(error as Error),
      ...options,
    });
  }

  async ready(): Promise<void> {
    await expect.poll(() => this.store.status().ready).toBe(true);
  }

  /** Counts what is read of the records from then on. */
  async restart(between: () => void = () => {}): Promise<void> {
    await this.store.close();
    between();
    this.records.reads = { all: 0, since: 0 };
    this.records.positionsRead = [];
    await this.open();
    await this.ready();
  }

  snapshotFile(): string {
    return join(this.directory, readdirSync(this.directory).find((file) => file.endsWith(".snapshot"))!);
  }

  /** To every kind of question, with strong consistency, so that the answers are those of the records. */
  answers(store = this.store): Promise<VectorSearchResponse[]> {
    return Promise.all(
      FILTERS.map((filter) =>
        store.vectorSearch(REF, "items", {
          column: "v",
          queryVector: [1, 2, 3],
          size: 1000,
          filter,
          similarityFunction: "l2",
          consistency: "strong",
        }),
      ),
    );
  }

  async answersWithoutSnapshot(): Promise<VectorSearchResponse[]> {
    const plain = await openSearchStore(this.records, { pollMs: 50 });
    try {
      return await this.answers(plain);
    } finally {
      await plain.close();
    }
  }
}

/** There while the tests of the suite that calls it run. */
export function snapshotStore(): SnapshotStore {
  const at = new SnapshotStore();
  beforeEach(async () => {
    at.directory = mkdtempSync(join(tmpdir(), "lodestone-search-"));
    at.records = new MemoryRecords();
    at.records.createBranch(REF);
    at.records.createTable(REF, "others", [{ name: "name", type: "string" }]);
    at.records.createTable(REF, "items", [
      { name: "v", type: "vector", vector: { dimension: 3 } },
      { name: "title", type: "string" },
      { name: "count", type: "int" },
      { name: "price", type: "float" },
      { name: "done", type: "bool" },
      { name: "at", type: "datetime" },
      { name: "tags", type: "multiple" },
      { name: "config", type: "json" },
      { name: "other", type: "link", link: { table: "others" } },
    ]);
    at.records.write(
      REF,
      "others",
      [0, 1, 2, 3, 4].map((i) => ({ id: `o${i}`, name: `n${i}` })),
    );
    at.records.write(
      REF,
      "items",
      Array.from({ length: ROWS }, (_, i) => item(i)),
    );
    await at.open();
    await at.ready();
  });
  afterEach(async () => {
    await at.store.close();
    rmSync(at.directory, { recursive: true });
  });
  return at;
}
