/** Maximal marginal relevance: results that are near the query and not near each other (Carbonell and Goldstein, SIGIR 1998). */
import { scorer, squares } from "../core/exact.ts";
import { checkInteger, checkOptions, checkType } from "../core/options.ts";
import { type Similarity, similarityCode } from "../core/similarity.ts";
import { toFloat32 } from "../core/vector-input.ts";
import { inWords } from "../errors/value-in-words.ts";

export interface MarginalRelevanceOptions {
  /** Maximum number of candidates to choose; default 10. */
  k?: number | undefined;
  /** 1: only the query counts; 0: only the difference from what is chosen. Default 0.5. */
  lambda?: number | undefined;
  /** Default "cosineSimilarity". */
  similarity?: Similarity | undefined;
}

/**
 * Chooses, one after the other, the candidate x with the largest λ·sim(query, x) − (1 − λ)·max sim(s, x) over those already
 * chosen, s; the first by sim(query, x) alone. `sim` is the score of a search. Of equal candidates the first is chosen.
 *
 * @param candidates  vectors of the query's dimension, such as `index.getMany(ids)` of a search with a larger k.
 * @returns their indexes, in the order of the choice.
 * @throws {TypeError | RangeError} for a bad vector or option.
 *
 * Cost: k · candidates · dimension multiplications. Exact: sums are float64, as in a search.
 */
export function maximalMarginalRelevance(
  query: ArrayLike<number>,
  candidates: readonly (ArrayLike<number> | undefined)[],
  options: MarginalRelevanceOptions = {},
): number[] {
  checkOptions(options, ["k", "lambda", "similarity"]);
  const { k = 10, lambda = 0.5, similarity = "cosineSimilarity" } = options;
  checkInteger("k", k, 1);
  similarityCode(similarity);
  if (!(lambda >= 0 && lambda <= 1)) throw new RangeError(`lambda is ${inWords(lambda)}; expected a number from 0 to 1.`);
  checkType(typeof query?.length === "number", "query", query, "an array of numbers");
  checkType(Array.isArray(candidates), "candidates", candidates, "an array of vectors");
  const queryVector = toFloat32("query", query, query.length);
  const rows = candidates.map((row, i) => toFloat32(`candidates[${i}]`, row as ArrayLike<number>, query.length));
  const rowSquares = rows.map((row) => squares(row, 0, row.length));
  const scoresTo = (vector: Float32Array): number[] => {
    // A zero vector has no direction: its cosine with any other counts as 0.
    if (similarity === "cosineSimilarity" && vector.every((element) => element === 0)) return rows.map(() => 1);
    const score = scorer(similarity, vector);
    return rows.map((row, i) => score(row, 0, rowSquares[i]!));
  };
  const relevance = scoresTo(queryVector);
  const nearest = new Array<number>(rows.length).fill(Number.NEGATIVE_INFINITY);
  const chosen: number[] = [];
  const left = new Set(rows.keys());
  while (chosen.length < k && left.size > 0) {
    let best = -1;
    let bestValue = Number.NEGATIVE_INFINITY;
    for (const i of left) {
      const value = chosen.length === 0 ? relevance[i]! : lambda * relevance[i]! - (1 - lambda) * nearest[i]!;
      if (value <= bestValue) continue;
      best = i;
      bestValue = value;
    }
    left.delete(best);
    chosen.push(best);
    if (chosen.length === k) break;
    scoresTo(rows[best]!).forEach((score, i) => {
      nearest[i] = Math.max(nearest[i]!, score);
    });
  }
  return chosen;
}
