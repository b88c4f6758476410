/**
 * Converts sums to scores, and a score back to sums that provably cannot reach it.
 *
 *   COSINE  1 + clamp(Σxq / sqrt(Σq² · Σx²), −1, 1), and 1 when Σx² = 0
 *   L1      1 / (1 + Σ|x − q|)
 *   L2      1 / (1 + Σ(x − q)²)
 *   DOT     Σxq, which may be negative, but never −0: the sums begin with +0
 *
 * The sums are those of exact.ts. Every operation here is one correctly rounded float64 operation, in the
 * order written.
 */
export const COSINE: i32 = 0;
export const L1: i32 = 1;
export const L2: i32 = 2;
export const DOT: i32 = 3;

/** 8 units in the last place of 1. */
const SCORE_SLACK: f64 = 8 * 2.220446049250313e-16;

export function cosineScore(dot: f64, querySquares: f64, rowSquares: f64): f64 {
  if (rowSquares === 0) return 1;
  return 1 + Math.max(-1, Math.min(1, dot / Math.sqrt(querySquares * rowSquares)));
}

export function distanceScore(sum: f64): f64 {
  return 1 / (1 + sum);
}

/**
 * @returns c such that every row whose cosine, as computed, is below c scores below `score`.
 * Proof: 1 + cos is rounded by at most 2^-53 · 2 and the subtraction here by as much; SCORE_SLACK is 8 times
 * that sum.
 */
export function cosineFloor(score: f64): f64 {
  return score - 1 - SCORE_SLACK;
}

/**
 * @returns s such that every row whose sum, as computed, is above s scores below `score` (> 0).
 * Proof: the two roundings of 1 / (1 + sum) and the two here each move the value by a factor within 1 ±
 * 2^-53; 1 + s is taken larger than 1 / score by the factor 1 + 8 · 2^-52, and the last subtraction rounds by
 * at most 2^-53 of its result.
 */
export function distanceCeiling(score: f64): f64 {
  if (score <= 0) return Infinity;
  return (1 / score) * (1 + SCORE_SLACK) - 1;
}
