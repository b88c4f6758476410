/** Checks contenders' answers against the float64 oracle. */
import { bestOf, exactScores, idOf, verify } from "../oracle.mjs";

/**
 * Peers add up in float32, so rows whose exact scores (1 + cos) are nearer than this may change places, or the
 * last hit with the next row.
 */
export const TOLERANCE = 1e-5;

/** @returns {{expected: {row, score}[], scoreOf: Float64Array}} the k best, and the exact score of every row. */
export function exactAnswer(data, rows, dimension, query, k) {
  const scoreOf = exactScores(data, rows, dimension, (rows + query) * dimension, "cosineSimilarity");
  return { expected: bestOf(scoreOf, k), scoreOf };
}

/**
 * @param exact  to the last bit, scores included (Lodestone), or the rows within TOLERANCE (peers).
 * @returns {number} how many places differ, all of them near-ties.
 * @throws when the answer is wrong.
 */
export function checkAnswer(what, { rows, scores }, { expected, scoreOf }, exact) {
  if (exact) {
    verify(what, { results: rows.map((row, i) => ({ id: idOf(row), score: scores[i] })) }, expected);
    return 0;
  }
  const want = expected.map(({ row }) => row);
  const isRight =
    rows.length === want.length &&
    new Set(rows).size === rows.length &&
    rows.every((row, i) => Math.abs((scoreOf[row] ?? Number.NaN) - expected[i].score) <= TOLERANCE);
  if (!isRight) throw new Error(`wrong answer: got rows ${rows.join(" ")}, expected ${want.join(" ")}`);
  return rows.filter((row, i) => row !== want[i]).length;
}
