/**
 * A query as integers Q relative to a centre: p = q − centre ≈ p̂ = unit · Q. A single query (query.ts), one of
 * many (dot/many-query-codes.ts) and a query's sketch (sketch/query-sketch.ts) all have this form, so their
 * bounds have the same coefficients (dot/coefficients.ts). All norms are upper bounds.
 */
@unmanaged
export class CodedQuery {
  /** The coefficients of its bounds. The first that a bound reads share a cache line. */
  productFactor: f32;
  lossFactor: f32;
  restFactor: f32;
  normFactor: f32;
  constant: f32;
  /** COSINE, L1, L2 or DOT. */
  similarity: i32;
  /** False when p cannot be coded: no bound may be used then. */
  isCodable: bool;
  /** Address of the centre that the codes are for; 0: the zero centre. */
  centre: usize;
  unit: f64;
  /** ‖p‖, ‖p̂‖, ‖p − p̂‖. */
  norm: f64;
  codedNorm: f64;
  codeLoss: f64;
  /** ‖p‖ over what a partial bound leaves out: the dimensions after the head, or outside the basis. */
  restNorm: f64;
  /** q · centre, ‖centre‖. */
  shift: f64;
  centreNorm: f64;
}

/** The centre of a query that has no codes yet. */
export const NO_CENTRE: usize = 1;
