/** A search store over records with a table of items, for all tests of one suite. */

import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { BranchRef } from "../../src/records/schema.ts";
import type { SearchStoreOptions } from "../../src/search/open-search-store.ts";
import type { SearchStore, VectorSearchRequest, VectorSearchResponse } from "../../src/search/search-store.ts";
import { LIMIT_MS } from "../support/patience.ts";
import type { EngineFixture } from "./engines.ts";
import { type MemoryRecord, MemoryRecords } from "./memory-records.ts";

export const REF: BranchRef = { database: "db", branch: "main" };
export const OPTIONS: SearchStoreOptions = { pollMs: 50, waitMs: LIMIT_MS };

export const item = (id: string, embedding: number[] | null, more: object = {}): MemoryRecord => ({ id, embedding, ...more });

export function recordsWithItems(): MemoryRecords {
  const records = new MemoryRecords();
  records.createBranch(REF);
  records.createTable(REF, "teams", [{ name: "name", type: "string" }]);
  records.createTable(REF, "items", [
    { name: "embedding", type: "vector", vector: { dimension: 3 } },
    { name: "color", type: "string" },
    { name: "price", type: "float" },
    { name: "team", type: "link", link: { table: "teams" } },
  ]);
  return records;
}

/** Each test has an engine without branches, and a store of its own, which it may close and open anew. */
export class ItemsStore {
  engine!: EngineFixture;
  records!: MemoryRecords;
  store!: SearchStore;

  /** Of `items`, strong unless told otherwise. */
  search(request: Partial<VectorSearchRequest>, table = "items"): Promise<VectorSearchResponse> {
    return this.store.vectorSearch(REF, table, { column: "embedding", queryVector: [1, 2, 3], consistency: "strong", ...request });
  }

  /** Best first. */
  async ids(request: Partial<VectorSearchRequest>): Promise<string[]> {
    return (await this.search(request)).results.map(({ id }) => id);
  }
}

/** There while the tests of the suite that calls it run. */
export function itemsStore(start: () => Promise<EngineFixture>): ItemsStore {
  const at = new ItemsStore();
  beforeAll(async () => {
    at.engine = await start();
  });
  afterAll(() => at.engine.stop());
  beforeEach(async () => {
    await at.engine.reset();
    at.records = recordsWithItems();
    at.store = await at.engine.open(at.records, OPTIONS);
  });
  afterEach(() => at.store.close());
  return at;
}
