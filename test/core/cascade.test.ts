import { expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { VectorIndex } from "../../src/index.ts";
import { referenceSearch, SIMILARITIES } from "../reference.ts";
import { sampleOf } from "../support/random-runs.ts";
import { describeBuilds } from "./builds.ts";
import { DATA_KINDS, source } from "./data-kinds.ts";
import { growingIndex } from "./growing-index.ts";

/** Several segments, the last one partly full. */
const SHAPES: readonly [dimension: number, rows: number][] = [
  [65, 2100],
  [1500, 1100],
];

const CASES = sampleOf(Object.keys(DATA_KINDS).flatMap((kind) => SHAPES.map((shape) => [kind, ...shape] as const)));

/** The oracle's answers, which all builds compare with. */
const oracle = new Map<string, ReturnType<typeof referenceSearch>>();

function expectedOf(name: string, compute: () => ReturnType<typeof referenceSearch>): ReturnType<typeof referenceSearch> {
  const known = oracle.get(name) ?? compute();
  oracle.set(name, known);
  return known;
}

describeBuilds("the cascade is exact", (build) => {
  it.each(CASES)("on %s, dimension %i, %i rows, while rows change and with filters", async (kind, dimension, count) => {
    const { index, model, data, put } = await growingIndex(kind, dimension, count, dimension + count);
    const random = seededRandom(count);
    const stored = [...model.values()];
    for (let round = 0; round < 2; round++) {
      const near = stored[Math.floor(random() * stored.length)]!;
      const queries = round === 0 ? [data.next(), near] : [near.map((x) => -x / 3)];
      const keeps = [undefined, (id: string) => id > "id3"][round];
      for (const [q, query] of queries.entries()) {
        for (const similarity of SIMILARITIES) {
          if (similarity === "cosineSimilarity" && query.every((x) => x === 0)) continue;
          const options = { k: [10, 1][round]!, similarity, ...(keeps && { filter: keeps }) };
          const expected = expectedOf(`${kind} ${dimension} ${round} ${q} ${similarity}`, () => referenceSearch(model, query, options));
          expect(index.search(query, options), `${build} ${similarity} round ${round}`).toEqual(expected);
        }
      }
      for (let i = 0; i < 60; i++) put(`id${Math.floor(random() * count)}`);
      for (let i = 0; i < 60; i++) {
        const id = `id${Math.floor(random() * count)}`;
        expect(index.delete(id)).toBe(model.delete(id));
      }
    }
    index.free();
  });

  it("with sketches: learnt, while rows change, learnt again for other data, with filters and many results", async () => {
    const dimension = 160;
    const count = 2600;
    const index = await VectorIndex.create({ dimension });
    const model = new Map<string, Float32Array>();
    const random = seededRandom(5);
    const put = (id: string, vector: Float32Array) => {
      index.upsert(id, vector);
      model.set(id, vector);
    };
    const check = (query: Float32Array, k: number, what: string) => {
      for (const similarity of SIMILARITIES) {
        for (const filter of [undefined, (id: string) => id > "id3"]) {
          const options = { k, similarity, ...(filter && { filter }) };
          expect(index.search(query, options), `${build} ${similarity} ${what}`).toEqual(referenceSearch(model, query, options));
        }
      }
    };
    const bytesOf = (query: Float32Array) => {
      // With so few rows nothing is learnt until they have been searched for long.
      index.search(query, { k: 3, similarity: "l2", plan: "sketches" });
      return index.lastScan.bytes;
    };
    for (let times = 0; times < 2; times++) {
      const data = source("a steep spectrum, in directions of its own", dimension, 11 + times);
      for (let again = 0; again < (times === 0 ? 1 : 4); again++) for (let i = 0; i < count; i++) put(`id${i}`, data.next());
      const query = data.next();
      const bytes = bytesOf(query);
      // Reading the codes of all rows, or their heads, would take more than that.
      if (build !== "scalar") expect(bytes).toBeLessThan(count * 72);
      check(query, 10, "after learning");
      for (let i = 0; i < 100; i++) put(`id${Math.floor(random() * count)}`, data.next());
      for (let i = 0; i < 100; i++) {
        const id = `id${Math.floor(random() * count)}`;
        expect(index.delete(id)).toBe(model.delete(id));
      }
      check(data.next(), 10, "after changes");
      check(model.values().next().value!, 200, "many results");
      for (let i = 0; i < 2000; i++) put(`id${i}`, data.next());
      check(data.next(), 10, "after many changes");
      check(
        data.next().map((x) => -5 * x),
        10,
        "far away",
      );
    }
    index.free();
  });

  it("nothing is learnt before searches have read much more than learning costs; then sketches are used", async () => {
    const dimension = 96;
    const count = 4096;
    const index = await VectorIndex.create({ dimension });
    const data = source("a steep spectrum, in directions of its own", dimension, 3);
    const model = new Map<string, Float32Array>();
    for (let i = 0; i < count; i++) model.set(`id${i}`, data.next());
    for (const [id, vector] of model) index.upsert(id, vector);
    const query = data.next();
    const options = { k: 3, similarity: "l2" } as const;
    const expected = referenceSearch(model, query, options);
    const bytes: number[] = [];
    let memory = 0;
    for (let i = 0; i < 40; i++) {
      expect(index.search(query, options)).toEqual(expected);
      bytes.push(index.lastScan.bytes);
      // The first search makes room for queries.
      if (i === 0) memory = index.memoryBytes;
    }
    if (build === "scalar") return;
    // Codes, or heads, each time, and no memory for learning.
    expect(new Set(bytes).size).toBe(1);
    expect(index.memoryBytes).toBe(memory);
    let searches = 40;
    while (searches < 50_000 && index.lastScan.bytes > 0.8 * bytes[0]!) {
      index.search(query, options);
      searches++;
    }
    expect(index.lastScan.bytes).toBeLessThanOrEqual(0.8 * bytes[0]!);
    expect(index.search(query, options)).toEqual(expected);
    index.free();
  });

  it("when the mean of the rows moves: segments share a centre, leave it for another, and return to a shared one", async () => {
    const dimension = 65;
    const index = await VectorIndex.create({ dimension });
    const model = new Map<string, Float32Array>();
    const random = seededRandom(77);
    const near = (mean: number) => Float32Array.from({ length: dimension }, (_, j) => mean * ((j % 7) - 2) + random() - 0.5);
    // Segments have 2048 rows. Those changed by half or more are recoded when they are searched.
    const moves: readonly [from: number, to: number, mean: number][] = [
      [0, 6000, 3],
      [0, 2048, -5],
      [2048, 4096, -5],
      [4096, 6000, 2],
      [1000, 6000, 0],
      [0, 6000, 3],
    ];
    for (const [from, to, mean] of moves) {
      for (let i = from; i < to; i++) {
        const vector = near(mean);
        index.upsert(`id${i}`, vector);
        model.set(`id${i}`, vector);
      }
      for (const query of [near(mean), near(3), near(0)]) {
        for (const similarity of SIMILARITIES) {
          const options = { k: 10, similarity };
          expect(index.search(query, options), `${build} ${similarity}, rows ${from} to ${to} near ${mean}`).toEqual(
            referenceSearch(model, query, options),
          );
        }
      }
    }
    index.free();
  });

  it("when only the last dimensions of a row make it a result, among rows that their heads rule out", async () => {
    const dimension = 768;
    const random = seededRandom(11);
    const element = () => random() + random() + random() - 1.5;
    const query = Float32Array.from({ length: dimension }, element);
    const index = await VectorIndex.create({ dimension });
    const model = new Map<string, Float32Array>();
    // Segments have 1024 rows. The first one has fair results, which set the threshold; the heads of the
    // others do not help for one row in fifty.
    for (let i = 0; i < 3072; i++) {
      const isFirst = i < 1024;
      const isBest = !isFirst && i % 50 === 7;
      const vector = query.map((q, j) => {
        if (isFirst) return (i % 20 === 3 ? 0.8 * q : 0) + element();
        if (isBest) return j < 320 ? -0.05 * q : 1.7 * q + 0.2 * element();
        return j < 320 ? element() : 0.02 * element();
      });
      index.upsert(`id${i}`, vector);
      model.set(`id${i}`, vector);
    }
    for (const similarity of SIMILARITIES) {
      const options = { k: 10, similarity };
      const answer = index.search(query, options);
      expect(answer, `${build} ${similarity}`).toEqual(referenceSearch(model, query, options));
      expect(answer.results.every(({ id }) => Number(id.slice(2)) % 50 === 7)).toBe(true);
    }
    index.free();
  });

  it.each([256, 6000])("on signs, which have the largest possible products, dimension %i", async (dimension) => {
    // All elements of the query get the largest code. Rows equal to it, or opposite, have the largest sums,
    // which must fit in 16 and 32 bits. They come first, since later segments may be read in two parts with
    // smaller sums.
    const random = seededRandom(dimension);
    const sign = () => (random() < 0.5 ? -1 : 1);
    const query = Float32Array.from({ length: dimension }, sign);
    const index = await VectorIndex.create({ dimension });
    const model = new Map<string, Float32Array>();
    for (let i = 0; i < 300; i++) {
      const like = (i % 3 === 0 ? 1 : -1) * (1 - i / 300);
      const vector = query.map((q) => (random() < Math.abs(like) ? Math.sign(like) * q : sign()));
      index.upsert(`id${i}`, vector);
      model.set(`id${i}`, vector);
    }
    for (const similarity of SIMILARITIES) {
      const options = { k: 5, similarity };
      const expected = referenceSearch(model, query, options);
      expect(index.search(query, options), `${build} ${similarity}`).toEqual(expected);
      expect(index.searchMany(Array(7).fill(query), options)).toEqual(Array(7).fill(expected));
    }
    index.free();
  });

  it.each([64, 100])("on runs of adjacent rows that begin and end anywhere, dimension %i", async (dimension) => {
    const data = source("random directions", dimension, 3);
    const index = await VectorIndex.create({ dimension });
    const rows = Array.from({ length: 4_200 }, (_, row): [string, Float32Array] => [`id${row}`, data.next()]);
    const model = new Map(rows);
    for (const [id, vector] of rows) index.upsert(id, vector);
    // A segment has 2,048 rows: all of the first, and a range that begins in the second.
    for (const [start, end] of [
      [37, 176],
      [36, 176],
      [37, 175],
      [2047, 2049],
      [2047, 2048],
    ]) {
      const isKept = (row: number) => row < 2048 || (row >= 2048 + start! && row < 2048 + end!);
      const kept = new Set(rows.flatMap(([id], row) => (isKept(row) ? [id] : [])));
      // A row of the range is the best: whoever misses a row misses this one.
      for (const row of [2048 + start!, 2048 + end! - 1]) {
        const query = rows[row]![1];
        for (const similarity of SIMILARITIES) {
          const options = { k: 5, similarity, filter: (id: string) => kept.has(id) };
          expect(index.search(query, options), `${build} ${similarity} ${start}–${end}`).toEqual(referenceSearch(model, query, options));
        }
      }
    }
    index.free();
  });

  it("reads few rows where codes help, and gives up where they do not", async () => {
    const counts = async (kind: string) => {
      const data = source(kind, 256, 5);
      const index = await VectorIndex.create({ dimension: 256 });
      for (let i = 0; i < 8000; i++) index.upsert(`${i}`, data.next());
      expect(index.search(data.next(), { k: 5 }).totalCount).toBe(8000);
      return index.lastScan;
    };
    const nothing = { fullRows: 0, exactRows: 0, fetchedRows: 0, fetchedBytes: 0 };
    if (build === "scalar") return expect(await counts("clusters")).toEqual({ ...nothing, bytes: 8000 * (4 * 256 + 8) });
    const helpful = await counts("clusters");
    expect(helpful.exactRows).toBeLessThan(1000);
    expect(helpful.bytes).toBeGreaterThan(8000 * 128 + helpful.exactRows * 1024);
    expect(helpful.bytes).toBeLessThan(8000 * 276 + (helpful.exactRows + 1) * 1032);
    const hostile = await counts("one ulp apart");
    expect(hostile.fullRows).toBeLessThan(4000);
  });
});
