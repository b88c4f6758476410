/**
 * Lower bounds of a row's cost for COSINE, DOT and L2, from the dot products of dot-of-four.ts. The cost is what a
 * search minimizes: −cos·‖q‖, −q·x, Σ(x−q)². costLimit (exact/cost-limit.ts) converts the k-th best score to a
 * limit. A row whose bound is above the limit provably scores below the k-th best and is skipped.
 *
 * In exact arithmetic: let x = centre + y, q = centre + p, p̂ and ŷ the values of the codes, r = ‖y − ŷ‖₂, ρ
 * = ‖p − p̂‖₂. Then
 *   p·y = p̂·ŷ + p̂·(y − ŷ) + (p − p̂)·y ≤ p̂·ŷ + ‖p̂‖ r + ρ ‖y‖                     (Cauchy–Schwarz)
 * For the head alone, with h for its dimensions and t for the tail's:
 *   p·y = p_h·y_h + p_t·y_t ≤ p̂_h·ŷ_h + ‖p̂_h‖ r + ρ ‖y‖ + ‖p_t‖ ‖y_t‖
 * because r and ρ are no smaller than their values over h alone.
 *   q·x = p·y + centre·y + q·centre
 *   cost = −q·x / ‖x‖            (0 for x = 0, where q·x = 0 ≤ any upper bound used), DOT: not divided
 *   Σ(x − q)² = ‖p − y‖² = ‖p‖² + ‖y‖² − 2 p·y
 * And p̂·ŷ = unit · Δ · Σ Q (c − 64). The sum is an exact integer, below 64 · 127 · codeDimension < 2^31.
 *
 * Float32 roundings, u = 2^-24. Every bound is a sum of at most eight terms, each the product of at most four
 * rounded factors. So the computed value is within 16 u = 2^-20 of the sum of the terms' magnitudes M. The
 * magnitudes: |p̂·ŷ| ≤ ‖p̂‖ (‖y‖ + r), |centre·y| ≤ ‖centre‖ ‖y‖; the rest are terms themselves. So the
 * coefficients of losses and ‖y‖ and the constants are enlarged by SLACK_OF_ONE = 2^-19 of those magnitudes,
 * twice what is needed. That also covers the stored ‖y‖ (2^-21), ‖x‖ (u), centre·y (3 u ‖centre‖ ‖y‖) and the
 * float64 sum that defines the score: 2^-39 of its terms; for COSINE relative to ‖q‖, which costLimit adds; for DOT to
 * ‖q‖ ‖x‖ ≤ ‖q‖ ‖y‖ + ‖q‖ ‖centre‖, of which the norm factor and the constant have 1e-11 > 5 · 2^-39.
 * Losses are stored rounded up. Magnitudes stay below 2^100 and, where they matter, above 2^-100, because
 * codes/codes.ts and query-codes.ts refuse others. A bound of −infinity or NaN skips nothing.
 */

import { Query } from "../exact/query";
import { loadHalves } from "../lanes";
import { GROUP_BYTES, groupPtr, LOSS_L2, STEPS, TAIL_NORM } from "../rows/rows";
import { costsOf, costsOfOne } from "./coefficients";

/** Bounds of the rows of a group, f32x4, from Σ Q (c − 64). `lost` bounds p·y − p̂·ŷ except for ρ ‖y‖. */
function dotBounds(query: Query, group: usize, sums: v128, lost: v128): v128 {
  const product = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sums), f32x4.splat(query.productFactor)), v128.load(group, STEPS));
  return costsOfOne(query, group, product, lost);
}

/**
 * Bounds of rows first..first+3 of a segment, f32x4, from the Σ Q (c − 64), i32x4, of their heads. The query has
 * codes for the segment (query-codes.ts).
 */
export function headDotBounds(query: Query, segment: usize, first: u32, headSums: v128): v128 {
  const group = groupPtr(segment, first);
  const lost = f32x4.mul(loadHalves(group + LOSS_L2), f32x4.splat(query.headLossFactor));
  const tails = f32x4.mul(loadHalves(group + TAIL_NORM), f32x4.splat(query.restFactor));
  return dotBounds(query, group, headSums, f32x4.add(lost, tails));
}

/** The same from their whole codes. */
export function codeDotBounds(query: Query, segment: usize, first: u32, sums: v128): v128 {
  const group = groupPtr(segment, first);
  return dotBounds(query, group, sums, f32x4.mul(loadHalves(group + LOSS_L2), f32x4.splat(query.lossFactor)));
}

/** Stores the codeDotBounds of rows first..first+31 at `to`, f32[32], from the sums at `sums`, i32[32]. */
export function codeDotBoundsOf32(query: Query, segment: usize, first: u32, sums: usize, to: usize): void {
  const similarity = query.similarity;
  const productFactors = f32x4.splat(query.productFactor);
  const lossFactors = f32x4.splat(query.lossFactor);
  const normFactors = f32x4.splat(query.normFactor);
  const constants = f32x4.splat(query.constant);
  let group = groupPtr(segment, first);
  for (const end = to + 128; to < end; to += 16, sums += 16, group += GROUP_BYTES) {
    const product = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(v128.load(sums)), productFactors), v128.load(group, STEPS));
    const lost = f32x4.mul(loadHalves(group + LOSS_L2), lossFactors);
    v128.store(to, costsOf(similarity, group, product, lost, normFactors, constants));
  }
}
