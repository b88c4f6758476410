import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { type Build, type SearchResult, VectorIndex } from "../../src/index.ts";
import { referenceSearch, SIMILARITIES } from "../reference.ts";
import { sampleOf } from "../support/random-runs.ts";
import { describeBuilds } from "./builds.ts";
import { DATA_KINDS, source } from "./data-kinds.ts";
import { growingIndex } from "./growing-index.ts";

/**
 * Several segments each, the last one partly full; dimensions of one, two and many windows of the kernels,
 * with and without padding.
 */
const SHAPES: readonly [dimension: number, rows: number][] = [
  [65, 2200],
  [768, 1500],
  [10_000, 50],
];

const CASES = sampleOf(Object.keys(DATA_KINDS).flatMap((kind) => SHAPES.map((shape) => [kind, ...shape] as const)));

/** The oracle's answers, which all builds compare with. */
const oracle = new Map<string, ReturnType<typeof referenceSearch>[]>();

function expectedOf(name: string, compute: () => ReturnType<typeof referenceSearch>[]): ReturnType<typeof referenceSearch>[] {
  const known = oracle.get(name) ?? compute();
  oracle.set(name, known);
  return known;
}

/** The scalar build searches for one query after the other, and has no codes. */
const SEARCHES_MANY: Record<Build, boolean> = { relaxed: true, simd: true, scalar: false };

/** Much faster than `toEqual`, which tells what differs. */
function expectSame(answers: readonly SearchResult[], expected: readonly SearchResult[]): void {
  if (!isDeepStrictEqual(answers, expected)) expect(answers).toEqual(expected);
}

