/**
 * The bounds against float32 sums in any form that pgvector may use: in any order, in lanes, with and without
 * fused multiply-add.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scorer, squares } from "../../../src/core/exact.ts";
import { SIMILARITIES, type Similarity } from "../../../src/core/similarity.ts";
import { bestScoreBeyond, isOrdinaryQuery, normShare, rowKind } from "../../../src/search/sql/error-bounds.ts";
import { runs } from "../../support/random-runs.ts";

const f = Math.fround;

/**
 * Products of two float32 are exact in float64. So is a fused a·b + c, except for a rounding far below
 * float32's.
 */
type Add = (sum: number, a: number, b: number) => number;
const separately: Add = (sum, a, b) => f(sum + f(a * b));
const fused: Add = (sum, a, b) => f(sum + a * b);

interface Summing {
  readonly lanes: number;
  readonly add: Add;
  readonly backwards: boolean;
}

function sumProducts(terms: readonly (readonly [number, number])[], { lanes, add, backwards }: Summing): number {
  const ordered = backwards ? terms.toReversed() : terms;
  const sums = new Array<number>(lanes).fill(0);
  ordered.forEach(([a, b], i) => {
    sums[i % lanes] = add(sums[i % lanes]!, a, b);
  });
  return sums.reduce((sum, lane) => f(sum + lane), 0);
}

/** As in vector.c, and for dotProduct in the expression of distanceSql. */
function pgvectorDistance(similarity: Similarity, x: Float32Array, q: Float32Array, summing: Summing): number {
  const pairs = Array.from(x, (element, i) => [element, q[i]!] as const);
  const differences = pairs.map(([a, b]) => f(a - b));
  if (similarity === "l1")
    return sumProducts(
      differences.map((d) => [Math.abs(d), 1] as const),
      summing,
    );
  if (similarity === "l2")
    return Math.sqrt(
      sumProducts(
        differences.map((d) => [d, d] as const),
        summing,
      ),
    );
  if (similarity === "dotProduct") {
    return -sumProducts(pairs, summing) - Math.hypot(...x) * normShare(x.length, squares(q, 0, q.length));
  }
  const norms = [x, q].map((v) =>
    sumProducts(
      Array.from(v, (a) => [a, a] as const),
      summing,
    ),
  );
  return 1 - Math.max(-1, Math.min(1, sumProducts(pairs, summing) / Math.sqrt(norms[0]! * norms[1]!)));
}

const summing = fc.record({ lanes: fc.constantFrom(1, 4, 8, 16), add: fc.constantFrom(separately, fused), backwards: fc.boolean() });
/** Elements of one size, of many sizes, of few different values. */
const element = fc.oneof(
  fc.double({ min: -1, max: 1, noNaN: true }),
  fc.tuple(fc.double({ min: -1, max: 1, noNaN: true }), fc.integer({ min: -70, max: 40 })).map(([m, e]) => m * 2 ** e),
  fc.constantFrom(0, 1, -1, 1 / 3, 1e-20),
);
const pair = fc
  .integer({ min: 1, max: 120 })
  .chain((n) =>
    fc.tuple(fc.array(element, { minLength: n, maxLength: n }), fc.array(element, { minLength: n, maxLength: n }), fc.boolean()),
  )
  .map(([x, q, isNear]) => {
    const query = Float32Array.from(q);
    return [isNear ? query.map((e, i) => e + x[i]! * 2 ** -20 * e) : Float32Array.from(x), query] as const;
  });

describe("The best score beyond a distance", () => {
  test.each(SIMILARITIES)("is never below the score of a row at that distance: %s", (similarity) => {
    let tightest = Number.POSITIVE_INFINITY;
    fc.assert(
      fc.property(pair, summing, ([x, q], how) => {
        const kind = rowKind(squares(x, 0, x.length));
        fc.pre(kind === null && isOrdinaryQuery(similarity, squares(q, 0, q.length)));
        const distance = pgvectorDistance(similarity, x, q, how);
        expect(Number.isFinite(distance)).toBe(true);
        const score = scorer(similarity, q)(x, 0, squares(x, 0, x.length));
        const bound = bestScoreBeyond(similarity, x.length, distance);
        expect(bound).toBeGreaterThanOrEqual(score);
        tightest = Math.min(tightest, bound - score);
      }),
      { numRuns: runs(800) },
    );
    // The bound is useful: for some row it is nearly reached.
    expect(tightest).toBeLessThan(1e-4);
  });

  test.each(SIMILARITIES)("falls as the distance grows, and is no bound if the distance is not a number: %s", (similarity) => {
    const bounds = [0, 1e-6, 0.1, 0.5, 1, 1.9].map((distance) => bestScoreBeyond(similarity, 768, distance));
    expect(bounds).toEqual(bounds.toSorted((a, b) => b - a));
    expect(bounds[0]).toBeGreaterThanOrEqual({ cosineSimilarity: 2, l1: 1, l2: 1, dotProduct: 0 }[similarity]);
    expect(1 > bestScoreBeyond(similarity, 768, Number.NaN)).toBe(false);
  });

  test("distinguishes distances that float32 cannot hold", () => {
    expect([0, 1e-38, 1, 2 ** 99, 1e70].map(rowKind)).toEqual([0, 1, null, null, 2]);
    expect(isOrdinaryQuery("l2", 1e-38)).toBe(true);
    expect(isOrdinaryQuery("cosineSimilarity", 1e-38)).toBe(false);
    expect(isOrdinaryQuery("l1", 1e70)).toBe(false);
  });
});
