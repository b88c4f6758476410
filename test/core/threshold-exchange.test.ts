import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createShardOf } from "../../src/core/create-shard.ts";
import { createExchange, ThresholdExchange } from "../../src/core/threshold-exchange.ts";
import { coreModule } from "../../src/core/wasm-module.ts";
import { ParallelVectorIndex, VectorIndex } from "../../src/index.ts";
import { SIMILARITIES } from "../reference.ts";
import { sampleOf } from "../support/random-runs.ts";
import { describeBuilds } from "./builds.ts";
import { DATA_KINDS, source } from "./data-kinds.ts";

/** Rows and queries of one kind of data, f32[count × dimension]. */
function rowsOf(kind: string, dimension: number, count: number): Float32Array {
  const data = source(kind, dimension, 5);
  const matrix = new Float32Array(count * dimension);
  for (let i = 0; i < count; i++) matrix.set(data.next(), i * dimension);
  return matrix;
}

const NONE = Number.NEGATIVE_INFINITY;
const best = (scores: readonly number[], k: number): Float64Array => Float64Array.from(scores).sort().slice(-k);

describe("thresholds exchanged between shards", () => {
  it("give a floor that the k-th best of all rows reaches at any time, and that is close to it in the end", () => {
    const score = fc.oneof(
      fc.double({ min: -2, max: 2, noNaN: true }),
      fc.double({ min: -1e80, max: 1e80, noNaN: true }),
      fc.constantFrom(0, 1, 2, 5e-324, 1e-40, 1 + 2 ** -52).chain((magnitude) => fc.constantFrom(magnitude, -magnitude)),
    );
    const shards = fc.array(fc.array(score, { maxLength: 40 }), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(shards, fc.integer({ min: 1, max: 30 }), fc.nat({ max: 40 }), (scores, k, seen) => {
        const buffer = createExchange(scores.length, k)!;
        const sides = scores.map((_, shard) => new ThresholdExchange(buffer, shard, k));
        const all = scores.flat().sort((a, b) => b - a);
        const kth = all[k - 1] ?? NONE;
        expect(sides[0]!.floor).toBe(NONE);
        for (const part of [seen, 40]) {
          for (const [shard, side] of sides.entries()) {
            side.tell(best(scores[shard]!.slice(0, part), k));
            for (const { floor } of sides) expect(floor).toBeLessThanOrEqual(kth);
          }
        }
        const own = scores.map((list) => best(list, k));
        const ofOne = Math.max(...own.map((list) => (list.length === k ? list[0]! : NONE)));
        const ofEach = Math.min(...own.map((list) => list.at(-Math.ceil(k / scores.length)) ?? NONE));
        const floor = Math.max(ofOne, ofEach);
        if (floor === NONE) expect(sides[0]!.floor).toBe(NONE);
        // Rounded down to float32; what is below all of these counts as none.
        else if (floor >= -3.4e38)
          expect(sides[0]!.floor).toBeGreaterThanOrEqual(
            Math.min(floor, 3.4e38) - Math.min(Math.abs(floor), 3.4e38) * 2 ** -23 - 2 ** -149,
          );
      }),
    );
  });

  it("are left out for one shard and for very many results", () => {
    expect([createExchange(1, 10), createExchange(2, 1_001)]).toEqual([undefined, undefined]);
    expect(createExchange(2, 1_000)).toBeInstanceOf(SharedArrayBuffer);
  });
});

describeBuilds("shards that tell each other", (build) => {
  it("a shard that knows what another has found still returns every row of the answer, and scores fewer", async () => {
    const [d, count, k] = [64, 6000, 10];
    for (const kind of ["random directions", "clusters", "small whole numbers, many zeros and ties"]) {
      const data = rowsOf(kind, d, 2 * count + 5);
      const shards = [];
      for (const first of [0, count]) {
        const shard = await createShardOf(await coreModule(), { dimension: d, isIdBefore: (a, b) => a < b });
        for (let row = 0; row < count; row++) shard.set(row, data.subarray((first + row) * d, (first + row + 1) * d));
        shards.push(shard);
      }
      let [alone, told] = [0, 0];
      for (const similarity of SIMILARITIES) {
        for (let i = 2 * count; i < 2 * count + 5; i++) {
          const query = data.slice(i * d, (i + 1) * d);
          const expected = shards.map((shard) => shard.search(query, { k, similarity })[0]!);
          alone += shards[1]!.lastScan.exactRows;
          const kth = best(
            expected.flatMap(({ scores }) => [...scores]),
            k,
          )[0]!;
          const buffer = createExchange(2, k)!;
          const found = shards.map((shard, s) => shard.search(query, { k, similarity, exchange: new ThresholdExchange(buffer, s, k) })[0]!);
          told += shards[1]!.lastScan.exactRows;
          for (const [s, { rows, scores, totalCount }] of found.entries()) {
            const wanted = expected[s]!.scores.filter((score) => score >= kth).length;
            expect(totalCount).toBe(count);
            expect(rows.subarray(0, wanted)).toEqual(expected[s]!.rows.subarray(0, wanted));
            expect(scores.subarray(0, wanted)).toEqual(expected[s]!.scores.subarray(0, wanted));
          }
        }
      }
      if (build === "scalar") expect(told).toBe(alone);
      else expect(told).toBeLessThan(alone);
    }
  });

  it.each(sampleOf(Object.keys(DATA_KINDS)))("the answers are those of one index: %s", async (kind) => {
    const [d, count] = [24, 5000];
    const data = rowsOf(kind, d, count + 6);
    const ids = Array.from({ length: count }, (_, i) => `id${(i * 7919) % count}`);
    const one = await VectorIndex.create({ dimension: d });
    const many = await ParallelVectorIndex.create({ dimension: d, shards: 3 });
    one.upsertMany(ids, data.subarray(0, count * d));
    await many.upsertMany(ids, data.subarray(0, count * d));
    for (const similarity of SIMILARITIES) {
      for (let i = count - 3; i < count + 6; i++) {
        const query = data.subarray(i * d, (i + 1) * d);
        if (similarity === "cosineSimilarity" && query.every((x) => x === 0)) continue;
        for (const k of [1, 10, 100]) expect(await many.search(query, { similarity, k })).toEqual(one.search(query, { similarity, k }));
      }
    }
    await many.free();
  });
});
