/**
 * The search in SQL compared with the search in memory, bit for bit, on data that float32 distances get
 * wrong.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SIMILARITIES } from "../../../src/core/similarity.ts";
import type { BranchRef } from "../../../src/records/schema.ts";
import { openSearchStore } from "../../../src/search/open-search-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { LIMIT_MS } from "../../support/patience.ts";
import { SEARCH_SERVERS, type SearchServer } from "../../support/pgvector.ts";
import { openSqlStore } from "../engines.ts";
import { type MemoryRecord, MemoryRecords } from "../memory-records.ts";

const REF: BranchRef = { database: "db", branch: "main" };

let seed = 20261122;
function random(): number {
  seed = (seed * 48271) % 2147483647;
  return seed / 2147483647;
}
const noise = (dimension: number, scale = 1): number[] => Array.from({ length: dimension }, () => f((random() * 2 - 1) * scale));
const f = Math.fround;

interface Data {
  readonly dimension: number;
  readonly vectors: readonly (number[] | null)[];
  readonly queries: readonly number[][];
}

/**
 * Vectors of one direction and length, up to what float32 sums lose: their order by distance is not that of
 * the scores.
 */
function hardlyDifferent(dimension: number, count: number): Data {
  const center = noise(dimension);
  const vectors = Array.from({ length: count }, () => center.map((x) => f(x * (1 + (random() - 0.5) * 2 ** -20))));
  return { dimension, vectors, queries: [center, noise(dimension)] };
}

const DATA: readonly (readonly [name: string, data: Data])[] = [
  ["hardly different rows", hardlyDifferent(64, 300)],
  ["hardly different rows of dimension 1,536", hardlyDifferent(1_536, 70)],
  [
    "rows far from the origin, near each other",
    {
      dimension: 16,
      vectors: Array.from({ length: 500 }, () => noise(16, 2 ** -9).map((x) => f(x + 1000))),
      queries: [new Array<number>(16).fill(1000), noise(16)],
    },
  ],
  [
    "few different vectors, many times each",
    {
      dimension: 3,
      vectors: Array.from({ length: 900 }, () => noise(3, 1.4).map(Math.round)),
      queries: [
        [1, 1, 0],
        [1, 2, 3],
      ],
    },
  ],
  [
    "zero, tiny, huge and missing vectors, infinities and NaN among others",
    {
      dimension: 5,
      vectors: Array.from({ length: 400 }, (_, i) => {
        const sizes = [0, 1e-25, 1e-30, 1e-40, 1e18, 1e20, 3e38, 1, 1, 1e-12];
        if (i % 23 === 0) return null;
        if (i % 29 === 0) return [1, Number.NaN, 0, 0, 0];
        if (i % 31 === 0) return [1, 0, Number.NEGATIVE_INFINITY, 0, 0];
        return noise(5, sizes[i % sizes.length]!);
      }),
      queries: [noise(5), noise(5, 1e-25), noise(5, 1e-40), noise(5, 1e20), noise(5, 3e38), [0, 0, 0, 0, 1e-44]],
    },
  ],
  [
    "rows of dimension 2,100, which a page has no room for",
    { dimension: 2_100, vectors: Array.from({ length: 60 }, () => noise(2_100)), queries: [noise(2_100)] },
  ],
];

describe.each(SEARCH_SERVERS)("A search over %s", (_, start) => {
  const records = new MemoryRecords();
  let server: SearchServer;
  let memory: SearchStore;
  let sql: SearchStore;

  beforeAll(async () => {
    server = await start();
    records.createBranch(REF);
    DATA.forEach(([, { dimension, vectors }], n) => {
      records.createTable(REF, `t${n}`, [
        { name: "v", type: "vector", vector: { dimension } },
        { name: "n", type: "int" },
      ]);
      // Ids are not in row order.
      const rows = vectors.map((v, i): MemoryRecord => ({ id: `r${(i * 7919) % 1009}`, v, n: BigInt(i) }));
      records.write(REF, `t${n}`, rows);
    });
    memory = await openSearchStore(records);
    sql = await openSqlStore(await server.emptyDatabase(), records, { waitMs: LIMIT_MS });
  });
  afterAll(async () => {
    await memory?.close();
    await sql?.close();
    await server?.stop();
  });

  const FILTERS = [undefined, { n: { $lt: 150 } }, { $exists: "v", n: { $ge: 100 } }];

  test.each(DATA.map(([name], n) => [name, n] as const))("equals the search in memory: %s", async (_, n) => {
    const { queries } = DATA[n]![1];
    let compared = 0;
    for (const similarityFunction of SIMILARITIES) {
      for (const filter of FILTERS) {
        for (const [size, offset] of [
          [1, 0],
          [10, 0],
          [20, 35],
          [1_000, 0],
        ] as const) {
          const request = { column: "v", queryVectors: queries, similarityFunction, filter, size, offset, consistency: "strong" as const };
          const expected = await memory.vectorSearchMany(REF, `t${n}`, request);
          expect(await sql.vectorSearchMany(REF, `t${n}`, request)).toEqual(expected);
          compared += expected.reduce((sum, { results }) => sum + results.length, 0);
        }
      }
    }
    expect(compared).toBeGreaterThan(400);
  });

  test("gives no place to records that fail the filter, and returns consecutive pages", async () => {
    const all = await sql.vectorSearch(REF, "t3", { column: "v", queryVector: [1, 1, 0], size: 1_000 });
    const pages = await Promise.all(
      [0, 300, 600].map((offset) => sql.vectorSearch(REF, "t3", { column: "v", queryVector: [1, 1, 0], size: 300, offset })),
    );
    expect(pages.flatMap(({ results }) => results)).toEqual(all.results);
    const none = await sql.vectorSearch(REF, "t3", { column: "v", queryVector: [1, 1, 0], filter: { n: -1 } });
    expect(none).toEqual({ totalCount: 0, results: [] });
  });
});
