import fc from "fast-check";
import { expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { VectorIndex } from "../../src/index.ts";
import { referenceSearch, SIMILARITIES, type Similarity } from "../reference.ts";
import { runs } from "../support/random-runs.ts";
import { describeBuilds } from "./builds.ts";
import { vectorOf } from "./vectors.ts";

function compareAll(
  index: VectorIndex,
  model: Map<string, Float32Array>,
  query: Float32Array,
  k: number,
  filter?: (id: string) => boolean,
): void {
  for (const similarity of SIMILARITIES) {
    if (similarity === "cosineSimilarity" && query.every((x) => x === 0)) continue;
    const options = { k, similarity, ...(filter && { filter }) };
    expect(index.search(query, options), similarity).toEqual(referenceSearch(model, query, options));
  }
}

describeBuilds("exactness", () => {
  it.each([1, 2, 3, 4, 15, 16, 17, 33, 100])(
    "every answer at dimension %i is the exhaustive float64 answer, through inserts, updates and deletes",
    async (dimension) => {
      const vector = vectorOf(dimension);
      const step = fc.record({
        id: fc.integer({ min: 0, max: 40 }),
        vector,
        isDelete: fc.boolean(),
        query: vector,
        k: fc.integer({ min: 1, max: 12 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 50 }), async (steps) => {
          const index = await VectorIndex.create({ dimension });
          const model = new Map<string, Float32Array>();
          for (const { id: n, vector, isDelete, query, k } of steps) {
            const id = `row ${n}`;
            if (isDelete && n % 3 === 0) expect(index.delete(id)).toBe(model.delete(id));
            else {
              index.upsert(id, vector);
              model.set(id, vector);
            }
            compareAll(index, model, query, k);
            compareAll(index, model, vector, k, (id) => id.length % 2 === 0);
          }
          expect(index.size).toBe(model.size);
          index.free();
        }),
        { numRuns: runs(12) },
      );
    },
  );

  it.each([
    [768, 257],
    [1536, 70],
    [10_000, 40],
  ])("dimension %i with %i rows, near-duplicates one ulp apart included", async (dimension, rows) => {
    const random = seededRandom(dimension);
    const model = new Map<string, Float32Array>();
    const index = await VectorIndex.create({ dimension });
    const base = Float32Array.from({ length: dimension }, () => random() - 0.5);
    for (let i = 0; i < rows; i++) {
      const x = i % 2 ? Float32Array.from(base) : Float32Array.from({ length: dimension }, () => random() - 0.5);
      if (i % 2) {
        const at = Math.floor(random() * dimension);
        x[at] = x[at]! * (1 + 2 ** -23);
      }
      model.set(`r${i}`, x);
      index.upsert(`r${i}`, x);
    }
    compareAll(index, model, base, 20);
    compareAll(index, model, model.get("r0")!, rows + 1);
    compareAll(index, model, model.get("r1")!, 5, (id) => id.endsWith("1"));
    index.free();
  });

  it("scores follow the published formulas", async () => {
    const index = await VectorIndex.create({ dimension: 4 });
    const rows = { a: [0.1, 0.2, 0.3, 0.5], b: [4, 3, 2, 1], c: [0.5, 0.2, 0.3, 0.1], d: [1, 2, 3, 4] };
    for (const [id, vector] of Object.entries(rows)) index.upsert(id, vector);
    const answer = (similarity: Similarity) =>
      index.search([1, 2, 3, 4], { similarity }).results.map(({ id, score }) => [id, Number(score.toFixed(6))]);
    expect(answer("cosineSimilarity")).toEqual([
      ["d", 2],
      ["a", 1.993999],
      ["b", 1.666667],
      ["c", 1.643176],
    ]);
    expect(answer("l1")).toEqual([
      ["d", 1],
      ["b", 0.111111],
      ["a", 0.10101],
      ["c", 0.10101],
    ]);
    expect(answer("l2")).toEqual([
      ["d", 1],
      ["b", 0.047619],
      ["a", 0.040667],
      ["c", 0.037051],
    ]);
    expect(answer("dotProduct")).toEqual([
      ["d", 30],
      ["b", 20],
      ["a", 3.4],
      ["c", 2.2],
    ]);
  });

  it("equal scores are ordered by the code points of the ids, not by UTF-16 or insertion", async () => {
    const index = await VectorIndex.create({ dimension: 2 });
    const ids = ["z", "\u{1F600}", "\uFF5E", "a", "aa", "", "\uD7FF", "é"];
    for (const id of ids) index.upsert(id, [1, 1]);
    const expected = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    for (const k of [1, 3, 8]) expect(index.search([2, 2], { k }).results.map((r) => r.id)).toEqual(expected.slice(0, k));
  });

  it("a stored zero vector has cosine 0, so it scores 1, between the acute and the obtuse", async () => {
    const index = await VectorIndex.create({ dimension: 2 });
    index.upsert("opposite", [-1, -1]);
    index.upsert("zero", [0, -0]);
    index.upsert("near", [1, 2]);
    expect(index.search([1, 1]).results.map((r) => r.id)).toEqual(["near", "zero", "opposite"]);
    expect(index.search([1, 1]).results[1]!.score).toBe(1);
  });

  it("dot products may be negative; with a zero vector, as a row or as the query, they are 0", async () => {
    const index = await VectorIndex.create({ dimension: 2 });
    const rows = { b: [-1, -1], zero: [0, -0], a: [3e38, 3e38], near: [1, 2] };
    for (const [id, vector] of Object.entries(rows)) index.upsert(id, vector);
    const found = (query: number[]) => index.search(query, { similarity: "dotProduct" }).results.map(({ id, score }) => [id, score]);
    expect(found([1, 1])).toEqual([
      ["a", 2 * Math.fround(3e38)],
      ["near", 3],
      ["zero", 0],
      ["b", -2],
    ]);
    expect(found([-1, 0]).at(-1)).toEqual(["a", -Math.fround(3e38)]);
    // 0, and not −0.
    for (const query of [
      [0, 0],
      [-0, -0],
    ])
      expect(found(query)).toEqual(["a", "b", "near", "zero"].map((id) => [id, 0]));
    const { results } = index.search([1, 1], { similarity: "dotProduct", scoreThreshold: -1 });
    expect(results.map(({ id }) => id)).toEqual(["a", "near", "zero"]);
    index.free();
  });

  it("among thousands of equal rows the first ids win", async () => {
    const index = await VectorIndex.create({ dimension: 8 });
    const ids = Array.from({ length: 5000 }, (_, i) => `n${(i * 7919) % 5000}`);
    index.upsertMany(ids, new Float32Array(5000 * 8).fill(0.3));
    const expected = [...ids].sort().slice(0, 25);
    for (const similarity of SIMILARITIES)
      expect(index.search(new Array(8).fill(0.1), { k: 25, similarity }).results.map((r) => r.id)).toEqual(expected);
  });
});
