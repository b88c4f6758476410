/**
 * The coefficients that a query contributes to the bounds of dot products, for one query (bounds.ts) and for
 * many (many-bounds.ts). The algebra is the same, so it is written once. In the terms of bounds.ts, an upper
 * bound of q·x or a lower one of Σ(x − q)² is the sum of
 *
 *   unit · Δ · Σ Q (c − 64)      the codes' own product
 *   loss factor · A              A = ‖y − ŷ‖ of the codes that were read
 *   norm factor · ‖y‖            the loss of the query's own codes, and the slack for roundings relative to
 *                                ‖p̂‖ ‖y‖ and ‖centre‖ ‖y‖
 *   tail factor · ‖y_t‖          where only the head was read
 *   constant                     of the query alone
 *
 * Each is enlarged by a slack for the float32 roundings that follow; bounds.ts and many-bounds.ts count
 * theirs. Factors are float32, computed in float64 from upper bounds.
 */

/** Slack of bounds.ts: 2^-19. */
export const SLACK_OF_ONE: f64 = 1.9073486328125e-6;
/** Slack of many-bounds.ts, whose sums have more roundings: 2^-18. */
export const SLACK_OF_MANY: f64 = 3.814697265625e-6;

/**
 * The loss and tail factors: from a norm of the query's codes, or of the part of the query for which no code
 * was read.
 */
export function enlarged(norm: f64, slack: f64): f32 {
  return <f32>(norm * (1 + slack));
}

/** @param codeLoss  ρ. */
export function normFactorOf(codeLoss: f64, codedNorm: f64, centreNorm: f64, slack: f64): f32 {
  return <f32>(codeLoss * (1 + slack) + slack * (codedNorm + centreNorm));
}

/** COSINE: q · centre, enlarged. @param queryNorm  ‖q‖: the score's own float64 sum is relative to it. */
export function cosineConstant(shift: f64, queryNorm: f64, centreNorm: f64, slack: f64): f32 {
  return <f32>(shift + slack * Math.abs(shift) + 1e-11 * queryNorm * centreNorm);
}

/** L2: ‖p‖², reduced. */
export function squaredConstant(norm: f64, slack: f64): f32 {
  return <f32>(norm * norm * (1 - slack));
}
