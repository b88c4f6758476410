/**
 * How rows are scored. The sums are float64 over the stored float32 values, in the one order that
 * assembly/exact/exact.ts defines:
 *
 *   cosineSimilarity  1 + cos(x, q), 0 to 2; a stored zero vector has cos 0 (score 1); zero query: rejected
 *   l1                1 / (1 + Σ|x − q|)
 *   l2                1 / (1 + Σ(x − q)²)
 *   dotProduct        Σ x·q, which may be negative; 0 with a zero vector
 *
 * Best first; equal scores: lower id first, by code points.
 */
export type Similarity = "cosineSimilarity" | "l1" | "l2" | "dotProduct";

/** The numbers of assembly/exact/similarity.ts. */
const SIMILARITY_CODES: Record<Similarity, number> = { cosineSimilarity: 0, l1: 1, l2: 2, dotProduct: 3 };

export const SIMILARITIES = Object.keys(SIMILARITY_CODES) as readonly Similarity[];

/** @throws {RangeError} for an unknown name. */
export function similarityCode(similarity: Similarity): number {
  if (!Object.hasOwn(SIMILARITY_CODES, similarity)) {
    throw new RangeError(`similarity is ${JSON.stringify(similarity)}; expected "cosineSimilarity", "l1", "l2" or "dotProduct".`);
  }
  return SIMILARITY_CODES[similarity];
}
