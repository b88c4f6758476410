/**
 * The coefficients that a query contributes to the bounds of dot products: for one query (bounds.ts), its sketch
 * (sketch/bounds.ts) and many queries (many-bounds.ts). The algebra is the same, so it is written once. In the terms of bounds.ts, an upper
 * bound of q·x or a lower one of Σ(x − q)² is the sum of
 *
 *   unit · Δ · Σ Q (c − 64)      the codes' own product
 *   loss factor · A              A = ‖y − ŷ‖ of the codes that were read
 *   norm factor · ‖y‖            the loss of the query's own codes, and the slack for roundings relative to
 *                                ‖p̂‖ ‖y‖, ‖centre‖ ‖y‖ and ‖q‖ ‖y‖
 *   rest factor · ‖y_t‖          where only the head was read; sketches: · ‖y − Bᵀs‖
 *   constant                     of the query alone
 *
 * Each is enlarged by a slack for the float32 roundings that follow; bounds.ts and many-bounds.ts count
 * theirs. Factors are float32, computed in float64 from upper bounds.
 */

import { CodedQuery } from "../exact/coded-query";
import { Query } from "../exact/query";
import { COSINE, L2 } from "../exact/similarity";
import { NORMS, RESIDUAL_NORMS, SHIFTS } from "../rows/rows";

/** Slack of bounds.ts and sketch/bounds.ts: 2^-19. */
export const SLACK_OF_ONE: f64 = 1.9073486328125e-6;
/** Slack of many-bounds.ts, whose sums have more roundings: 2^-18. */
export const SLACK_OF_MANY: f64 = 3.814697265625e-6;

/** A factor from a norm of the query's codes, or of a part of the query for which no code was read. */
export function enlarged(norm: f64, slack: f64): f32 {
  return <f32>(norm * (1 + slack));
}

/**
 * Sets the coefficients of a query's codes from its norms.
 *
 * @param query  the query that `coded` codes.
 * @param perStep  what a sum of products of codes is multiplied with, in unit · Δ.
 */
export function setCoefficients(coded: CodedQuery, query: Query, perStep: f64, slack: f64): void {
  coded.similarity = query.similarity;
  coded.productFactor = <f32>(coded.unit * perStep);
  coded.lossFactor = enlarged(coded.codedNorm, slack);
  coded.restFactor = enlarged(coded.restNorm, slack);
  // The float64 sums of a score and of q · centre are relative to ‖q‖ ‖x‖ ≤ ‖q‖ ‖y‖ + ‖q‖ ‖centre‖.
  const rounding = 1e-11 * Math.sqrt(query.squares);
  coded.normFactor = <f32>(coded.codeLoss * (1 + slack) + slack * (coded.codedNorm + coded.centreNorm) + rounding);
  // COSINE and DOT: q · centre, enlarged. L2: ‖p‖², reduced.
  coded.constant =
    query.similarity === L2
      ? <f32>(coded.norm * coded.norm * (1 - slack))
      : <f32>(coded.shift + slack * Math.abs(coded.shift) + rounding * coded.centreNorm);
}

/**
 * Bounds of the costs of a group's four rows, f32x4, for one query: from unit · Δ · Σ, and from the losses other
 * than the norm factor's. Groups of codes and of sketches begin with the same three norms.
 */
export function costsOfOne(coded: CodedQuery, group: usize, product: v128, lost: v128): v128 {
  return costsOf(coded.similarity, group, product, lost, f32x4.splat(coded.normFactor), f32x4.splat(coded.constant));
}

/**
 * The same, with what all groups share as arguments, so that a loop over groups keeps it in registers.
 *
 * @param normFactors  f32x4, the query's norm factor four times.
 * @param constants  f32x4, its constant four times.
 */
export function costsOf(similarity: i32, group: usize, product: v128, lost: v128, normFactors: v128, constants: v128): v128 {
  const norm = v128.load(group, RESIDUAL_NORMS);
  const upper = f32x4.add(f32x4.add(product, lost), f32x4.mul(norm, normFactors));
  if (similarity === L2) {
    const squares = f32x4.add(f32x4.mul(f32x4.mul(norm, norm), f32x4.splat(<f32>(1 - SLACK_OF_ONE))), constants);
    return f32x4.sub(squares, f32x4.add(upper, upper));
  }
  const cost = f32x4.neg(f32x4.add(f32x4.add(upper, v128.load(group, SHIFTS)), constants));
  return similarity === COSINE ? f32x4.div(cost, v128.load(group, NORMS)) : cost;
}
