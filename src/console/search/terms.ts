/** The parts of a score: the terms of its sum, dimension by dimension. */
import type { Similarity } from "lodestone";

export const SIMILARITY_NAMES: readonly (readonly [Similarity, string])[] = [
  ["cosineSimilarity", "Cosine"],
  ["l2", "L2 · Euclid"],
  ["l1", "L1 · city block"],
  ["dotProduct", "Dot product"],
];

export interface Terms {
  /** One for each dimension. */
  readonly terms: Float64Array;
  readonly sum: number;
  readonly score: number;
  /** What is summed, and how the score follows from it. */
  readonly formula: string;
}

/**
 * In float64, like the search. For display: the last bit may differ, because the search adds in another
 * order.
 */
export function termsOf(query: ArrayLike<number>, vector: ArrayLike<number>, similarity: Similarity): Terms {
  const terms = new Float64Array(query.length);
  const isCosine = similarity === "cosineSimilarity";
  const isProduct = isCosine || similarity === "dotProduct";
  const scale = isCosine ? normOf(query) * normOf(vector) || 1 : 1;
  let sum = 0;
  for (let j = 0; j < terms.length; j++) {
    const [x, y] = [query[j]!, vector[j]!];
    terms[j] = isProduct ? (x * y) / scale : similarity === "l1" ? Math.abs(x - y) : (x - y) ** 2;
    sum += terms[j]!;
  }
  if (isCosine) return { terms, sum, score: Math.max(0, 1 + sum), formula: "1 + Σ xᵢyᵢ / (‖x‖‖y‖)" };
  if (isProduct) return { terms, sum, score: sum, formula: "Σ xᵢyᵢ" };
  return { terms, sum, score: 1 / (1 + sum), formula: similarity === "l1" ? "1 / (1 + Σ |xᵢ − yᵢ|)" : "1 / (1 + Σ (xᵢ − yᵢ)²)" };
}

export function normOf(vector: ArrayLike<number>): number {
  let sum = 0;
  for (let j = 0; j < vector.length; j++) sum += vector[j]! ** 2;
  return Math.sqrt(sum);
}

/** If there are more dimensions than bars, neighbouring terms are summed into groups. */
export function grouped(terms: Float64Array, bars: number): readonly { from: number; to: number; value: number }[] {
  const count = Math.min(bars, terms.length);
  return Array.from({ length: count }, (_, i) => {
    const from = Math.floor((i * terms.length) / count);
    const to = Math.floor(((i + 1) * terms.length) / count);
    return { from, to, value: terms.subarray(from, to).reduce((sum, term) => sum + term, 0) };
  });
}