describeBuilds("searchMany gives for each query the exhaustive float64 answer, as search does", (build) => {
  it.each(CASES)("on %s, dimension %i, %i rows, while rows change and with filters", async (kind, dimension, count) => {
    const { index, model, data, put } = await growingIndex(kind, dimension, count, 3 * dimension + count);
    const random = seededRandom(dimension + count);
    const stored = [...model.values()];
    const near = stored[Math.floor(random() * count)]!;
    const rounds = [
      { queries: [data.next(), near, near.map((x) => -x), ...stored.slice(-4), data.next()], k: 10, filter: undefined },
      { queries: [near.map((x) => x * 0.7), ...stored.slice(0, 8)], k: 1, filter: (id: string) => id > "id3" },
    ];
    for (const [round, { queries, k, filter }] of rounds.entries()) {
      for (const similarity of SIMILARITIES) {
        const usable = queries.filter((query) => similarity !== "cosineSimilarity" || query.some((x) => x !== 0));
        const options = { k, similarity, ...(filter && { filter }) };
        const answers = index.searchMany(usable, options);
        const expected = expectedOf(`${kind} ${dimension} ${round} ${similarity}`, () =>
          usable.map((query) => referenceSearch(model, query, options)),
        );
        expect(answers, `${build} ${similarity}`).toEqual(expected);
        if (SEARCHES_MANY[build])
          expectSame(
            answers,
            usable.map((query) => index.search(query, options)),
          );
      }
      for (let i = 0; i < 40; i++) put(`id${Math.floor(random() * count)}`);
      for (let i = 0; i < 40; i++) {
        const id = `id${Math.floor(random() * count)}`;
        expect(index.delete(id)).toBe(model.delete(id));
      }
    }
    index.free();
  });

  it.each(SEARCHES_MANY[build] ? [1, 6, 7, 33, 100] : [1, 7])(
    "for %i queries, k from 1 to more than there are rows, filters that leave few rows",
    async (queryCount) => {
      const dimension = 200;
      const data = source("clusters", dimension, queryCount);
      const random = seededRandom(queryCount);
      const index = await VectorIndex.create({ dimension });
      for (let i = 0; i < 2500; i++) index.upsert(`id${i}`, data.next());
      const queries = Array.from({ length: queryCount }, () => data.next());
      const keep = [undefined, (id: string) => Number(id.slice(2)) % 97 === 0, (id: string) => Number(id.slice(2)) > 1250];
      for (const k of [1, 10, 300, 3000]) {
        const filter = keep[Math.floor(random() * 3)];
        for (const similarity of ["cosineSimilarity", "l2", "dotProduct"] as const) {
          const options = { k, similarity, filter };
          expectSame(
            index.searchMany(queries, options),
            queries.map((query) => index.search(query, options)),
          );
        }
      }
      index.free();
    },
  );

  it.each([
    [1, 1.1e-38, 1],
    [100, 1.06e-34, 3],
  ])("finds rows next to nothing beside a mean of %d: elements of %d, k %i", async (mean, tiny, k) => {
    const dimension = 64;
    const random = seededRandom(9);
    const model = new Map<string, Float32Array>();
    const index = await VectorIndex.create({ dimension });
    const halves = (first: number, second: number) => Float32Array.from({ length: dimension }, (_, j) => (j < 32 ? first : second));
    for (let i = 0; i < 2048; i++) {
      const vector = i % 500 === 9 ? halves(0, tiny) : halves(mean, 0).map((x) => x * (1 + 0.01 * random()));
      index.upsert(`id${i}`, vector);
      model.set(`id${i}`, vector);
    }
    const queries = [halves(0.5, 2), halves(-1, 1e-3), halves(-mean, 0), halves(1e-20, 1), halves(0, 1), halves(mean / 2, 2 * mean)];
    for (const similarity of SIMILARITIES) {
      const expected = queries.map((query) => referenceSearch(model, query, { k, similarity }));
      expect(index.searchMany(queries, { k, similarity }), similarity).toEqual(expected);
      expect(
        queries.map((query) => index.search(query, { k, similarity })),
        similarity,
      ).toEqual(expected);
    }
    index.free();
  });

  it("when the prefix of the dimensions is tried again on rows larger than those it was last tried on", async () => {
    const dimension = 768;
    const random = seededRandom(5);
    const vector = (scale: number) => Float32Array.from({ length: dimension }, () => (random() - 0.5) * scale);
    const queries = Array.from({ length: 6 }, () => vector(1));
    const best = queries[2]!;
    const index = await VectorIndex.create({ dimension });
    for (let i = 0; i < 3072; i++) {
      // Small rows first, a few of them not far from a query, which is itself among the large rows of two
      // later segments.
      const isNear = i < 512 && i % 40 === 7;
      const row = vector(i < 2048 ? 0.01 : 1).map((x, j) => (isNear ? x + 0.0075 * best[j]! : x));
      index.upsert(`id${i}`, i === 2100 || i === 2700 ? best : row);
    }
    const answers = index.searchMany(queries, { k: 10 });
    expect(answers).toEqual(queries.map((query) => index.search(query, { k: 10 })));
    expect(answers[2]!.results.slice(0, 2).map(({ id }) => id)).toEqual(["id2100", "id2700"]);
    index.free();
  });

  if (!SEARCHES_MANY[build]) return;
  it("when codes do not help, and the first of several segments that give the seeds shows it", async () => {
    const dimension = 48;
    const random = seededRandom(11);
    // One large element determines the step, so that the codes of the others say next to nothing.
    const vector = () => {
      const v = Float32Array.from({ length: dimension }, () => random() - 0.5);
      v[0] = random() < 0.5 ? 1e4 : -1e4;
      return v;
    };
    const rows = 34 * 2048;
    const vectors = new Float32Array(rows * dimension);
    for (let i = 0; i < rows; i++) vectors.set(vector(), i * dimension);
    // The best rows, which are seeds, are in the second segment. They are fewer than k.
    const queries = Array.from({ length: 6 }, () => vector().fill(0, 0, 1));
    queries.forEach((query, i) => {
      vectors.set(query, (2100 + i) * dimension);
    });
    const index = await VectorIndex.create({ dimension });
    index.upsertMany(
      Array.from({ length: rows }, (_, i) => `id${i}`),
      vectors,
    );
    const options = { k: 10, similarity: "l2" } as const;
    const answers = index.searchMany(queries, options);
    // Most rows were read as float32.
    expect(index.lastScan.bytes).toBeGreaterThan(queries.length * rows * dimension * 2);
    expect(answers).toEqual(queries.map((query) => index.search(query, { ...options, plan: "floats" })));
    index.free();
  });
});
