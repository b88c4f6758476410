/**
 * The oracle: obvious code that scores every vector in float64 and sorts them all. It knows the definitions
 * and nothing of how the core works.
 */
import { joinLanes, LANES } from "./lanes.mjs";

export type Similarity = "cosineSimilarity" | "l1" | "l2";

function sum(terms: number[]): number {
  const lanes = new Array<number>(LANES).fill(0);
  terms.forEach((term, i) => {
    lanes[i % LANES]! += term;
  });
  return joinLanes(lanes);
}

/**
 * @param x  a stored vector, as float32.
 * @param q  the query, as float32.
 */
function referenceScore(similarity: Similarity, x: ArrayLike<number>, q: ArrayLike<number>): number {
  const xs = Array.from(x);
  const qs = Array.from(q);
  if (similarity === "l1") return 1 / (1 + sum(xs.map((a, i) => Math.abs(a - qs[i]!))));
  if (similarity === "l2") return 1 / (1 + sum(xs.map((a, i) => (a - qs[i]!) * (a - qs[i]!))));
  const xx = sum(xs.map((a) => a * a));
  const qq = sum(qs.map((a) => a * a));
  const cos = xx === 0 ? 0 : sum(xs.map((a, i) => a * qs[i]!)) / Math.sqrt(qq * xx);
  return 1 + Math.min(1, Math.max(-1, cos));
}

export function referenceSearch(
  vectors: Iterable<readonly [string, ArrayLike<number>]>,
  query: ArrayLike<number>,
  options: { k: number; similarity: Similarity; filter?: (id: string) => boolean },
): { totalCount: number; results: { id: string; score: number }[] } {
  const q = Float32Array.from(query);
  const all = [...vectors]
    .filter(([id]) => options.filter?.(id) ?? true)
    .map(([id, x]) => ({ id, score: referenceScore(options.similarity, Float32Array.from(x), q) }));
  all.sort((a, b) => b.score - a.score || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
  return { totalCount: all.length, results: all.slice(0, options.k) };
}
