import { afterEach, expect, it } from "vitest";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { searchTable } from "../../src/search/text/text-answer.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { MemoryRecords } from "./memory-records.ts";

const DIMENSION = 64;
const ROWS = 3_000;
const [VECTORS, WORDS] = [
  { database: "db", branch: "vectors" },
  { database: "db", branch: "words" },
];

let store: SearchStore;
afterEach(() => store.close());

it("words that do not fit give way, and no vector does", async () => {
  const records = new MemoryRecords();
  for (const ref of [VECTORS, WORDS]) {
    records.createBranch(ref);
    records.createTable(ref, "items", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    records.write(
      ref,
      "items",
      Array.from({ length: ROWS }, (_, n) => ({ id: `r${n}`, v: Array.from({ length: DIMENSION }, (_, i) => (n * i) % 17) })),
    );
  }
  records.createTable(WORDS, "texts", [{ name: "text", type: "text" }]);
  const text = (n: number): string => Array.from({ length: 200 }, (_, i) => `word${n}x${i}`).join(" ");
  records.write(
    WORDS,
    "texts",
    Array.from({ length: ROWS }, (_, n) => ({ id: `t${n}`, text: text(n) })),
  );

  const open = async (maxIndexBytes?: number): Promise<void> => {
    store = await openSearchStore(records, { pollMs: 50, waitMs: LIMIT_MS, ...(maxIndexBytes === undefined ? {} : { maxIndexBytes }) });
    await expect.poll(() => store.status().ready, { timeout: LIMIT_MS }).toBe(true);
  };
  const near = async (ref: typeof WORDS) =>
    (await store.vectorSearch(ref, "items", { column: "v", queryVector: Array<number>(DIMENSION).fill(1), size: 1, consistency: "strong" }))
      .totalCount;
  const found = async (query: string) => {
    const context = {
      records: { getRecords: async () => [], branch: (ref: typeof WORDS) => records.branch(ref) },
      search: store,
      ref: WORDS,
    };
    return (await searchTable(context as never, "texts", { query, fuzziness: 0 })).totalCount;
  };

  await open();
  const held = store.status().memoryBytes;
  expect(await found("word7x7")).toBe(1);
  await store.close();

  await open(held + 2 ** 20);
  await expect(found("word7x7")).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: expect.stringMatching(/^The words of branch db:words cannot be searched: indexes may take \d+ MiB at most \(--max-memory\)/),
  });
  expect([await near(VECTORS), await near(WORDS)]).toEqual([ROWS, ROWS]);
  // Not tried again for each search.
  await expect(found("word7x7")).rejects.toMatchObject({ code: "UNAVAILABLE" });
  records.write(WORDS, "items", [{ id: "new", v: Array<number>(DIMENSION).fill(1) }]);
  expect([await near(VECTORS), await near(WORDS)]).toEqual([ROWS, ROWS + 1]);
  expect(store.status().memoryBytes).toBeLessThan(held + 2 ** 20);
});
