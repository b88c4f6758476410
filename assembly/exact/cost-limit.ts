/** The limit that the bounds of dot/bounds.ts and l1/bounds.ts are compared with. */
import { Query } from "./query";
import { COSINE, cosineFloor, DOT, distanceCeiling } from "./similarity";

/**
 * The cost above which a row scores below `score`, rounded up to float32. It is at most the largest float32,
 * so that an infinite bound is above it. For DOT it is −score: the bounds cover what the score's own sum rounds.
 */
export function costLimit(query: Query, score: f64): f32 {
  let limit: f64;
  if (query.similarity === COSINE) {
    const norm = Math.sqrt(query.squares);
    limit = norm * (1e-9 - cosineFloor(score));
  } else if (query.similarity === DOT) {
    limit = -score;
  } else {
    limit = distanceCeiling(score);
  }
  return min(<f32>(limit + Math.abs(limit) * 2.384185791015625e-7 + 1e-44), f32.MAX_VALUE);
}
