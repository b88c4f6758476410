import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Fusion, spreadOf } from "../../src/full-text/fusion.ts";
import { openRecordStore } from "../../src/records/open.ts";
import type { RecordStore } from "../../src/records/record-store.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { searchTable } from "../../src/search/text/text-answer.ts";
import type { TextSearchRequest } from "../../src/search/text/text-request.ts";
import { SIMILARITIES, type Similarity } from "../reference.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { runs } from "../support/random-runs.ts";
import { copyTemplate } from "../support/server-template.ts";
import { fusedScores } from "../support/text-oracle.ts";

const REF = { database: "library", branch: "main" };
const WORDS = ["garden", "gardens", "time", "labyrinth", "river", "stone", "bee", "wasp"];
const RECORDS = 1_500;

const random = (seed: number) => {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let x = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
  };
};

interface Explained {
  score: number;
  explain: {
    vector?: { contribution: number };
    text?: { contribution?: number; score: number; words: { score: number }[] };
    boost: number;
  };
}

describe("words and vectors in one search", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-hybrid-"));
  let records: RecordStore;
  let search: SearchStore;
  const find = (request: TextSearchRequest, ref = REF) => searchTable({ records, search, ref }, "items", request);
  const scored = async (request: TextSearchRequest) => {
    const answer = await find({ highlight: { enabled: false }, ...request });
    return { ...answer, records: answer.records.map(({ id, xata }) => [id as string, (xata as { score: number }).score] as const) };
  };

  beforeAll(async () => {
    copyTemplate(dataDir);
    records = await openRecordStore({ dataDir, statementTimeoutMs: LIMIT_MS });
    search = await openSearchStore(records, { pollMs: 50, waitMs: LIMIT_MS });
    await records.createBranch(REF);
    await records.createTable(REF, "items", [
      { name: "title", type: "string" },
      { name: "body", type: "text" },
      { name: "price", type: "float" },
      { name: "embedding", type: "vector", vector: { dimension: 4 } },
    ]);
    const next = random(1);
    const word = (): string => WORDS[Math.floor(next() ** 2 * WORDS.length)]!;
    const text = (length: number): string => Array.from({ length }, word).join(" ");
    const items = Array.from({ length: RECORDS }, (_, i) => ({
      id: `r${i}`,
      title: next() < 0.3 ? text(2) : null,
      body: next() < 0.6 ? text(1 + Math.floor(next() * 8)) : null,
      price: Math.floor(next() * 10),
      // Equal vectors, too, and records without one.
      embedding: next() < 0.1 ? null : Array.from({ length: 4 }, () => Math.round(next() * 6) - 3 + (next() < 0.5 ? 0.5 : 0)),
    }));
    for (let start = 0; start < RECORDS; start += 500) await records.insertRecords(REF, "items", items.slice(start, start + 500));
  });
  afterAll(async () => {
    await search.close();
    await records.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Every record with a vector or a match, scored by the definition from the answers of the two searches. */
  async function oracle(
    query: string,
    queryVector: number[],
    fusion: Fusion,
    similarityFunction: Similarity,
    filter: object | undefined,
    factor: number,
  ) {
    const filtered = filter === undefined ? {} : { filter: filter as never };
    const near = await search.vectorSearch(REF, "items", {
      column: "embedding",
      queryVector,
      similarityFunction,
      ...filtered,
      size: 1_000,
      consistency: "strong",
    });
    const rest = await search.vectorSearch(REF, "items", {
      column: "embedding",
      queryVector,
      similarityFunction,
      ...filtered,
      size: 1_000,
      offset: 1_000,
    });
    const vectors = new Map([...near.results, ...rest.results].map(({ id, score }) => [id, score]));
    const words = new Map((await scored({ query, ...filtered, page: { size: RECORDS } })).records);
    const all = await records.query(REF, "items", { ...filtered, page: { size: 1_000 }, columns: ["id", "price"] } as never);
    const second = await records.query(REF, "items", {
      ...filtered,
      page: { size: 1_000, offset: 1_000 },
      columns: ["id", "price"],
    } as never);
    const rows = [...all.records, ...second.records] as unknown as { id: string; price: number }[];
    const prices = new Map(rows.map(({ id, price }) => [id, price]));
    return fusedScores([...prices.keys()], words, vectors, fusion, (id) => factor * prices.get(id)!);
  }

  test("is what scoring every record gives, in every bit and on every page", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...WORDS, "nothing"), { maxLength: 3 }),
        fc
          .array(fc.integer({ min: -3, max: 3 }), { minLength: 4, maxLength: 4 })
          .map((vector) => [...vector.slice(0, 3), vector[3]! + 0.25]),
        fc.record({
          method: fc.constantFrom("standardized" as const, "rrf" as const, "linear" as const),
          vectorWeight: fc.constantFrom(0, 0.2, 0.5, 0.9, 1),
          k: fc.constantFrom(1, 60),
        }),
        fc.constantFrom(...SIMILARITIES),
        fc.constantFrom(undefined, { price: { $lt: 3 } }, { price: 99 }),
        fc.constantFrom(0, 0.05),
        fc.integer({ min: 1, max: 40 }),
        fc.constantFrom(0, 7, 160),
        async (words, queryVector, fusion, similarityFunction, filter, factor, size, offset) => {
          const query = words.join(" ");
          const expected = await oracle(query === "" ? "nothing" : query, queryVector, fusion, similarityFunction, filter, factor);
          const got = await scored({
            query,
            vector: { column: "embedding", queryVector, similarityFunction },
            fusion,
            ...(filter && { filter: filter as never }),
            ...(factor > 0 && { boosters: [{ numericBooster: { column: "price", factor } }] }),
            page: { size, offset },
          });
          expect(got.totalCount).toBe(expected.length);
          expect(got.records).toEqual(expected.slice(offset, offset + size));
        },
      ),
      { numRuns: runs(60) },
    );
  });

  test("explains each result by what each half, each word and the boost gave", async () => {
    const vector = { column: "embedding", queryVector: [1, 2, 3, 0.5] };
    const boosters = [{ numericBooster: { column: "price", factor: 0.05 } }];
    for (const method of ["standardized", "rrf", "linear"] as const) {
      for (const { xata } of (await find({ query: "garden bee", vector, fusion: { method }, boosters, explain: true })).records) {
        const { score, explain } = xata as unknown as Explained;
        expect((explain.vector?.contribution ?? 0) + (explain.text?.contribution ?? 0) + explain.boost).toBe(score);
        if (explain.text !== undefined) expect(explain.text.words.reduce((sum, part) => sum + part.score, 0)).toBe(explain.text.score);
      }
    }
  });

  test("says with a position whether two pages are of the same records", async () => {
    const vector = { column: "embedding", queryVector: [1, 2, 3, 0.5] };
    const [first, second] = [await find({ query: "bee", vector }), await find({ query: "bee", vector, page: { offset: 5 } })];
    expect(second.position).toBe(first.position);
    await records.updateRecord(REF, "items", "r1", { price: 5 });
    expect((await find({ query: "bee", vector })).position).not.toBe(first.position);
  });

  test("keeps required phrases, leaves out what is excluded, and results below a score", async () => {
    const vector = { column: "embedding", queryVector: [1, 2, 3, 0.5] };
    const all = await find({ query: '"garden time" -river', syntax: "websearch", vector, page: { size: RECORDS } });
    expect(all.totalCount).toBeGreaterThan(0);
    for (const { title, body } of all.records) {
      expect(`${title}\n${body}`).toMatch(/garden time/);
      expect(`${title}\n${body}`).not.toMatch(/\briver\b/);
    }
    const { records: best, totalCount } = await find({ query: "river", vector, minScore: 1.5, page: { size: RECORDS } });
    expect(best.length).toBeLessThan(totalCount);
    for (const { xata } of best) expect((xata as { score: number }).score).toBeGreaterThanOrEqual(1.5);
  });

  test("goes on while records change, each answer being of one state", async () => {
    const vector = { column: "embedding", queryVector: [3, 3, 3, 3] };
    let isDone = false;
    const writing = (async () => {
      for (let i = 0; i < 60; i++) {
        // Together: either both, or neither.
        await records.transaction(REF, [
          { insert: { table: "items", record: { id: "x1", body: "unicorn", embedding: [3, 3, 3, 3] } } },
          { insert: { table: "items", record: { id: "x2", body: "unicorn", embedding: [3, 3, 3, 3] } } },
        ]);
        await records.transaction(REF, [{ delete: { table: "items", id: "x1" } }, { delete: { table: "items", id: "x2" } }]);
      }
      isDone = true;
    })();
    const counts = new Set<number>();
    for (let i = 0; !isDone; i++) {
      const method = (["standardized", "rrf"] as const)[i % 2]!;
      const { totalCount } = await find({ query: "unicorn", vector, fusion: { method }, filter: { id: { $startsWith: "x" } } as never });
      counts.add(totalCount);
    }
    await writing;
    expect([...counts].filter((count) => count !== 0 && count !== 2)).toEqual([]);
  });

  test.each<[object, string]>([
    [{ column: "title", queryVector: [1] }, "vector.column: column"],
    [{ column: "embedding", queryVector: [1, 2] }, "vector.queryVector has 2 elements"],
    [{ column: "embedding", queryVector: [0, 0, 0, 0] }, "vector.queryVector: the zero vector"],
  ])("refuses %j", async (vector, message) => {
    await expect(find({ query: "bee", vector: vector as never })).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringContaining(message),
    });
  });

  test("spreads are means and deviations, whatever the order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constant(0), fc.double({ min: 1e-6, max: 1e3, noNaN: true })), { minLength: 1, maxLength: 50 }),
        fc.nat(20),
        fc.constantFrom(
          () => 1,
          () => -1,
          (i: number) => (i % 3) - 1,
        ),
        (magnitudes, zeros, signOf) => {
          // Those of dotProduct may be negative.
          const scores = magnitudes.map((magnitude, i) => signOf(i) * magnitude);
          const count = scores.length + zeros;
          const { mean, deviation } = spreadOf(Float64Array.from(scores), count, "standardized");
          const exact = scores.reduce((sum, score) => sum + score, 0) / count;
          const variance = (scores.reduce((sum, score) => sum + (score - exact) ** 2, 0) + zeros * exact ** 2) / count;
          const greatest = Math.max(...magnitudes);
          expect(Math.abs(mean - exact)).toBeLessThanOrEqual(1e-6 * greatest);
          expect(Math.abs(deviation ** 2 - variance)).toBeLessThanOrEqual(1e-6 * greatest ** 2);
          expect(spreadOf(Float64Array.from(scores.toReversed()), count, "standardized")).toEqual({ mean, deviation });
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
