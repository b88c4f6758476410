/** Checks contenders' answers against the float64 oracle. */
import { bestOf, exactScores, idOf, verify } from "../oracle.mjs";

/**
 * Peers add up in float32. Rows whose exact scores (1 + cos) are closer than this may change places, and so
 * may the last hit and the next row.
 */
export const TOLERANCE = 1e-5;

/**
 * @returns {{expected: {row, score}[], scoreOf: Float64Array}} the k best, and the exact score of every row.
 */
export function exactAnswer(data, rows, dimension, query, k) {
  const scoreOf = exactScores(data, rows, dimension, (rows + query) * dimension, "cosineSimilarity");
  return { expected: bestOf(scoreOf, k), scoreOf };
}

/**
 * @param exact  compare to the last bit, scores included (Lodestone); otherwise compare the rows within
 *   TOLERANCE (peers).
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
