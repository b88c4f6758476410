/** Columns that are cut into shards as they grow: the same answers, during the change and after it. */

import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RowDirectory } from "../../src/core/row-directory.ts";
import type { BranchRef } from "../../src/records/schema.ts";
import { ColumnIndex } from "../../src/search/column-index.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { referenceSearch, SIMILARITIES } from "../reference.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { KeptItems } from "./kept-items.ts";
import { MemoryRecords } from "./memory-records.ts";

const REF: BranchRef = { database: "db", branch: "main" };
const DIMENSION = 8;

/** Few values, so that scores are equal across shards. */
const vectorOf = (i: number): number[] => Array.from({ length: DIMENSION }, (_, j) => ((i * 31 + j * 17) % 7) - 3);

describe("ColumnIndex", () => {
  test("moves to shards at its size limit, keeps every vector, and answers the same before and after", async () => {
    const rows = new RowDirectory();
    const index = await ColumnIndex.create({ dimension: DIMENSION, rows, shardedFromBytes: 4 * DIMENSION * 500 });
    const kept = new Map<string, number[]>();
    const query = Float32Array.from(vectorOf(3));
    const check = async (): Promise<void> => {
      for (const similarity of SIMILARITIES) {
        const [answer] = await index.searchMany([query], { k: 50, similarity });
        expect(answer).toEqual(referenceSearch(kept, query, { k: 50, similarity }));
      }
    };
    for (let step = 0; step < 8; step++) {
      const ids = Array.from({ length: 100 }, (_, i) => `r${step * 90 + i}`);
      const rowsOfIds = ids.map((id) => rows.add(id));
      for (const [i, id] of ids.entries()) {
        kept.set(id, vectorOf(step * 1000 + i));
      }
      index.setRows(rowsOfIds, ids, Float32Array.from(ids.flatMap((id) => kept.get(id)!)));
      index.delete(ids[50]!);
      kept.delete(ids[50]!);
      const gone = ids[60]!;
      kept.delete(gone);
      rows.release(gone);
      // Searches see what was written before they were requested, whether or not it has settled.
      await check();
      await index.settled();
      await check();
      expect(index.size).toBe(kept.size);
      expect(index.shards).toBe(kept.size >= 500 && availableParallelism() > 1 ? availableParallelism() : 0);
    }
    const ids = [...kept.keys(), "nobody"];
    const vectors = await index.getMany(ids);
    expect(vectors.map((vector) => vector && Array.from(vector))).toEqual([...kept.values(), undefined]);
    expect(index.memoryBytes).toBeGreaterThan(4 * DIMENSION * kept.size);
    const last = index.searchMany([query], { k: 1 });
    await index.free();
    expect((await last)[0]!.results).toHaveLength(1);
  });
});

describe("search store with shards", () => {
  let records: MemoryRecords;
  let items: KeptItems;
  let store: SearchStore;
  let directory: string;

  const open = async (): Promise<void> => {
    store = await openSearchStore(records, {
      pollMs: 50,
      waitMs: LIMIT_MS,
      shardedFromBytes: 4 * DIMENSION * 1_200,
      snapshotDir: directory,
      snapshotCloseMs: LIMIT_MS,
    });
  };
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "lodestone-shards-"));
    records = new MemoryRecords();
    records.createBranch(REF);
    records.createTable(REF, "items", [
      { name: "v", type: "vector", vector: { dimension: DIMENSION } },
      { name: "color", type: "string" },
    ]);
    items = new KeptItems(REF, records, vectorOf);
    await open();
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  const write = (from: number, to: number, deleted: string[] = []): void => items.write(from, to, deleted);
  const check = async (): Promise<void> => {
    const query = vectorOf(5);
    await items.check(store, query, "l2", { size: 40 });
    await items.check(store, query, "cosineSimilarity", { size: 40, color: "red" });
    await items.check(store, query, "l1", { size: 40, color: "none" });
  };

  test("gives the same answers while a column grows over the size limit, and after restarts", async () => {
    write(0, 1_000);
    await check();
    write(1_000, 3_000, ["i5", "i6"]);
    await check();
    write(0, 100, ["i2999"]);
    await check();
    expect(store.status()).toMatchObject({ rows: items.kept.size });
    await store.close();
    write(0, 0, ["i7"]);
    records.reads.all = 0;
    await open();
    await check();
    expect(records.reads.all).toBe(0);
  });

  test("applies a transaction at the same moment for searches on all shards", async () => {
    write(0, 2_000);
    await check();
    // All vectors change in each transaction, so a mixture of two would have two scores.
    records.write(
      REF,
      "items",
      Array.from({ length: 2_000 }, (_, i) => ({ id: `i${i}`, v: vectorOf(0), color: i % 2 === 0 ? "x" : null })),
    );
    await store.vectorSearch(REF, "items", { column: "v", queryVector: vectorOf(1), consistency: "strong" });
    let isWriting = true;
    const reader = (async () => {
      while (isWriting) {
        const { totalCount, results } = await store.vectorSearch(REF, "items", {
          column: "v",
          queryVector: vectorOf(1),
          size: 1000,
          similarityFunction: "l2",
          filter: { $exists: "color" },
        });
        expect(totalCount).toBe(1_000);
        expect(new Set(results.map(({ score }) => score)).size).toBe(1);
      }
    })();
    for (let n = 1; n < 12; n++) {
      records.write(
        REF,
        "items",
        Array.from({ length: 2_000 }, (_, i) => ({ id: `i${i}`, v: vectorOf(n), color: (i + n) % 2 === 0 ? "x" : null })),
      );
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    await store.vectorSearch(REF, "items", { column: "v", queryVector: vectorOf(1), consistency: "strong" });
    isWriting = false;
    await reader;
  });
});
