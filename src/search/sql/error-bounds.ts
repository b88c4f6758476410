/**
 * What pgvector's distance of a row proves about its exact score, so that rows can be ruled out by it.
 *
 * pgvector sums in float32, in the order that its compiler chose, with or without fused multiply-add, and
 * ends in float64 (vector.c of pgvector: `VectorL2SquaredDistance`, `VectorL1Distance`,
 * `VectorCosineSimilarity`, `VectorInnerProduct`).
 *
 * Notation: n is the dimension, u = 2^-24, γ(m) = m·u / (1 − m·u); d̂ is pgvector's answer; η = 2^-126 is
 * what one operation may lose by underflow.
 *
 * The standard result (Higham, Accuracy and Stability of Numerical Algorithms, 3.1 and 4.2): a float32 sum of
 * m products, whose factors were rounded j times, differs from the real sum by at most γ(m + j)·Σ|terms| +
 * m·η. The order of the additions does not matter; a fused operation only has fewer roundings.
 *
 * This holds only if nothing overflows and no norm is lost to underflow. Hence ORDINARY rows and queries:
 * with Σx² and Σq² at most 2^100, no square, product or sum of 16,000 of them (pgvector's largest dimension;
 * ours is 10,000) reaches float32's 2^128. For the cosine they are also at least 2^-60, so n·η is below
 * 2^-112, which is 2^-52 of the product of the norms.
 *
 * Where a row is not ordinary, pgvector's distance may be NaN, infinite or wrong. Such rows are never ruled
 * out: they are fetched and scored exactly each time (exact-search.ts). A stored zero vector, whose cosine
 * distance is NaN, has score 1 by definition.
 *
 * l1, D = Σ|x − q|: each term is rounded once, so |D̂ − D| ≤ γ(n)·D + nη: the terms are not negative, and the
 * bound is relative. d̂ = D̂. Hence
 *   D ≥ (d̂ − nη) / (1 + γ(n + 2)).
 * l2, D = Σ(x − q)²: a difference is rounded once and enters twice, so |D̂ − D| ≤ γ(n + 2)·D + nη. d̂ = √D̂,
 * rounded in float64, so D̂ ≥ d̂²·(1 − 2^-51). Hence
 *   D ≥ (d̂²·(1 − 2^-51) − nη) / (1 + γ(n + 2)).
 * In both, the core's score is 1 / (1 + D) with D summed in float64: at most (1 + 2^-50) / (1 + D·(1 − (n +
 * 4)·2^-52)), and falling in D.
 *
 * Cosine, c = x·q / (‖x‖‖q‖): by Cauchy and Schwarz |fl(x·q) − x·q| ≤ γ(n)·Σ|xᵢqᵢ| + nη ≤ ε·‖x‖‖q‖ with ε =
 * γ(n) + 2^-52. Also fl(Σx²) = ‖x‖²(1 + θ) with |θ| ≤ ε, and likewise fl(Σq²). So pgvector's ĉ = fl(x·q) /
 * √(fl(Σx²)·fl(Σq²)) satisfies |ĉ·(1 + ϑ) − c| ≤ ε with |ϑ| ≤ ε + 2^-50 (the root of a product of two factors
 * within 1 ± ε is within 1 ± ε; the rest is float64). It is then clamped to [−1, 1], where c is, which can
 * only bring it nearer; |ĉ| ≤ 1. Hence
 *   c ≤ ĉ + 2ε + 2^-50 and d̂ = fl(1 − ĉ) gives c ≤ 1 − d̂ + 2ε + 2^-49.
 * The core's score is 1 + c, computed in float64 with an error of at most (n + 8)·2^-51.
 *
 * This is the γₙ‖a‖‖b‖ of the sum of products where the norms are divided out, and better than it where all
 * terms have one sign.
 *
 * Dot product, s = x·q: |fl(x·q) − s| ≤ γ(n)·‖x‖‖q‖ + nη, so the error depends on the row. Hence rows are ordered by d̂ =
 * −fl(x·q) − γ(n + 2)·‖q‖·N, where N is pgvector's `vector_norm`, ‖x‖ from a float64 sum of squares; the two
 * roundings more cover those of N, of the products and of the core's score, which are float64: in all at most
 * (n + 8)·2^-51·‖x‖‖q‖ ≤ 2^-37·‖x‖‖q‖, and 2u is 2^-23. Of the subtraction 2^-53 of |d̂| is left, where |d̂| ≤ 2·‖x‖‖q‖, which
 * they cover, too. So the core's score is at most −d̂ + nη, or 2nη with the rounding of that sum where |d̂| is small.
 */
