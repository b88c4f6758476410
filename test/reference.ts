/**
 * The oracle: obvious code that scores every vector in float64 and sorts them all. It knows the definitions
 * and nothing of how the core works. Its loops make no lists, because tests run them over billions of elements.
 */
import { joinLanes, LANES } from "./lanes.mjs";

export const SIMILARITIES = ["cosineSimilarity", "l1", "l2", "dotProduct"] as const;
export type Similarity = (typeof SIMILARITIES)[number];

const lanes = new Float64Array(LANES);

function sumOfDifferences(x: Float32Array, q: Float32Array): number {
  lanes.fill(0);
  for (let i = 0; i < x.length; i++) lanes[i % LANES]! += Math.abs(x[i]! - q[i]!);
  return joinLanes(lanes);
}

function sumOfSquaredDifferences(x: Float32Array, q: Float32Array): number {
  lanes.fill(0);
  for (let i = 0; i < x.length; i++) lanes[i % LANES]! += (x[i]! - q[i]!) * (x[i]! - q[i]!);
  return joinLanes(lanes);
}

function product(x: Float32Array, q: Float32Array): number {
  lanes.fill(0);
  for (let i = 0; i < x.length; i++) lanes[i % LANES]! += x[i]! * q[i]!;
  return joinLanes(lanes);
}

/** @param x  a stored vector. @param qq  Σ q². */
function referenceScore(similarity: Similarity, x: Float32Array, q: Float32Array, qq: number): number {
  if (similarity === "l1") return 1 / (1 + sumOfDifferences(x, q));
  if (similarity === "l2") return 1 / (1 + sumOfSquaredDifferences(x, q));
  if (similarity === "dotProduct") return product(x, q);
  const xx = product(x, x);
  const cos = xx === 0 ? 0 : product(x, q) / Math.sqrt(qq * xx);
  return 1 + Math.min(1, Math.max(-1, cos));
}

const float32 = (vector: ArrayLike<number>): Float32Array => (vector instanceof Float32Array ? vector : Float32Array.from(vector));

export function referenceSearch(
  vectors: Iterable<readonly [string, ArrayLike<number>]>,
  query: ArrayLike<number>,
  options: { k: number; similarity: Similarity; filter?: (id: string) => boolean },
): { totalCount: number; results: { id: string; score: number }[] } {
  const q = float32(query);
  const qq = product(q, q);
  const all = [...vectors]
    .filter(([id]) => options.filter?.(id) ?? true)
    .map(([id, x]) => ({ id, bytes: Buffer.from(id), score: referenceScore(options.similarity, float32(x), q, qq) }));
  all.sort((a, b) => b.score - a.score || Buffer.compare(a.bytes, b.bytes));
  return { totalCount: all.length, results: all.slice(0, options.k).map(({ id, score }) => ({ id, score })) };
}