import type { Similarity } from "../../core/similarity.ts";

const MAX_ORDINARY_SQUARES = 2 ** 100;
const MIN_ORDINARY_SQUARES = 2 ** -60;
const UNDERFLOW = 2 ** -126;

const DISTANCES = { cosineSimilarity: "cosine_distance", l1: "l1_distance", l2: "l2_distance" } as const;

const gamma = (terms: number): number => (terms * 2 ** -24) / (1 - terms * 2 ** -24);

/** The kinds of rows, determined when they are written. In the database, null means an ordinary row. */
export const ROW_KIND = { zero: 0, tiny: 1, huge: 2 } as const;
export type RowKind = (typeof ROW_KIND)[keyof typeof ROW_KIND] | null;

/** @param squares  Σx² of a finite vector, in float64. */
export function rowKind(squares: number): RowKind {
  if (squares === 0) return ROW_KIND.zero;
  if (squares < MIN_ORDINARY_SQUARES) return ROW_KIND.tiny;
  return squares > MAX_ORDINARY_SQUARES ? ROW_KIND.huge : null;
}

/**
 * The kinds of rows that no distance can rule out. Zero vectors are not among them in a cosine search,
 * because their score is known.
 */
export function alwaysFetched(similarity: Similarity): readonly number[] {
  return similarity === "cosineSimilarity" ? [ROW_KIND.tiny, ROW_KIND.huge] : [ROW_KIND.huge];
}

/** What the distance by dotProduct takes off for each unit of ‖x‖: γ(n + 2)·‖q‖. */
export const normShare = (dimension: number, squares: number): number => gamma(dimension + 2) * Math.sqrt(squares);

/**
 * What the distance of a row is: an expression of SQL.
 *
 * @param row  the row's vector, and `query`, a vector: expressions.
 * @param schema  of pgvector, quoted.
 * @param squares  Σq², in float64.
 */
export function distanceSql(
  similarity: Similarity,
  schema: string,
  row: string,
  query: string,
  dimension: number,
  squares: number,
): string {
  if (similarity !== "dotProduct") return `${schema}.${DISTANCES[similarity]}(${row}, ${query})`;
  return `(${schema}.vector_negative_inner_product(${row}, ${query}) - ${schema}.vector_norm(${row}) * ${normShare(dimension, squares)}::float8)`;
}

/** Whether distances from this query can rule rows out at all. */
export function isOrdinaryQuery(similarity: Similarity, squares: number): boolean {
  const kind = rowKind(squares);
  return kind === null || (similarity !== "cosineSimilarity" && kind !== ROW_KIND.huge);
}

/**
 * The largest score that the core can give to a row whose pgvector distance is at least `distance`. Valid for
 * the kinds of rows that `alwaysFetched` does not name, and for queries that `isOrdinaryQuery` accepts.
 */
export function bestScoreBeyond(similarity: Similarity, dimension: number, distance: number): number {
  const n = dimension;
  if (similarity === "dotProduct") return 2 * n * UNDERFLOW - distance;
  if (similarity === "cosineSimilarity") {
    const epsilon = gamma(n) + 2 ** -52;
    return Math.min(2, 2 - distance + 2 * epsilon + 2 ** -49 + (n + 8) * 2 ** -51);
  }
  const sum = similarity === "l1" ? distance : distance * distance * (1 - 2 ** -51);
  // The last factor covers the roundings of this line and the next.
  const least = (Math.max(0, sum - n * UNDERFLOW) / (1 + gamma(n + 2))) * (1 - (n + 4) * 2 ** -52) * (1 - 2 ** -50);
  return (1 + 2 ** -50) / (1 + least);
}
